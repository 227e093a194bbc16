/**
 * The tools `list_resources` and `read_resource`, with which a model finds and reads all resources of the server.
 */
import { type Context, tool, ToolError } from "../library.ts";
import { layer } from "../server/handlers/layer.ts";
import { shorten } from "../core/kit/shorten.ts";
import { isMcpError, REACHED } from "../core/protocol/errors.ts";
import { readAsContent } from "./inner_content.ts";

/** Maximum number of entries in a result, and of characters after which a result has no further entry. */
const MAX_ENTRIES = 100;
const MAX_CHARACTERS = 50_000;
/** Maximum number of characters of a name or description in a result. */
const MAX_TEXT = 200;

const FROM = {
  type: "object",
  properties: {
    from: { type: "integer", minimum: 1, description: "Number of the first entry to list. Defaults to 1." },
  },
  additionalProperties: false,
} as const;

const URI = {
  type: "object",
  properties: { uri: { type: "string", description: "URI of the resource, for example from list_resources" } },
  required: ["uri"],
  additionalProperties: false,
} as const;

/** The returned tool brings the other tool. */
export function createResourceTools() {
  const list = tool({
    name: "list_resources",
    title: "List resources",
    description: "Lists the resources and URI templates of this server, which read_resource can read",
    annotations: { readOnlyHint: true, destructiveHint: false, openWorldHint: false },
    input: FROM,
    run: ({ from = 1 }: { readonly from?: number }, ctx: Context) => listEntries(from, ctx),
  });
  return tool({
    name: "read_resource",
    title: "Read a resource",
    description: "Reads a resource of this server",
    annotations: { readOnlyHint: true, destructiveHint: false, openWorldHint: true },
    input: URI,
    use: [layer(() => ({ name: "asTools", handlers: [list] }))],
    run: ({ uri }: { readonly uri: string }, ctx: Context) => readAsContent(uri, ctx),
  });
}

async function listEntries(from: number, ctx: Context): Promise<string> {
  const [listed, templates] = await readLists(ctx);
  const all = [
    ...listed.map(({ uri, ...entry }) => describe({ uri }, entry)),
    ...templates.map(({ uriTemplate, ...entry }) => describe({ uriTemplate }, entry)),
  ];
  if (!all.length) return "There are no resources.";
  if (from > all.length) {
    throw new ToolError(`Cannot list the resources from ${from}: there are only ${all.length}; use a smaller number`);
  }
  let [end, characters] = [from - 1, 0];
  while (end < all.length && end < from - 1 + MAX_ENTRIES && characters < MAX_CHARACTERS) {
    characters += all[end++].length;
  }
  const more = end < all.length ? ` For more, call this tool with { "from": ${end + 1} }.` : "";
  const hint = templates.length ? " In a uriTemplate, replace each {variable} with an encoded value." : "";
  return [`Resources ${from} to ${end} of ${all.length}.${more}${hint}`, ...all.slice(from - 1, end)].join("\n");
}

async function readLists({ list }: Context) {
  try {
    return [await list("resources"), await list("resourceTemplates")] as const;
  } catch (error) {
    if (isMcpError(error) || Object(error)[REACHED] === undefined) throw error;
    throw new ToolError("Cannot list the resources: there are too many; read a URI that you know");
  }
}

interface Described {
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly mimeType?: string;
  readonly size?: number;
}

/** Returns an entry as a line of JSON, because texts of other servers may have line breaks. */
function describe(id: object, { name, title, description, mimeType, size }: Described): string {
  const texts = { name, title, description, mimeType };
  const short = Object.entries(texts).map(([key, text]) => [key, text === undefined ? text : shorten(text, MAX_TEXT)]);
  return JSON.stringify({ ...id, ...Object.fromEntries(short), size });
}
