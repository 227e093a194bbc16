/**
 * What a config file may say. The JSON schema that editors read is made of this.
 *
 * @module
 */
import { z } from "zod";
import { LIMITS } from "../../core/limits.ts";

const text = z.string().min(1);
const path = text.describe("A path, seen from the folder of this file; one outside of it is written in full");
const ms = z.number().int().positive();
const bytes = z.number().int().positive();
const jsonObject = z.record(z.string(), z.unknown());

const annotations = z.strictObject({
  audience: z.array(z.enum(["user", "assistant"])).optional().describe("Whom it is for"),
  priority: z.number().min(0).max(1).optional().describe("0, least, to 1, most important"),
  lastModified: text.optional().describe("ISO 8601, such as 2025-01-12T15:00:58Z"),
});

const toolCommon = {
  title: text.optional().describe("The name for people"),
  description: text.describe("What the tool does, for the model that decides to call it"),
  input: jsonObject.optional().describe(
    'A JSON Schema of what the tool takes, such as { "properties": { "city": { "type": "string" } } }; without it, ' +
      "nothing",
  ),
  output: jsonObject.optional().describe("A JSON Schema of what the tool gives; needs a result that is JSON"),
  annotations: z.strictObject({
    title: text.optional(),
    readOnlyHint: z.boolean().optional().describe("It changes nothing"),
    destructiveHint: z.boolean().optional().describe("It may destroy something"),
    idempotentHint: z.boolean().optional().describe("Calling it again changes nothing more"),
    openWorldHint: z.boolean().optional().describe("It deals with a world outside, such as the web"),
  }).optional().describe("Hints about what the tool does"),
};

const word = z.union([
  z.string(),
  z.strictObject({
    if: text.describe("The argument that must be given, and not be false, for the words to be there"),
    words: z.array(z.string()).min(1),
  }),
]).describe('A word such as "--count={{count}}", or { "if": "all", "words": ["--all"] }');

const commandTool = z.strictObject({
  ...toolCommon,
  run: z.array(word).min(1).describe(
    'The program and its arguments, each a word of its own, such as ["git", "log", "-n", "{{count}}"]; no shell reads them',
  ),
  cwd: path.optional().describe("The working directory; the folder of this file if nothing is said"),
  env: z.array(z.string().regex(/^[A-Za-z_]\w*(=|$)/)).optional().describe(
    'What the program sees of the environment beside PATH: names, or NAME=value, such as ["HOME", "LANG=C"]',
  ),
  stdin: z.string().optional().describe("What the program reads, such as {{text}}"),
  timeoutMs: ms.optional().describe("Milliseconds before the program is ended; 30000 if nothing is said"),
  maxBytes: bytes.optional().describe("Bytes of output before the program is ended; 262144 if nothing is said"),
  okExitCodes: z.array(z.number().int().min(0).max(255)).min(1).optional().describe(
    "Exit codes that are no failure; [0] if nothing is said",
  ),
  format: z.enum(["text", "json"]).optional().describe("What the output is; text if nothing is said"),
});

const request = {
  headers: z.record(text, z.string()).optional().describe(
    'Headers of the request, such as { "authorization": "Bearer ${API_TOKEN}" }',
  ),
  timeoutMs: ms.optional().describe("Milliseconds for the answer to be complete; 30000 if nothing is said"),
  maxBytes: bytes.optional().describe("Bytes of the answer; 1048576 if nothing is said"),
  allowPrivate: z.array(text).optional().describe(
    "Hosts of this machine or of a private network that may be asked, such as localhost:8080",
  ),
};

const fetchTool = z.strictObject({
  ...toolCommon,
  fetch: z.strictObject({
    url: text.describe(
      "http or https; arguments may stand behind the host, as in https://api.example.com/users/{{id}}",
    ),
    method: z.enum(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]).optional().describe(
      "GET, or POST with a body, if nothing is said",
    ),
    query: z.record(text, z.string()).optional().describe(
      "What follows ? in the URL; an entry with an argument that was not given is left out",
    ),
    ...request,
    body: z.unknown().optional().describe(
      'The body: a text, or JSON, in which "{{name}}" alone stands for the argument as it is',
    ),
  }).describe("The request that is made"),
});

const resourceCommon = {
  title: text.optional().describe("The name for people"),
  description: text.optional().describe("What it is"),
  mimeType: text.optional().describe("Its media type; known from the end of its name if nothing is said"),
  annotations: annotations.optional().describe("Hints on how to use it"),
};
const fileCommon = {
  ...resourceCommon,
  watch: z.boolean().optional().describe("Whether clients are told of changes; true if nothing is said"),
  maxBytes: bytes.optional().describe("Bytes of the largest file that is read; 1048576 if nothing is said"),
};
const uri = text.regex(/^[a-z][a-z\d+.-]*:\S+$/).describe("Its URI, such as notes://todo");

