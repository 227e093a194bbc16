/**
 * The schema of config files, from which the JSON Schema for editors is generated.
 */
import { z } from "zod";
import { limitNames } from "../../host.ts";

const text = z.string().min(1);
const path = text.describe("A path relative to the folder of this file, or an absolute path");
const ms = z.number().int().positive();
const bytes = z.number().int().positive();
const jsonObject = z.record(z.string(), z.unknown());

const annotations = z.strictObject({
  audience: z.array(z.enum(["user", "assistant"])).optional().describe("The intended audience"),
  priority: z.number().min(0).max(1).optional().describe("Importance, from 0 (least) to 1 (most)"),
  lastModified: text.optional().describe(
    "When the resource was last changed, in ISO 8601, such as 2025-01-12T15:00:58Z",
  ),
});

const toolCommon = {
  title: text.optional().describe("The display name"),
  description: text.describe("What the tool does; the model reads this to decide when to call it"),
  input: jsonObject.optional().describe(
    'The JSON Schema of the arguments, such as { "properties": { "city": { "type": "string" } } }. ' +
      "Defaults to no arguments",
  ),
  output: jsonObject.optional().describe("The JSON Schema of the result, which must be JSON"),
  annotations: z.strictObject({
    title: text.optional(),
    readOnlyHint: z.boolean().optional().describe("The tool changes nothing"),
    destructiveHint: z.boolean().optional().describe("The tool may delete or overwrite data"),
    idempotentHint: z.boolean().optional().describe(
      "Calling the tool again with the same arguments changes nothing more",
    ),
    openWorldHint: z.boolean().optional().describe("The tool reaches external systems, such as the web"),
  }).optional().describe("Hints about the behavior of the tool"),
};

const word = z.union([
  z.string(),
  z.strictObject({
    if: text.describe("The name of an argument. If this argument is missing or false, the words are left out"),
    words: z.array(z.string()).min(1).describe("The words"),
  }),
]).describe(
  'A word such as "log", an argument such as "{{count}}", or optional words such as { "if": "all", "words": ["--all"] }',
);

const commandTool = z.strictObject({
  ...toolCommon,
  run: z.array(word).min(1).describe(
    'The program and its arguments as separate words, such as ["git", "log", "-n", "{{count}}"]. No shell ' +
      "interprets the words",
  ),
  cwd: path.optional().describe("The working directory. Defaults to the folder of this file"),
  env: z.array(z.string().regex(/^[A-Za-z_]\w*(=|$)/)).optional().describe(
    'Environment variables to pass to the program in addition to PATH, as NAME or NAME=value, such as ["HOME", ' +
      '"LANG=C"]',
  ),
  stdin: z.string().optional().describe("The text to write to the program's standard input, such as {{text}}"),
  timeoutMs: ms.optional().describe("The time in milliseconds after which the program is killed. Defaults to 30000"),
  maxBytes: bytes.optional().describe(
    "The number of bytes of output after which the program is killed. Defaults to 262144",
  ),
  okExitCodes: z.array(z.number().int().min(0).max(255)).min(1).optional().describe(
    "Exit codes that mean success. Defaults to [0]",
  ),
  format: z.enum(["text", "json"]).optional().describe("The format of the output. Defaults to text"),
  unsafe: z.union([z.boolean(), z.array(text)]).optional().describe(
    'The names of arguments that may be any text, such as ["query"], because no value can do harm; true means all ' +
      "arguments",
  ),
});

const request = {
  headers: z.record(text, z.string()).optional().describe(
    'Request headers, such as { "authorization": "Bearer ${API_TOKEN}" }',
  ),
  timeoutMs: ms.optional().describe("The timeout for the whole request, in milliseconds. Defaults to 30000"),
  maxBytes: bytes.optional().describe("The maximum size of the response, in bytes. Defaults to 1048576"),
  allowPrivate: z.array(text).optional().describe(
    "Hosts on this machine or a private network that requests may reach, such as localhost:8080",
  ),
};

const fetchTool = z.strictObject({
  ...toolCommon,
  fetch: z.strictObject({
    url: text.describe(
      "An http or https URL, with arguments only after the host, such as https://api.example.com/users/{{id}}",
    ),
    method: z.enum(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]).optional().describe(
      "The request method. Defaults to GET, or to POST if there is a body",
    ),
    query: z.record(text, z.string()).optional().describe(
      "Query parameters. A parameter is left out if its argument is missing",
    ),
    ...request,
    json: z.unknown().optional().describe(
      'The request body as JSON. A string that consists of "{{name}}" alone is replaced with the value of the ' +
        "argument, which keeps its type",
    ),
    form: z.record(text, z.string()).optional().describe(
      "The request body as fields of a form. A field is left out if its argument is missing",
    ),
    body: z.unknown().optional().describe(
      "The request body as text. Arguments are encoded for the content-type in headers, which is a form, XML or plain " +
        "text; JSON text cannot contain arguments. An object is sent like json",
    ),
  }).describe("The request to send"),
});

