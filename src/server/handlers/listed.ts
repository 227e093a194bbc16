/**
 * Creates handlers from the entries that another server lists. The rules for authors do not apply to such entries.
 */
import { isObject, type Params } from "../../core/protocol/jsonrpc.ts";
import { measureJson } from "../../core/protocol/json_size.ts";
import { LazyModule } from "../../core/protocol/lazy_module.ts";
import { INTERNALS } from "../../core/internals.ts";
import { checkOptions, type KnownOptions } from "../../core/known_options.ts";
import { isIcon } from "../engine/icons.ts";
import type { Feature, Handler } from "../visibility/feature.ts";
import { type FromGiven, LIMITS, MAX_NAME, type Skipped } from "./listed_entry.ts";

/** Tests of the members that the library reads. A member of a wrong type is left out. */
const TESTS: Readonly<Record<string, (value: unknown) => boolean>> = {
  title: isText,
  description: isText,
  icons: (value) => Array.isArray(value) && value.every(isIcon),
  annotations: isObject,
  inputSchema: isObject,
  outputSchema: isObject,
  _meta: isObject,
};

function isText(value: unknown): value is string {
  return typeof value === "string";
}

/** The options that the author sets in addition to an entry, if the kind of handler has them. */
const ADDED: readonly string[] = [
  ...["use", "services", "mapError", "tags", "allow", "scopes", "requires", "about", "complete"],
  ...["subscribe", "unsubscribe", "ttlMs", "cacheScope"],
];

function toAdded({ names, hints = {}, elsewhere }: KnownOptions): KnownOptions {
  const isAdded = (name: string) => ADDED.includes(name);
  const others = Object.keys(names).filter((name) => !isAdded(name));
  const remedies = others.map((name) => [name, "it comes from the entry or the second argument; use transform()"]);
  return {
    names: Object.fromEntries(Object.entries(names).filter(([name]) => isAdded(name))),
    hints: Object.fromEntries(Object.entries(hints).filter(([, name]) => isAdded(name))),
    elsewhere: { ...Object.fromEntries(remedies), ...elsewhere },
  };
}

/**
 * Calls `make` with a copy of an entry, without members of a wrong type. Returns a handler that is not served if `make`
 * throws, because one odd entry must not stop a proxy.
 *
 * @throws {TypeError} if an option is unknown or invalid, or the author has not passed a function.
 */
export function fromListed<H extends Handler>(
  given: FromGiven,
  make: (listed: Params & { readonly name: string }) => H,
): H {
  const { kind, listed, run, key = "name", options = {}, known } = given;
  checkOptions(`make a ${kind} from an entry`, options, toAdded(known));
  // What the author passes is checked here, because errors of `make` do not stop the server.
  if (typeof run !== "function") throw new TypeError(`Cannot make a ${kind}: the second argument is not a function`);
  let error: unknown;
  try {
    const text = JSON.stringify(listed);
    const copy: Record<string, unknown> = JSON.parse(text);
    const subject = copy[key];
    if (isText(subject) && subject && subject.length <= MAX_NAME && !measureJson(text, LIMITS).excess) {
      for (const [name, test] of Object.entries(TESTS)) if (!test(copy[name])) delete copy[name];
      return make({ ...copy, name: isText(copy.name) ? copy.name : subject });
    }
  } catch (thrown) {
    error = thrown;
  }
  return toSkipped<H>({ kind, listed, key, error });
}

/** Returns a handler that is not served. The server reports the reason. */
export function toSkipped<H extends Handler>(definition: Skipped): H {
  const name = `${definition.kind} ${++skips}`;
  // The cast is safe, because no feature of this kind of handlers gets the handler.
  const handler = {
    name,
    [INTERNALS]: { feature: skipped, key: name, definition, remake: () => handler },
  } as unknown as H;
  return handler;
}

let skips = 0;

/** Few servers have entries that cannot be served. */
export const lazySkipped: LazyModule<typeof import("./skipped.ts")> = /* @__PURE__ */ new LazyModule(() =>
  import("./skipped.ts")
);

const skipped: Feature = {
  name: "skipped",
  compile(handlers, core) {
    void lazySkipped.load().then((module) => module.report(handlers, core));
    return { capabilities: {}, methods: {} };
  },
};
