/**
 * Checks the types of the values that servers send, with one function per type of the protocol. Strict clients refuse a
 * whole list or result because of one member of a wrong type. So a server checks what its author returns, and a client
 * checks what a server sends. Loaded on demand, because the library itself creates most results.
 *
 * The functions read each member by name. A loop over a table of members takes as long as writing the JSON of a list,
 * and reading by name takes an eighth of this time.
 *
 * @see specification/2026-07-28/schema
 */
import { shorten } from "../kit/shorten.ts";
import { isObject } from "../kit/json.ts";
import { ANNOTATIONS } from "./annotations.ts";
import { quote } from "./errors.ts";
import { LOG_LEVELS } from "./types.ts";

/** A JSON object of the protocol. */
export type Members = Readonly<Record<string, unknown>>;

/** How to check a value. */
export interface WireOptions {
  /**
   * Whether another program sent the value. Then `null` for an optional member is a misfit too, and a content block of
   * an unknown type is a misfit but is kept, because a later protocol revision may define the type. Otherwise `null`
   * for an optional member counts as absent. Defaults to `false`.
   */
  readonly isReceived?: boolean;
}

/** A member of a wrong type. */
export interface Misfit {
  /** The member, such as `annotations.priority` or `content[0].data`. Empty for the whole value. */
  readonly place: string;
  /** What is wrong, and the remedy, such as `is 2; use a number from 0 to 1`. */
  readonly state: string;
}

export interface Fitted<T = Members> {
  /**
   * The value without its optional members of a wrong type: the same object if nothing was left out. `undefined` if a
   * required member has a wrong type.
   */
  readonly value: T | undefined;
  readonly misfits: readonly Misfit[];
}

export interface EntryMisfit extends Misfit {
  /** The URI or the name of the entry. `undefined` if neither is a string. */
  readonly name?: string;
  /** The position of the entry in the list. */
  readonly at: number;
  /** Whether the entry was left out, because a required member has a wrong type. */
  readonly isLeftOut: boolean;
}

/** The way to a member, such as `["content", 0, "data"]`. */
type Path = readonly (string | number)[];

type Kind = (value: Members, check: Check) => void;

/** One check: the misfits that were found, and the members to leave out. */
class Check {
  readonly misfits: Misfit[] = [];
  readonly isReceived: boolean;
  /** The members to leave out. */
  readonly #cuts: Path[] = [];
  readonly #path: (string | number)[] = [];
  /** The length of the path to the optional member around the current member. 0 if all members around it are required. */
  #optional = 0;
  #isUnfit = false;

  constructor({ isReceived = false }: WireOptions) {
    this.isReceived = isReceived;
  }