const api = z.strictObject({
  document: path.describe("The OpenAPI document, in JSON or YAML"),
  baseUrl: text.describe(
    "The URL to which the paths of the document are appended, such as https://api.example.com/v1. The servers of the " +
      "document are never used",
  ),
  auth: z.record(text, z.string()).optional().describe(
    'The credentials by name of the security scheme, such as { "token": "${API_TOKEN}" }. For the scheme basic, write ' +
      "USER:PASSWORD. An empty credential counts as missing. For a document without security schemes, the names are " +
      "bearer and basic",
  ),
  tags: z.array(text).min(1).optional().describe("Serve only operations with one of these tags"),
  methods: z.array(z.enum(["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE", "QUERY"])).min(1).optional()
    .describe("Serve only operations with one of these methods"),
  operations: z.array(text).min(1).optional().describe("Serve only operations with one of these values of operationId"),
  readOnly: z.boolean().optional().describe("Whether to leave out operations that can change data. Defaults to false"),
  allowPrivate: request.allowPrivate,
});

const resourceCommon = {
  title: text.optional().describe("The display name"),
  description: text.optional().describe("What the resource contains"),
  mimeType: text.optional().describe(
    "The media type. Defaults to the type from the file extension or from the response",
  ),
  annotations: annotations.optional().describe("Hints about how to use the resource"),
};
const fileCommon = {
  ...resourceCommon,
  watch: z.boolean().optional().describe("Whether to notify clients of changes. Defaults to true"),
  maxBytes: bytes.optional().describe(
    "The maximum size of a file that clients can read, in bytes. Defaults to 1048576",
  ),
};
const uri = text.regex(/^[a-z][a-z\d+.-]*:\S+$/).describe("The URI, such as notes://todo");

const fileResource = z.strictObject({
  file: path.describe("The file to serve: a path relative to the folder of this config file, or an absolute path"),
  uri: uri.optional(),
  name: text.optional().describe("The name. Defaults to the file name"),
  ...fileCommon,
});
const globResource = z.strictObject({
  glob: text.describe(
    "A pattern for files, such as docs/**/*.md. A hidden file matches only if the pattern contains the leading dot",
  ),
  ...fileCommon,
});
const folderResource = z.strictObject({
  folder: path.describe("The folder to serve. Clients can read everything in the folder, and nothing outside of it"),
  name: text.optional().describe("The name. Defaults to the folder name"),
  ...fileCommon,
  hidden: z.boolean().optional().describe(
    "Whether to serve hidden files, whose names begin with a dot. Defaults to false",
  ),
  exclude: z.array(text).optional().describe(
    'Patterns for files and folders to leave out, such as ["*.key"]. node_modules is always left out',
  ),
  tools: z.union([z.boolean(), z.string().regex(/^[\w.-]{1,64}$/)]).optional().describe(
    "Whether to add tools that list, search and read the folder. A string becomes the prefix of the tools' names",
  ),
});
const urlResource = z.strictObject({
  url: text.describe("An http or https URL"),
  uri: uri.optional().describe("The URI. Defaults to the URL"),
  name: text.describe("The name"),
  ...resourceCommon,
  ...request,
});

const otherServer = {
  prefix: z.string().regex(/^[\w.-]{0,32}$/).optional().describe(
    'The text with which the names of its tools and prompts begin. Defaults to the name and "_"; "" means no prefix',
  ),
  share: z.enum(["all", "caller"]).optional().describe(
    'Whether all clients share one connection to the server, or each client has its own. Defaults to "all" over HTTP',
  ),
  tools: z.strictObject({
    include: z.array(text).optional().describe('Patterns of the tools to serve, such as ["issues_*"]. Defaults to all'),
    exclude: z.array(text).optional().describe("Patterns of tools to leave out"),
    change: z.record(text, jsonObject).optional().describe(
      'Changes of single tools, such as { "issues_create": { "name": "new_issue", "description": "…" } }',
    ),
  }).optional().describe("Which tools to serve, by their names without the prefix, and how"),
  tags: z.array(text).optional().describe("Labels of everything that the server offers"),
  timeoutMs: ms.optional().describe("The time in milliseconds that the server may take for a request"),
  listMs: ms.optional().describe("The time in milliseconds after which lists leave out the server"),
  forward: z.strictObject({
    elicitation: z.boolean().optional().describe("Whether the server may ask the user. Defaults to true"),
    sampling: z.boolean().optional().describe("Whether the server may use the client's model. Defaults to true"),
    roots: z.boolean().optional().describe("Whether the server may read the client's roots. Defaults to true"),
    log: z.boolean().optional().describe("Whether log messages of the server are passed on. Defaults to true"),
  }).optional().describe("What the server may use of the client"),
  instructions: z.boolean().optional().describe(
    "Whether to add the instructions of the server to those of this server. Defaults to false",
  ),
  lock: path.optional().describe(
    "The lock file of `mcp lock`, in which the name of the server is its key. Entries that are new or have changed are not served",
  ),
  required: z.boolean().optional().describe(
    "Whether this server only starts if the other server can be reached. Defaults to false",
  ),
};

