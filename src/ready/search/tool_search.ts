/**
 * Serves many tools with a short list: tools that search the tools, and call them.
 */
import { type Context, type Handler, type Result, tool } from "../../library.ts";
import { checkOptions, type KnownOptions } from "../../core/known_options.ts";
import type { JsonSchema } from "../../core/schema/schema.ts";
import { markRelay } from "../../server/call/relays.ts";
import type { OwnNames } from "./narrowed_list.ts";
import { writeHits } from "./result_text.ts";
import { SEARCH_INPUT, type SearchInput, ShortList, type ShortListForm, type ToolSearchOptions } from "./short_list.ts";

export type { ToolSearchOptions } from "./short_list.ts";
export type { SearchedTool } from "./visible_tools.ts";

const NAMES: KnownOptions<keyof OwnNames> = { names: { search: true, call: true, callReadOnly: true } };

const MAX_LIMIT = 50;

const OPTIONS: KnownOptions<keyof ToolSearchOptions> = {
  names: {
    always: "texts",
    limit: {
      test: (limit) => Number.isInteger(limit) && Number(limit) >= 1 && Number(limit) <= MAX_LIMIT,
      remedy: `it must be a whole number from 1 to ${MAX_LIMIT}`,
    },
    rank: "function",
    names: NAMES,
    when: "function",
  },
  hints: { maxResults: "limit", search: "rank" },
};

/**
 * Returns a handler that replaces the list of tools by a few tools: `search_tools`, `call_tool`, and
 * `call_read_only_tool` if the caller can see a tool with `readOnlyHint`. A model searches for tools with a sentence, and
 * then calls the tool that it has found. Each caller finds and calls exactly the tools that it could call directly, with
 * the same `allow`, scopes, layers and limits. Calls by name still work.
 *
 * A client gets the whole list if its URL contains `?search=off`, or without HTTP, such as over stdio, if the environment
 * variable `MCP_SEARCH` of the server is `off`.
 *
 * ```ts
 * import { createServer, tool } from "@x/mcp";
 * import { toolSearch } from "@x/mcp/search";
 *
 * const whoami = tool({ name: "whoami", run: (_input, ctx) => ctx.principal?.id ?? "nobody" });
 * const open = tool({ name: "open_issue", description: "Opens an issue", about: ["ticket", "bug"], run: () => "#1" });
 *
 * export default createServer({
 *   name: "tracker",
 *   version: "1.0.0",
 *   handlers: [whoami, open, toolSearch({ always: ["whoami"] })],
 * });
 * ```
 *
 * @throws {TypeError} if an option is unknown or invalid.
 */
export function toolSearch(options: ToolSearchOptions = {}): Handler {
  checkOptions("make a tool search", options, OPTIONS);
  return new ShortList(FORM, options).handler;
}

/** The tools that replace the list. */
const FORM: ShortListForm = {
  names: { search: "search_tools", call: "call_tool", callReadOnly: "call_read_only_tool" },
  pass: markRelay,
  make(list, names) {
    const { search, call } = list.names;
    const toCaller = (name: string, description: string, isReadOnly: boolean) =>
      tool({
        name,
        title: isReadOnly ? "Call a read-only tool" : "Call a tool",
        description,
        annotations: { readOnlyHint: isReadOnly, destructiveHint: !isReadOnly, openWorldHint: true },
        lenientArguments: true,
        input: CALL_INPUT,
        run: (input, ctx) => callFound(list, input as unknown as CallInput, ctx, isReadOnly), // See below.
      });
    return [
      tool({
        name: names.search,
        title: "Search tools",
        description:
          "Finds tools by what they do. This server has more tools than this list shows: search before you " +
          `decide that something is impossible. Call the tools that you find with ${call}.`,
        annotations: { readOnlyHint: true, destructiveHint: false, openWorldHint: false },
        input: SEARCH_INPUT,
        // The casts are safe, because the input schemas validate the inputs.
        run: async (input, ctx) => {
          const searched = input as unknown as SearchInput; // See above.
          return writeHits(await list.search(searched, ctx), { names: list.names, query: searched.query });
        },
      }),
      toCaller(names.call, `Calls a tool that ${search} has found.`, false),
      toCaller(names.callReadOnly, `Calls a tool that ${search} has found and that is marked as read-only.`, true),
    ];
  },
};

interface CallInput {
  readonly name: string;
  readonly arguments?: object;
}

async function callFound(list: ShortList, input: CallInput, ctx: Context, isReadOnly: boolean): Promise<Result> {
  const found = await list.find(input.name, ctx, isReadOnly);
  const { content, ...others } = await list.call(found, input.arguments, ctx);
  // A result with its own structured content is sent unchanged.
  return { structuredContent: undefined, ...others, content };
}

const CALL_INPUT: JsonSchema = {
  type: "object",
  properties: {
    name: { type: "string", description: "Name of the tool" },
    arguments: { type: "object", description: "Arguments that match the tool's inputSchema" },
  },
  required: ["name"],
  additionalProperties: false,
};
