/**
 * Checks the names and types of options at run time, because programs may run without type checks. If an option with a
 * wrong name or type were ignored, a server could run without protection such as authentication.
 */
import { isObject } from "./protocol/jsonrpc.ts";
import { findSuggestion } from "./kit/suggestions.ts";

/**
 * The rule for an option's value. `true` accepts any value, because the code that reads the option checks the value. A
 * list names the accepted strings. A test accepts some values, and its remedy says which. A function returns what is
 * wrong with the value. `"text"` and `"hint"` are for optional members of the protocol, for which `null` counts as
 * absent, because databases return `null`.
 */
export type OptionRule =
  | true
  | keyof typeof TYPES
  | keyof typeof LISTS
  | readonly string[]
  | KnownOptions
  | { readonly each: KnownOptions }
  | { readonly test: (value: unknown) => boolean; readonly remedy: string }
  | { readonly findProblem: (value: unknown) => string | undefined };

/** The options that a function accepts. `K` are the names of the options. */
export interface KnownOptions<K extends string = string> {
  readonly names: Readonly<Record<K, OptionRule>>;
  /** Option names from other libraries, each with the equivalent option in this library. */
  readonly hints?: Readonly<Record<string, K | `${K}.${string}`>>;
  /** Names of options that another function accepts, each with a remedy for the error message. */
  readonly elsewhere?: Readonly<Record<string, string>>;
  /** Whether a value that is not an object, such as a list, is left to the code that reads the option. */
  readonly hasOtherForms?: boolean;
  /** Whether `null` counts as absent, as for an optional member of the protocol. */
  readonly isNullable?: boolean;
  /**
   * Whether only plain objects are checked, because an instance of a class may have further fields. Set this field for
   * objects that an author implements, such as an authentication.
   */
  readonly isPlain?: boolean;
}

/**
 * Checks that each option is known and has the right type. Options that are `undefined` count as absent.
 *
 * @param action the action for the error message, such as `make tool "add"`
 * @throws {TypeError} that names the option, and suggests a similar name.
 */
export function checkOptions(action: string, given: unknown, known: KnownOptions): void {
  if (!isObject(given)) {
    const [first] = Object.keys(known.names);
    throw new TypeError(`Cannot ${action}: its options are ${show(given)}; write an object such as { ${first}: … }`);
  }
  // Require a plain object, because groups copy the options, and a copy has no inherited properties.
  if (!isPlain(given)) {
    throw new TypeError(`Cannot ${action}: its options are ${NOT_PLAIN}`);
  }
  checkNames(action, given, known, "");
}

/** Returns the name by which error messages refer to an object that a factory creates, such as `tool "add"`. */
export function toPlace(kind: string, given: unknown, name = "name"): string {
  const named = isObject(given) ? given[name] : undefined;
  return typeof named === "string" ? `${kind} ${JSON.stringify(named.slice(0, 200))}` : `a ${kind}`;
}

const NOT_PLAIN = "not a plain object; write an object literal";

function checkNames(action: string, given: object, known: KnownOptions, path: string): void {
  for (const [name, value] of Object.entries(given)) {
    // Treat `undefined` as absent, even for unknown names.
    if (value === undefined) continue;
    if (!Object.hasOwn(known.names, name)) {
      throw new TypeError(`Cannot ${action}: unknown option ${path}${name}; ${toRemedy(name, known, path)}`);
    }
    checkValue(action, value, known.names[name], path + name);
  }
}