const fileResource = z.strictObject({
  file: path.describe("A file"),
  uri: uri.optional(),
  name: text.optional().describe("Its name; that of the file if nothing is said"),
  ...fileCommon,
});
const globResource = z.strictObject({
  glob: text.describe("Files, such as docs/**/*.md; those whose name begins with a dot only if the pattern says so"),
  ...fileCommon,
});
const folderResource = z.strictObject({
  folder: path.describe("A folder: everything in it can be read, and nothing outside of it"),
  name: text.optional().describe("Its name; that of the folder if nothing is said"),
  ...fileCommon,
  hidden: z.boolean().optional().describe("Whether names that begin with a dot are there; false if nothing is said"),
  exclude: z.array(text).optional().describe(
    'Patterns of what is not there, such as ["*.key"]; ["node_modules"] if nothing is said',
  ),
  tools: z.union([z.boolean(), z.string().regex(/^[\w.-]{1,64}$/)]).optional().describe(
    "Whether there are tools to list, search and read it; a text is put before their names",
  ),
});
const urlResource = z.strictObject({
  url: text.describe("http or https"),
  uri: uri.optional().describe("Its URI; the URL if nothing is said"),
  name: text.describe("Its name"),
  ...resourceCommon,
  ...request,
});

const limitGroup = (names: readonly string[]) =>
  z.strictObject(Object.fromEntries(names.map((name) => [name, z.number().positive().optional()]))).optional();

const serverKeys = {
  name: text.optional().describe("The server's name for programs; that of the folder if nothing is said"),
  version: text.optional().describe("The server's own version; 0.0.0 if nothing is said"),
  title: text.optional().describe("The server's name for people"),
  websiteUrl: z.url().optional().describe("Where people read more"),
  instructions: z.union([text, z.strictObject({ file: path })]).optional().describe(
    'What a model should know to use this server well: a text, or { "file": "INSTRUCTIONS.md" }',
  ),
  limits: z.strictObject(
    Object.fromEntries(
      Object.entries(LIMITS).map(([group, limits]) => [group, limitGroup(Object.keys(limits))]),
    ),
  ).optional().describe("Limits that differ from the defaults, in groups"),
  path: text.regex(/^\//).optional().describe("Path of the HTTP endpoint; /mcp if nothing is said"),
  hosts: z.array(text).optional().describe("Hosts that callers on this machine may name beside loopback"),
  origins: z.array(text).optional().describe("Origins of web pages that may call beside the server's own"),
  secret: text.optional().describe("At least 32 characters that all instances share, such as ${MCP_SECRET}"),
};

const parts = {
  $schema: z.string().optional().describe("Where this schema is, for editors"),
  description: text.optional().describe("What the server is for, in a sentence"),
  include: z.array(path).optional().describe("Other files of this kind, whose tools, resources and prompts are added"),
  tools: z.record(
    z.string().regex(/^[\w.-]{1,128}$/),
    z.union([commandTool, fetchTool]),
  ).optional().describe("What a model can do, by name: each runs a command or makes a request"),
  modules: z.array(path).optional().describe(
    "Files whose default export is a tool, a resource or a prompt, or several",
  ),
  resources: z.array(z.union([fileResource, globResource, folderResource, urlResource])).optional().describe(
    "What there is to be read: files, globs, folders and URLs",
  ),
  prompts: z.array(path).optional().describe("Markdown files, or globs of them, such as prompts/*.md"),
};

/** A config file that is served. */
export const configSchema = z.strictObject({ ...parts, ...serverKeys });

/** A config file that another one includes: what describes the server is for the first one to say. */
export const includedSchema = z.strictObject(parts);

/** What a config file says. */
export type ConfigFile = z.infer<typeof configSchema>;
/** A tool that runs a program. */
export type CommandTool = z.infer<typeof commandTool>;
/** A tool that makes a request. */
export type FetchTool = z.infer<typeof fetchTool>;
/** A resource that is a file. */
export type FileResource = z.infer<typeof fileResource>;
/** Resources that are the files of a pattern. */
export type GlobResource = z.infer<typeof globResource>;
/** Resources that are the files of a folder. */
export type FolderResource = z.infer<typeof folderResource>;
/** A resource that is read over HTTP. */
export type UrlResource = z.infer<typeof urlResource>;

/** The JSON schema of a config file, or of one that is included. */
export function toJsonSchema(
  schema: typeof configSchema | typeof includedSchema = configSchema,
): Readonly<Record<string, unknown>> {
  return { ...z.toJSONSchema(schema, { target: "draft-7" }), title: "mcp.jsonc", description: "A server without code" };
}
