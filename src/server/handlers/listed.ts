/**
 * Creates handlers from the entries that another server lists. The rules for authors do not apply to such entries.
 */
import { quote } from "../../core/protocol/errors.ts";
import { isObject, type Params } from "../../core/protocol/jsonrpc.ts";
import { INTERNALS } from "../../core/internals.ts";
import { checkOptions, type KnownOptions } from "../../core/known_options.ts";
import { isIcon } from "../engine/icons.ts";
import { type Feature, type Handler, toDefinitions } from "../visibility/feature.ts";
import { HANDLER, HANDLER_ELSEWHERE, HANDLER_HINTS } from "./option_names.ts";

/** Tests of the members that the library reads. A member of a wrong type is left out. */
const TESTS: Readonly<Record<string, (value: unknown) => boolean>> = {
  title: isText,
  description: isText,
  mimeType: isText,
  size: Number.isFinite,
  icons: (value) => Array.isArray(value) && value.every(isIcon),
  arguments: Array.isArray,
  annotations: isObject,
  inputSchema: isObject,
  outputSchema: isObject,
  _meta: isObject,
};

function isText(value: unknown): value is string {
  return typeof value === "string";
}

const { name: _name, ...NAMES } = HANDLER;

/** The options that `from` takes for every kind of handler. */
export const FROM: KnownOptions<keyof typeof NAMES> = {
  names: NAMES,
  hints: HANDLER_HINTS,
  elsewhere: HANDLER_ELSEWHERE,
};

/** Maximum length of a name or URI in characters. */
const MAX_NAME = 2000;

/** What the author passes to `from`. */
export interface FromGiven {
  /** Kind of the handler, for messages. */
  readonly kind: string;
  readonly listed: unknown;
  /** The member that identifies the entry. */
  readonly key?: string;
  readonly run: unknown;
  readonly options?: object;
  readonly known?: KnownOptions;
}

/**
 * Calls `make` with a copy of an entry, without members of a wrong type. Returns a handler that is not served if `make`
 * throws, because one odd entry must not stop a proxy.
 *
 * @throws {TypeError} if `run` is not a function, or an option is unknown or invalid.
 */
export function fromListed<H extends Handler>(
  { kind, listed, key = "name", run, options = {}, known = FROM }: FromGiven,
  make: (listed: Params & { readonly name: string }) => H,
): H {
  let place = `a ${kind} of another server`;
  checkOptions(`make ${place}`, options, known);
  if (typeof run !== "function") throw new TypeError(`Cannot make ${place}: run is not a function; pass a function`);
  try {
    const copy: Record<string, unknown> = JSON.parse(JSON.stringify(listed));
    const subject = copy[key];
    if (isText(subject)) place = `${kind} ${quote(subject)} of another server`;
    if (!isText(subject) || !subject || subject.length > MAX_NAME) {
      throw new TypeError(`its ${key} is not a text of 1 to ${MAX_NAME} characters`);
    }
    for (const [name, test] of Object.entries(TESTS)) if (!test(copy[name])) delete copy[name];
    return make({ ...copy, name: isText(copy.name) ? copy.name : subject });
  } catch (error) {
    const name = `${place} ${++skips}`;
    const definition = new TypeError(`Cannot serve ${place}: ${Object(error).message}`, { cause: error });
    const internals = { feature: skipped, key: name, definition, remake: () => handler };
    // The cast is safe, because no feature of the handlers of this kind gets the handler.
    const handler = { name, run, read: run, [INTERNALS]: internals } as unknown as H;
    return handler;
  }
}

let skips = 0;

/** The feature of handlers that cannot be served. It reports all of them with one error. */
const skipped: Feature = {
  name: "skipped",
  compile(handlers, { report, state }) {
    const reported = state.slot(skipped, () => new WeakSet());
    const [first, ...others] = toDefinitions<TypeError>(handlers).filter((each) => !reported.has(each));
    for (const each of others) reported.add(each);
    if (first) {
      reported.add(first);
      first.message += others.length ? `; other entries that cannot be served: ${others.length}` : "";
      report(first);
    }
    return { capabilities: {}, methods: {} };
  },
};