  /** Returns the checked value without the members to leave out, and prepares the check of the next value. */
  finish<T>(value: T): T | undefined {
    if (!this.#cuts.length && !this.#isUnfit) return value;
    const isUnfit = this.#isUnfit;
    this.#isUnfit = false;
    const cuts = this.#cuts.splice(0);
    // The cast is safe, because only optional members are left out.
    return isUnfit ? undefined : cuts.reduce<unknown>((left, path) => without(left, path), value) as T;
  }

  needText(name: string, value: unknown): void {
    if (typeof value !== "string" && !isText(value)) this.refuse(name, value, "use a string");
  }

  /** Checks an item of a list of texts. */
  item(value: unknown, at: number): void {
    if (typeof value !== "string") this.refuse(at, value, "use a string");
  }

  text(name: string, value: unknown): void {
    if (value === undefined || typeof value === "string") return;
    if (!isText(value)) this.drop(name, value, "use a string");
  }

  flag(name: string, value: unknown): void {
    if (value !== undefined && typeof value !== "boolean") this.drop(name, value, "use true or false");
  }

  number(name: string, value: unknown): void {
    if (value !== undefined && !Number.isFinite(value)) this.drop(name, value, "use a finite number");
  }

  share(name: string, value: unknown): void {
    if (value === undefined || typeof value === "number" && value >= 0 && value <= 1) return;
    this.drop(name, value, "use a number from 0 to 1");
  }

  oneOf(name: string, value: unknown, texts: readonly string[]): void {
    if (value !== undefined && !isOneOf(value, texts)) this.drop(name, value, toChoice(texts));
  }

  object(name: string, value: unknown): void {
    if (value === undefined || toTag(value) === "[object Object]" && isSendable(value)) return;
    this.drop(name, value, "use a plain object", "not a plain object of JSON values");
  }

  needObject(name: string, value: unknown): void {
    if (!isObject(value)) this.refuse(name, value, "use an object");
  }

  inside(name: string, value: unknown, kind: Kind): void {
    if (value === undefined) return;
    if (!isObject(value)) return this.drop(name, value, "use an object");
    const outer = this.#optional;
    this.#optional = this.#path.push(name);
    kind(value, this);
    this.#path.pop();
    this.#optional = outer;
  }

  needInside(name: string | number, value: unknown, kind: Kind): void {
    if (!isObject(value)) return this.refuse(name, value, "use an object");
    this.#path.push(name);
    kind(value, this);
    this.#path.pop();
  }

  /** Checks an optional array. If an item has a wrong type, the array is left out. */
  list(name: string, value: unknown, item: (value: unknown, at: number) => void): void {
    if (value === undefined) return;
    if (!Array.isArray(value)) return this.drop(name, value, "use an array");
    const outer = this.#optional;
    this.#optional = this.#path.push(name);
    value.forEach(item);
    this.#path.pop();
    this.#optional = outer;
  }

  needList(name: string, value: unknown, item: (value: unknown, at: number) => void): void {
    if (!Array.isArray(value)) return this.refuse(name, value, "use an array");
    this.#path.push(name);
    value.forEach(item);
    this.#path.pop();
  }

  /** Leaves out an optional member. `null` counts as absent, unless another program sent the value. */
  drop(name: string | number, value: unknown, remedy: string, state = show(value)): void {
    const path = [...this.#path, name];
    this.#cuts.push(path);
    if (value !== null || this.isReceived) this.misfits.push({ place: toPlace(path), state: `is ${state}; ${remedy}` });
  }

  /** Adds a misfit without leaving out the member. */
  note(name: string | number, state: string, remedy: string): void {
    this.misfits.push({ place: toPlace([...this.#path, name]), state: `is ${state}; ${remedy}` });
  }

  /** Leaves out the optional member that contains a required member of a wrong type. */
  refuse(name: string | number, value: unknown, remedy: string, state = show(value)): void {
    this.note(name, state, remedy);
    if (this.#optional) this.#cuts.push(this.#path.slice(0, this.#optional));
    else this.#isUnfit = true;
  }
}

/** Returns a copy of a value without one member. Returns the value itself if the member does not exist. */
function without(value: unknown, [name, ...rest]: Path): unknown {
  if (Array.isArray(value)) return value.map((item, at) => at === name ? without(item, rest) : item);
  if (!isObject(value) || !Object.hasOwn(value, name)) return value;
  const { [name]: member, ...left } = value;
  return rest.length ? { ...value, [name]: without(member, rest) } : left;
}

function toPlace(path: Path): string {
  return path.map((step, at) => typeof step === "number" ? `[${step}]` : at ? `.${step}` : step).join("");
}

function isOneOf(value: unknown, texts: readonly string[]): boolean {
  return texts.some((text) => text === value);
}

function toChoice(texts: readonly string[]): string {
  return `use one of ${texts.map((text) => JSON.stringify(text)).join(", ")}`;
}

/** Tests whether JSON represents a value as a string. Dates and URLs have a `toJSON` method that returns a string. */
function isText(value: unknown): boolean {
  return typeof toSent(value) === "string";
}

function toSent(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  const { toJSON }: { readonly toJSON?: unknown } = value;
  try {
    return typeof toJSON === "function" ? toJSON.call(value) : value;
  } catch {
    return undefined;
  }
}

/** Tests whether JSON can represent a value. */
function isSendable(value: unknown): boolean {
  try {
    JSON.stringify(value);
    return true;
  } catch {
    return false;
  }
}

function toTag(value: unknown): string {
  return Object.prototype.toString.call(value);
}

/** Number of characters at the start of Base64 text that are checked one by one. */
const HEAD = 1024;

/**
 * Returns what is wrong with Base64 text. In long text, only the start is checked character by character, because a
 * pattern over 10 MB takes 49 ms. The rest is searched for the characters of base64url, which takes 0.5 ms.
 */
function findBase64Misfit(text: unknown): readonly [remedy: string, state?: string] | undefined {
  if (typeof text !== "string") return ["use a string in Base64"];
  if (text.slice(0, 5).toLowerCase() === "data:") return ["use only the Base64 after the comma", "a data: URL"];
  if (text.includes("-") || text.includes("_")) return ["use standard Base64, with + and /", "base64url"];
  const isLong = text.length > HEAD;
  const pattern = isLong ? /^[A-Za-z\d+/\s]*$/ : /^[A-Za-z\d+/\s]*(?:=\s*){0,2}$/;
  if (pattern.test(isLong ? text.slice(0, HEAD) : text) && hasFullLength(text)) return;
  return ["encode the bytes in Base64", "not Base64"];
}

/** Tests the number of characters, and of `=` at the end. Base64 with line breaks passes. */
function hasFullLength(text: string): boolean {
  if (text.includes("\n") || text.includes(" ")) return true;
  return text.endsWith("=") ? text.length % 4 === 0 : text.length % 4 !== 1;
}

const ROLES = ["user", "assistant"];

const annotations: Kind = ({ audience, priority, lastModified }, check) => {
  if (audience !== undefined) annotation("audience", audience, check);
  if (priority !== undefined) annotation("priority", priority, check);
  if (lastModified !== undefined) annotation("lastModified", lastModified, check);
};

function annotation(name: keyof typeof ANNOTATIONS, value: unknown, check: Check): void {
  const [test, remedy] = ANNOTATIONS[name];
  if (!test(value)) check.drop(name, value, remedy);
}

const icon: Kind = (value, check) => {
  check.needText("src", value.src);
  check.text("mimeType", value.mimeType);
  check.list("sizes", value.sizes, (size, at) => check.item(size, at));
  check.oneOf("theme", value.theme, ["light", "dark"]);
};

/** Checks the members that tools, resources, templates and prompts have in common. */
const described: Kind = (value, check) => {
  check.text("title", value.title);
  check.text("description", value.description);
  if (value._meta !== undefined) check.object("_meta", value._meta);
  if (value.icons !== undefined) check.list("icons", value.icons, (each, at) => check.needInside(at, each, icon));
};

const tool: Kind = (value, check) => {
  const { name, inputSchema, outputSchema, annotations, execution } = value;
  check.needText("name", name);
  described(value, check);
  if (!isObject(inputSchema)) check.refuse("inputSchema", inputSchema, "use a JSON Schema");
  else if (inputSchema.type !== "object") check.refuse("inputSchema.type", inputSchema.type, 'use "object"');
  if (outputSchema !== undefined) {
    check.inside("outputSchema", outputSchema, ({ $schema }) => check.text("$schema", $schema));
  }
  if (annotations !== undefined) check.inside("annotations", annotations, toolAnnotations);
  if (execution !== undefined) {
    check.inside(
      "execution",
      execution,
      ({ taskSupport }) => check.oneOf("taskSupport", taskSupport, ["required", "optional", "forbidden"]),
    );
  }
};

const toolAnnotations: Kind = (value, check) => {
  check.text("title", value.title);
  check.flag("readOnlyHint", value.readOnlyHint);
  check.flag("destructiveHint", value.destructiveHint);
  check.flag("idempotentHint", value.idempotentHint);
  check.flag("openWorldHint", value.openWorldHint);
};

const templateFields: Kind = (value, check) => {
  check.needText("name", value.name);
  described(value, check);
  check.text("mimeType", value.mimeType);
  if (value.annotations !== undefined) check.inside("annotations", value.annotations, annotations);
};

const resource: Kind = (value, check) => {
  check.needText("uri", value.uri);
  templateFields(value, check);
  check.number("size", value.size);
};

const resourceTemplate: Kind = (value, check) => {
  check.needText("uriTemplate", value.uriTemplate);
  templateFields(value, check);
};

const prompt: Kind = (value, check) => {
  check.needText("name", value.name);
  described(value, check);
  check.list("arguments", value.arguments, (each, at) => check.needInside(at, each, promptArgument));
};

const promptArgument: Kind = (value, check) => {
  check.needText("name", value.name);
  check.text("title", value.title);
  check.text("description", value.description);
  check.flag("required", value.required);
};

const contents: Kind = (value, check) => {
  const { uri, text, blob, mimeType, _meta } = value;
  check.needText("uri", uri);
  check.text("mimeType", mimeType);
  if (_meta !== undefined) check.object("_meta", _meta);
  if (typeof text === "string") {
    if (blob === undefined) return;
    return check.drop("blob", blob, "use either text or blob");
  }
  if ((text ?? blob ?? undefined) === undefined) {
    return check.refuse("text", undefined, "add text or blob, or use a resource link");
  }
  if (blob === undefined || blob === null) return check.refuse("text", text, "use a string");
  check.text("text", text);
  base64("blob", blob, check);
};

function base64(name: string, value: unknown, check: Check): void {
  const misfit = findBase64Misfit(value);
  if (misfit) check.refuse(name, value, ...misfit);
}

const media: Kind = (value, check) => {
  base64("data", value.data, check);
  check.needText("mimeType", value.mimeType);
};

const BLOCKS: Readonly<Record<string, Kind>> = {
  text: (value, check) => check.needText("text", value.text),
  image: media,
  audio: media,
  resource_link: resource,
  resource: (value, check) => check.needInside("resource", value.resource, contents),
};

/** The content blocks of sampling messages, in addition to {@linkcode BLOCKS}. */
const SAMPLING_BLOCKS: Readonly<Record<string, Kind>> = {
  ...BLOCKS,
  tool_use(value, check) {
    check.needText("id", value.id);
    check.needText("name", value.name);
    check.needObject("input", value.input);
  },
  tool_result(value, check) {
    check.needText("toolUseId", value.toolUseId);
    check.needList("content", value.content, (each, at) => block(each, at, check));
    check.flag("isError", value.isError);
  },
};

function block(value: unknown, name: string | number, check: Check, kinds = BLOCKS): void {
  const type = Object(value).type;
  if (typeof type === "string" && Object.hasOwn(kinds, type)) {
    return check.needInside(name, value, (value, check) => {
      kinds[type](value, check);
      if (value.annotations !== undefined) check.inside("annotations", value.annotations, annotations);
      if (value._meta !== undefined) check.object("_meta", value._meta);
    });
  }
  const remedy = `use one of the types ${Object.keys(kinds).join(", ")}`;
  const state = isObject(value) ? `of the type ${show(type)}` : show(value);
  if (check.isReceived && typeof type === "string") check.note(name, state, remedy);
  else check.refuse(name, value, remedy, state);
}

const implementation: Kind = (value, check) => {
  check.needText("name", value.name);
  check.needText("version", value.version);
  check.text("title", value.title);
  check.text("description", value.description);
  check.text("websiteUrl", value.websiteUrl);
  check.list("icons", value.icons, (each, at) => check.needInside(at, each, icon));
};

/** The results that are not lists, by method. */
const RESULTS: Readonly<Record<string, Kind>> = {
  "tools/call"(value, check) {
    check.needList("content", value.content, (each, at) => block(each, at, check));
    // Refuse another type, because leaving out the member would turn an error into a success.
    const { isError } = value;
    if (isError === null) check.drop("isError", isError, "use true or false");
    else if (isError !== undefined && typeof isError !== "boolean") {
      check.refuse("isError", isError, "use true or false");
    }
  },
  "resources/read": (value, check) =>
    check.needList("contents", value.contents, (each, at) => check.needInside(at, each, contents)),
  "prompts/get"(value, check) {
    check.text("description", value.description);
    check.needList("messages", value.messages, (each, at) => check.needInside(at, each, message));
  },
  "completion/complete": (value, check) => check.needInside("completion", value.completion, completion),
  "initialize"(value, check) {
    check.needText("protocolVersion", value.protocolVersion);
    check.needObject("capabilities", value.capabilities);
    check.needInside("serverInfo", value.serverInfo, implementation);
    check.text("instructions", value.instructions);
  },
  "server/discover"(value, check) {
    check.needList("supportedVersions", value.supportedVersions, (each, at) => check.item(each, at));
    check.needObject("capabilities", value.capabilities);
    check.text("instructions", value.instructions);
  },
};

const message: Kind = (value, check) => {
  const { role } = value;
  if (!isOneOf(role, ROLES)) check.refuse("role", role, toChoice(ROLES));
  block(value.content, "content", check);
};

/** Maximum number of values in a completion, from the specification. */
const MAX_VALUES = 100;

const completion: Kind = (value, check) => {
  const { values, total } = value;
  check.needList("values", values, (each, at) => check.item(each, at));
  if (Array.isArray(values) && values.length > MAX_VALUES) {
    check.refuse("values", values, `use at most ${MAX_VALUES} items`, `an array of ${values.length} items`);
  }
  if (total !== undefined && !Number.isInteger(total)) check.drop("total", total, "use an integer");
  check.flag("hasMore", value.hasMore);
};

/** The parameters of notifications and requests that servers send, by method. */
const PARAMS: Readonly<Record<string, Kind>> = {
  "notifications/progress"(value, check) {
    const { progressToken, progress } = value;
    if (typeof progressToken !== "string" && !Number.isInteger(progressToken)) {
      check.refuse("progressToken", progressToken, "use the token of the request");
    }
    if (!Number.isFinite(progress)) check.refuse("progress", progress, "use a finite number");
    check.number("total", value.total);
    check.text("message", value.message);
  },
  "notifications/message"(value, check) {
    const { level, data } = value;
    if (!isOneOf(level, LOG_LEVELS)) check.refuse("level", level, toChoice(LOG_LEVELS));
    if (data === undefined) check.refuse("data", data, "use a JSON value");
    check.text("logger", value.logger);
  },
  "notifications/resources/updated": (value, check) => check.needText("uri", value.uri),
  "elicitation/create"(value, check) {
    check.needText("message", value.message);
    if (value.mode === "url") check.needText("url", value.url);
    else check.needInside("requestedSchema", value.requestedSchema, form);
  },
  "sampling/createMessage"(value, check) {
    const { maxTokens, modelPreferences } = value;
    check.needList("messages", value.messages, (each, at) => check.needInside(at, each, samplingMessage));
    if (!Number.isInteger(maxTokens)) check.refuse("maxTokens", maxTokens, "use an integer");
    check.text("systemPrompt", value.systemPrompt);
    check.number("temperature", value.temperature);
    check.list("stopSequences", value.stopSequences, (each, at) => check.item(each, at));
    check.oneOf("includeContext", value.includeContext, ["none", "thisServer", "allServers"]);
    if (value.metadata !== undefined) check.object("metadata", value.metadata);
    check.inside("modelPreferences", modelPreferences, preferences);
    check.list("tools", value.tools, (each, at) => check.needInside(at, each, tool));
    check.inside("toolChoice", value.toolChoice, ({ mode }) => check.oneOf("mode", mode, ["auto", "required", "none"]));
  },
};

const form: Kind = (value, check) => {
  const { type, required } = value;
  if (type !== "object") check.refuse("type", type, 'use "object"');
  check.needObject("properties", value.properties);
  check.list("required", required, (each, at) => check.item(each, at));
};

const samplingMessage: Kind = (value, check) => {
  const { role, content } = value;
  if (!isOneOf(role, ROLES)) check.refuse("role", role, toChoice(ROLES));
  if (!Array.isArray(content)) return block(content, "content", check, SAMPLING_BLOCKS);
  check.needList("content", content, (each, at) => block(each, at, check, SAMPLING_BLOCKS));
};

const preferences: Kind = (value, check) => {
  check.list("hints", value.hints, (each, at) => check.needInside(at, each, ({ name }) => check.text("name", name)));
  check.share("costPriority", value.costPriority);
  check.share("speedPriority", value.speedPriority);
  check.share("intelligencePriority", value.intelligencePriority);
};

/** The lists in results, by method: the name of the list, and the check of an entry. */
const LISTS = /* @__PURE__ */ new Map<string, readonly [name: string, kind: Kind]>([
  ["tools/list", ["tools", tool]],
  ["resources/list", ["resources", resource]],
  ["resources/templates/list", ["resourceTemplates", resourceTemplate]],
  ["prompts/list", ["prompts", prompt]],
]);

/** The members of entries that a check covers. All other members must be JSON, so that the list can be sent. */
const CHECKED = ["icons", "annotations", "_meta", "arguments", "execution", "inputSchema", "outputSchema"];

/**
 * Checks the entries in the result of a list method, such as `resources/list`. Leaves out entries whose required members
 * have a wrong type, because a list must not fail because of one entry. Calls `onMisfit` with each misfit.
 */
export function fitEntries<T>(
  method: string,
  entries: readonly T[],
  onMisfit: (misfit: EntryMisfit) => void,
  options: WireOptions = {},
): readonly T[] {
  const [, kind] = LISTS.get(method) ?? [];
  if (!kind) return entries;
  const check = new Check(options);
  let changed: T[] | undefined;
  for (let at = 0; at < entries.length; at++) {
    const entry: unknown = entries[at];
    if (isObject(entry)) {
      kind(entry, check);
      checkOthers(entry, check);
    } else check.refuse("entry", entry, "use an object");
    const fitted = check.finish(entries[at]);
    if (fitted !== entries[at]) changed ??= entries.slice(0, at);
    if (changed && fitted !== undefined) changed.push(fitted);
    if (!check.misfits.length) continue;
    const { uriTemplate, uri = uriTemplate, name }: Members = Object(entry);
    const known = [uri, name].find((each) => typeof each === "string");
    const facts = { name: known === undefined ? undefined : String(known), at, isLeftOut: fitted === undefined };
    for (const misfit of check.misfits.splice(0)) onMisfit({ ...misfit, ...facts });
  }
  return changed ?? entries;
}

function checkOthers(entry: Members, check: Check): void {
  for (const name in entry) {
    const value = entry[name];
    if (typeof value === "string" || typeof value === "number" || typeof value === "boolean" || !value) continue;
    if (!CHECKED.includes(name) && !isSendable(value)) check.drop(name, value, "leave it out", "not JSON");
  }
}

/** Checks the result of a method. Does not check the entries of a list, as {@linkcode fitEntries} does. */
export function fitResult(method: string, result: Members, options: WireOptions = {}): Fitted {
  const check = new Check(options);
  const [name] = LISTS.get(method) ?? [];
  if (name !== undefined) {
    check.needList(name, result[name], () => {});
    check.text("nextCursor", result.nextCursor);
  } else if (Object.hasOwn(RESULTS, method)) RESULTS[method](result, check);
  if (result._meta !== undefined) check.object("_meta", result._meta);
  return { value: check.finish(result), misfits: check.misfits };
}

/** Checks the parameters of a request or notification that a server sends. */
export function fitParams(method: string, params: Members, options: WireOptions = {}): Fitted {
  const check = new Check(options);
  if (Object.hasOwn(PARAMS, method)) PARAMS[method](params, check);
  if (params._meta !== undefined) check.object("_meta", params._meta);
  return { value: check.finish(params), misfits: check.misfits };
}

/** Returns the name of the list in the results of a method, or `undefined` for a method without lists. */
export function findList(method: string): string | undefined {
  return LISTS.get(method)?.[0];
}

/**
 * Describes a misfit in an entry of a list for an error message. The text completes "Cannot list …". `source` names the
 * code that returned the entry.
 */
export function describeEntry(
  method: string,
  { place, state, name, at, isLeftOut }: EntryMisfit,
  source?: string,
): string {
  const kind = method.split("/")[0].slice(0, -1);
  const entry = `${kind} ${name === undefined ? at + 1 : quote(name)}${source === undefined ? "" : ` ${source}`}`;
  return isLeftOut ? `${entry}: ${place} ${state}` : `${place} of ${entry}: it ${state}`;
}

export function describeMisfits(misfits: readonly Misfit[]): string {
  return misfits.map(({ place, state }) => `${place} ${state}`).join("; ");
}

function show(value: unknown): string {
  if (value === undefined) return "missing";
  if (typeof value === "string") return shorten(JSON.stringify(value.slice(0, 100)), 60);
  if (Array.isArray(value)) return isSendable(value) ? shorten(JSON.stringify(value.slice(0, 10)), 60) : "an array";
  return typeof value === "object" && value ? "an object" : typeof value === "function" ? "a function" : String(value);
}