function checkValue(action: string, value: unknown, rule: OptionRule, path: string): void {
  const refuse = (state: string) => new TypeError(`Cannot ${action}: ${path} ${state}`);
  if (typeof rule === "string" && isType(rule)) {
    const [type, state, isNullable] = TYPES[rule];
    if (toType(value) !== type && !(isNullable && value === null)) {
      throw refuse(`is ${show(value)}; it must be ${state}`);
    }
  } else if (typeof rule === "string") {
    const { type, state } = LISTS[rule];
    if (!Array.isArray(value)) throw refuse(`is ${show(value)}; ${state}`);
    const odd = type ? value.findIndex((each) => toType(each) !== type) : -1;
    if (odd >= 0) throw refuse(`contains ${show(value[odd])}; ${state}`);
  } else if (isList(rule)) {
    if (typeof value === "string" && rule.includes(value)) return;
    const texts = rule.map((each) => JSON.stringify(each));
    const last = texts.pop();
    throw refuse(`is ${show(value)}; it must be ${texts.length ? `${texts.join(", ")} or ${last}` : last}`);
  } else if (isPromise(value)) {
    // A promise has no fields, so it would count as an object in which nothing is set, such as guards that guard
    // nothing.
    throw refuse("is a promise; await it");
  } else if (rule === true) {
    return;
  } else if ("test" in rule) {
    if (!rule.test(value)) throw refuse(`is ${show(value)}; ${rule.remedy}`);
  } else if ("findProblem" in rule) {
    const problem = rule.findProblem(value);
    if (problem !== undefined) throw refuse(problem);
  } else if ("each" in rule) {
    if (typeof value !== "object" || !value) throw refuse(`is ${show(value)}; it must contain objects`);
    for (const [name, item] of Object.entries(value)) checkValue(action, item, rule.each, `${path}.${name}`);
  } else if (!isObject(value)) {
    if (!rule.hasOtherForms && !(rule.isNullable && value === null)) {
      throw refuse(`is ${show(value)}; it must be an object`);
    }
  } else if (isPlain(value) || rule.hasOtherForms && !rule.isPlain) {
    checkNames(action, value, rule, `${path}.`);
  } else if (!rule.isPlain) {
    // The fields of other objects, such as a Map or an instance with getters, cannot be checked.
    throw refuse(`is ${NOT_PLAIN}`);
  }
}

/** Tests whether `await` would wait for a value. Code that reads a value with getters that throw refuses it itself. */
function isPromise(value: unknown): boolean {
  try {
    return toType(Object(value).then) === "function";
  } catch {
    return false;
  }
}

/** Objects from other JavaScript realms also count. */
export function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

/** The type of each rule's value, the end of the rule's error message, and whether `null` counts as absent. */
const TYPES = {
  function: ["function", "a function", false],
  boolean: ["boolean", "true or false", false],
  text: ["string", "a string", true],
  hint: ["boolean", "true or false", true],
} as const;

function isType(rule: string): rule is keyof typeof TYPES {
  return rule in TYPES;
}

/**
 * Returns the members of the protocol in `options`, without members that are `null`. Pass only members for which `null`
 * counts as absent, and never options such as `allow`.
 */
export function withoutNulls<T extends object>(options: T): T {
  // The cast is safe, because only optional members can be `null` here.
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== null)) as T;
}

/** The element type of each list rule, and the end of the rule's error message. */
const LISTS = {
  list: { type: undefined, state: "it must be a list; write it in brackets" },
  functions: { type: "function", state: "it must be a list of functions" },
  texts: { type: "string", state: "it must be a list of strings" },
} as const;

function toType(value: unknown): string {
  return typeof value;
}

// `Array.isArray` does not narrow the type of a readonly list.
function isList(rule: OptionRule): rule is readonly string[] {
  return Array.isArray(rule);
}

function toRemedy(name: string, { names, hints = {}, elsewhere = {} }: KnownOptions, path: string): string {
  if (Object.hasOwn(elsewhere, name)) return elsewhere[name];
  const meant = Object.hasOwn(hints, name) ? hints[name] : findMeant(name, Object.keys(names));
  return meant === undefined ? "remove it" : `did you mean ${path}${meant}?`;
}

/**
 * Finds the most similar known name, a known name with which `name` begins or ends, such as `scopes` for
 * `requiredScopes`, or a known name that begins with `name`, such as `perMs` for `per`.
 */
function findMeant(name: string, names: readonly string[]): string | undefined {
  const lower = name.toLowerCase();
  const isPart = (each: string) => lower.startsWith(each.toLowerCase()) || lower.endsWith(each.toLowerCase());
  return findSuggestion(name, names) ?? names.find((each) => each.length > 3 && isPart(each)) ??
    names.find((each) => name.length > 2 && each.toLowerCase().startsWith(lower));
}

/** Describes a value for an error message without showing its contents. */
export function show(value: unknown): string {
  if (Array.isArray(value)) return "a list";
  if (typeof value === "string") return JSON.stringify(value.length > 100 ? `${value.slice(0, 100)}…` : value);
  return typeof value === "object" && value ? "an object" : typeof value === "function" ? "a function" : String(value);
}