const commandServer = z.strictObject({
  type: z.literal("stdio").optional().describe("The transport"),
  command: text.describe("The program that starts the server over stdio: a name in PATH, or a path"),
  args: z.array(z.string()).optional().describe("The arguments of the program. No shell interprets them"),
  env: z.record(text, z.string()).optional().describe(
    'Environment variables to set, such as { "GITHUB_TOKEN": "${GITHUB_TOKEN}" }',
  ),
  cwd: path.optional().describe("The working directory. Defaults to the folder of this file"),
  ...otherServer,
});

const urlServer = z.strictObject({
  type: z.enum(["http", "streamable-http", "sse"]).optional().describe("The transport, which is detected"),
  url: text.describe("The http or https URL of the server"),
  headers: request.headers,
  ...otherServer,
});

const limitGroup = (names: readonly string[]) =>
  z.strictObject(Object.fromEntries(names.map((name) => [name, z.number().positive().optional()]))).optional();

const serverKeys = {
  name: text.optional().describe("The name of the server. Defaults to the name of the folder"),
  version: text.optional().describe("The version of the server. Defaults to 0.0.0"),
  title: text.optional().describe("The name of the server that clients display"),
  websiteUrl: z.url().optional().describe("The URL of the server's website"),
  instructions: z.union([text, z.strictObject({ file: path })]).optional().describe(
    'Instructions for models that use this server: text, or { "file": "INSTRUCTIONS.md" }',
  ),
  limits: z.strictObject(
    Object.fromEntries([...limitNames].map(([group, names]) => [group, limitGroup(names)])),
  ).optional().describe("Limits that differ from the defaults, by group"),
  path: text.regex(/^\//).optional().describe("The path of the HTTP endpoint. Defaults to /mcp"),
  hosts: z.array(text).optional().describe(
    "Host headers that requests from this machine may use, in addition to loopback hosts",
  ),
  origins: z.array(text).optional().describe(
    "Origins of web pages that may call the server, in addition to the server's own origin",
  ),
  streams: z.boolean().optional().describe(
    "Whether HTTP responses can be event streams. Use false behind a gateway that sends only complete responses. " +
      "Defaults to true",
  ),
  search: z.boolean().optional().describe(
    "Whether clients search for tools instead of listing all of them, for a server with many tools. Defaults to false",
  ),
  secret: text.optional().describe(
    "A secret of at least 32 characters that all instances share, such as ${MCP_SECRET}",
  ),
};

const parts = {
  $schema: z.string().optional().describe("The location of this JSON Schema, for editors"),
  description: text.optional().describe("What the server is for, in one sentence"),
  include: z.array(path).optional().describe(
    "Other config files, whose tools, APIs, resources, prompts and modules are added to the server",
  ),
  tools: z.record(
    z.string().regex(/^[\w.-]{1,128}$/),
    z.union([commandTool, fetchTool]),
  ).optional().describe("Tools by name. Each tool runs a command or sends an HTTP request"),
  openapi: z.array(api).optional().describe("APIs with an OpenAPI document, whose operations become tools"),
  modules: z.array(path).optional().describe(
    "TypeScript or JavaScript files whose default export is a tool, resource or prompt, or an array of them",
  ),
  resources: z.array(z.union([fileResource, globResource, folderResource, urlResource])).optional().describe(
    "Resources from files, file patterns, folders and URLs",
  ),
  servers: z.record(z.string().regex(/^[\w.-]{1,31}$/), z.union([commandServer, urlServer])).optional().describe(
    "Other MCP servers by name, whose tools, prompts and resources are served too. An entry has the form that clients " +
      "use in their configuration, with further options",
  ),
  prompts: z.array(path).optional().describe("Markdown files, or patterns such as prompts/*.md"),
};

export const configSchema = z.strictObject({ ...parts, ...serverKeys });

/** The schema of an included config file, which cannot set the options of the server. */
export const includedSchema = z.strictObject(parts);

export type ConfigFile = z.infer<typeof configSchema>;
export type CommandTool = z.infer<typeof commandTool>;
export type ApiConfig = z.infer<typeof api>;
export type OtherServer = z.infer<typeof commandServer> | z.infer<typeof urlServer>;
export type FileResource = z.infer<typeof fileResource>;
export type GlobResource = z.infer<typeof globResource>;
export type FolderResource = z.infer<typeof folderResource>;
/** A resource with the response to an HTTP request. */

/** Converts a schema to JSON Schema. `schema` defaults to the schema of config files. */
export function toJsonSchema(
  schema: z.ZodType = configSchema,
): Readonly<Record<string, unknown>> {
  return {
    ...z.toJSONSchema(schema, { target: "draft-7" }),
    title: "mcp.jsonc",
    description: "An MCP server in a config file",
  };
}
