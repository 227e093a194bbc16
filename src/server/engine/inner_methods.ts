/**
 * The methods of the context that make inner calls, such as `ctx.callTool`. Loaded when a handler first uses one of them.
 */
import { INVALID_PARAMS, McpError, quote, ToolError, withLimits } from "../../core/protocol/errors.ts";
import { isObject, type Params, readResultType, type Result } from "../../core/protocol/jsonrpc.ts";
import type { Content } from "../../core/protocol/types.ts";
import { isWithin } from "../../core/protocol/weight.ts";
import { INTERNALS } from "../../core/internals.ts";
import { checkOptions, isPlain, type KnownOptions, show } from "../../core/known_options.ts";
import type { Call } from "../call/call.ts";
import type { InnerMethod, InnerUse } from "../call/inner_calls.ts";
import { isReads, setReads } from "../call/reads.ts";
import { type Handler, isHandler } from "../visibility/feature.ts";
import { passHandle } from "../visibility/relayed_handles.ts";
import { checkReads } from "./handler_check.ts";
import { type InnerParts, type InnerRequest, makeInnerCall } from "./inner_call.ts";

export function callInner(call: Call, { name, given }: InnerUse, parts: InnerParts): Promise<unknown> {
  return METHODS[name](new Caller(call, name, parts), ...given);
}

class Caller {
  readonly call: Call;
  readonly parts: InnerParts;
  readonly #by: string;

  constructor(call: Call, by: string, parts: InnerParts) {
    this.call = call;
    this.parts = parts;
    this.#by = by;
  }

  /** If the server does not have the method, throws the error that `toMissing` makes, or an error that says so. */
  async make(request: Request, toMissing?: ToMissing): Promise<Result> {
    if (toMissing && !this.parts.registry.methods.has(request.method)) throw toMissing();
    const name = this.parts.registry.findSubject(request);
    const result = await makeInnerCall(this.call, { ...request, by: this.#by, name }, this.parts);
    return readResultType(result) === undefined ? result : passHandle(this.call, result);
  }

  /** Returns what a client would receive, because other calls may share the values of the result. */
  async receive(request: Request, toMissing?: ToMissing): Promise<Result> {
    const result = await this.make(request, toMissing);
    const text = JSON.stringify(result);
    const { resultBytes } = this.parts.core.limits.calls;
    if (isWithin(text, resultBytes)) return JSON.parse(text);
    const limit = "calls.resultBytes";
    throw withLimits(
      new Error(`Cannot ${request.action}: its result is longer than ${resultBytes} bytes (${limit})`),
      limit,
    );
  }
}

type Request = Omit<InnerRequest, "by" | "name">;

type ToMissing = () => McpError;

const OPTIONS: KnownOptions<"key"> = { names: { key: { findProblem: findKeyProblem } } };
const TOOL_OPTIONS: KnownOptions<"key" | "raw"> = { names: { ...OPTIONS.names, raw: "boolean" } };

/** The methods, with the arguments that the author's code has passed. */
const METHODS: Readonly<Record<InnerMethod, (caller: Caller, ...given: readonly unknown[]) => Promise<unknown>>> = {
  callTool,
  getPrompt,
  readResource,
  list: (caller, kind) => listAll(caller, kind, (request) => caller.receive(request)),
  complete,
  repeatReads,
  // Returns entries that may be shared with other calls. Only the server itself uses this method, and only reads them.
  shareList: (caller, kind) => listAll(caller, kind, (request) => caller.make(request)),
};

async function callTool(caller: Caller, tool: unknown, input: unknown = {}, options: unknown = {}): Promise<unknown> {
  const name = toName(tool, "tool");
  const action = `call tool ${quote(name)}`;
  const { key, raw }: Options = readOptions(action, options, TOOL_OPTIONS);
  requireObject(action, "input", input);
  const params = { name, arguments: input };
  const toMissing = () => new McpError(INVALID_PARAMS, `Unknown tool: ${quote(name)}`);
  const result = await caller.receive({ action, method: "tools/call", params, key }, toMissing);
  if (raw) return result;
  const { isError, structuredContent } = result;
  // The cast is safe, because the server has checked the result.
  const content = Array.isArray(result.content) ? result.content as readonly Content[] : [];
  if (isError === true) throw toToolError(content);
  if (!isHandler(tool) || !hasOutput(tool)) return { content, structuredContent };
  if (structuredContent !== undefined) return structuredContent;
  throw new TypeError(
    `Cannot ${action}: its result has no structured content; pass { raw: true }, and read its content`,
  );
}

function toToolError(content: readonly Content[]): ToolError {
  const error = new ToolError(content);
  const texts = content.flatMap((block) => block.type === "text" ? block.text : []);
  if (texts.length) error.message = texts.join("\n");
  return error;
}

async function getPrompt(caller: Caller, prompt: unknown, args: unknown = {}, options: unknown = {}): Promise<Result> {
  const name = toName(prompt, "prompt");
  const action = `get prompt ${quote(name)}`;
  const { key } = readOptions(action, options, OPTIONS);
  requireObject(action, "args", args);
  const params = { name, arguments: args };
  const toMissing = () => new McpError(INVALID_PARAMS, `Unknown prompt: ${quote(name)}`);
  return await caller.receive({ action, method: "prompts/get", params, key }, toMissing);
}

async function readResource(caller: Caller, uri: unknown, options: unknown = {}): Promise<unknown> {
  if (typeof uri !== "string") throw new TypeError(`Cannot read a resource: uri is ${show(uri)}; pass the URI`);
  const action = `read ${quote(uri)}`;
  const { key } = readOptions(action, options, OPTIONS);
  const { contents } = await caller.make(
    { action, method: "resources/read", params: { uri }, key },
    () => McpError.resourceNotFound(uri),
  );
  if (Array.isArray(contents)) return contents.map(toContentCopy);
  throw new TypeError(`Cannot ${action}: its result has no list of contents`);
}

/**
 * Returns a copy of a resource's content, because its members may belong to a value that each read returns. Does not copy
 * the text or the data, which no handler can change and which may have many bytes.
 */
function toContentCopy(content: Params): Params {
  const { text, blob, ...others } = content;
  return {
    ...JSON.parse(JSON.stringify(others)),
    ...text !== undefined && { text },
    ...blob !== undefined && { blob },
  };
}

/** The method of each list, and the member of its result with the entries. */
const LISTS = new Map([
  ["tools", "tools/list"],
  ["prompts", "prompts/list"],
  ["resources", "resources/list"],
  ["resourceTemplates", "resources/templates/list"],
]);

async function listAll(
  caller: Caller,
  kind: unknown,
  send: (request: Request) => Promise<Result>,
): Promise<readonly unknown[]> {
  const method = typeof kind === "string" ? LISTS.get(kind) : undefined;
  if (method === undefined || typeof kind !== "string") {
    throw new TypeError(`Cannot list ${show(kind)}: there is no such list; use ${[...LISTS.keys()].join(", ")}`);
  }
  const action = `list ${kind}`;
  const all: unknown[] = [];
  // A server without handlers of a kind does not have the method.
  if (!caller.parts.registry.methods.has(method)) return all;
  let cursor: unknown;
  do {
    const page = await send({ action, method, params: cursor === undefined ? {} : { cursor } });
    const entries = page[kind];
    if (!Array.isArray(entries)) throw new TypeError(`Cannot ${action}: a page has no ${kind}`);
    for (const entry of entries) all.push(entry);
    cursor = page.nextCursor ?? undefined;
  } while (cursor !== undefined);
  return all;
}

async function complete(caller: Caller, ref: unknown, argument: unknown, options: unknown = {}): Promise<unknown> {
  const action = "complete an argument";
  const { arguments: others = {} } = readOptions(action, options, { names: { arguments: true } });
  requireObject(action, "ref", ref);
  const params = { ref, argument, context: { arguments: others } };
  const { completion } = await caller.receive({ action, method: "completion/complete", params });
  return completion;
}

// An answer with the state of another token of the same principal brings the values of that token's run.
async function repeatReads({ call, parts }: Caller, reads: unknown): Promise<void> {
  // Only the server itself uses this method.
  if (!isReads(reads)) throw new TypeError("Cannot check what a handler has called: it is not a list");
  await checkReads(call, reads, parts);
  setReads(call, reads);
}

interface Options {
  readonly key?: string;
  readonly raw?: boolean;
  readonly arguments?: unknown;
}

function readOptions(action: string, options: unknown, known: KnownOptions): Options {
  checkOptions(action, options, known);
  return Object(options);
}

function findKeyProblem(key: unknown): string | undefined {
  if (typeof key === "string" && key.length > 0 && key.length <= MAX_KEY) return;
  return `is ${show(key)}; it must be a text of at most ${MAX_KEY} characters`;
}

/** Maximum length of a key in characters, because the client sends the keys of questions back. */
const MAX_KEY = 256;

function requireObject(action: string, what: string, value: unknown): asserts value is Params {
  // The JSON of other objects, such as a promise or a Map, is {}, so the handler would run without its arguments.
  if (isObject(value) && isPlain(value)) return;
  const state = isObject(value) ? "not a plain object" : show(value);
  throw new TypeError(`Cannot ${action}: ${what} is ${state}; pass a plain object, and await promises`);
}

/** A handler is given as its name or as the handler itself. */
function toName(given: unknown, kind: string): string {
  if (typeof given === "string") return given;
  if (isHandler(given) && given[INTERNALS].feature.name === `${kind}s`) return given[INTERNALS].key;
  throw new TypeError(`Cannot call a ${kind}: ${show(given)} is not a ${kind}; pass a ${kind} or its name`);
}

/** Whether the type of a tool has the type of its structured content. A tool of another server does not have it. */
function hasOutput({ [INTERNALS]: internals }: Handler): boolean {
  const { definition, foreign } = Object(internals);
  return Object(definition).output !== undefined && foreign !== true;
}
