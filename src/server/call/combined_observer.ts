/**
 * Combines a server's observers into one observer that never throws. Prints the errors that the observers throw.
 */
import { quote } from "../../core/protocol/errors.ts";
import { printFault } from "../../core/kit/error_log.ts";
import type { FaultEvent, Observer, StartEvent, StoreEvent } from "./observer.ts";

/** The names of all event methods. `around` is not an event. */
export const EVENTS: readonly Exclude<keyof Observer, "around">[] = [
  "message",
  "start",
  "call",
  "asked",
  "refused",
  "limit",
  "fault",
  "session",
  "notification",
  "subscription",
  "stream",
  "service",
  "store",
  "auth",
  "handlers",
  "close",
];

/**
 * Creates an observer that prints unexpected errors and store failures with `console.error`. The server uses this
 * observer for events that no other observer handles.
 */
export function consoleObserver(): Pick<Observer, "fault" | "store"> & {
  fault(event: FaultEvent): void;
  store(event: StoreEvent): void;
} {
  return { fault: printEvent, store: printStore };
}

/**
 * Combines observers into one observer. The combined observer has a method only for events that at least one observer
 * handles. Therefore `observer.call?.({ … })` builds no event object if no observer handles the event. The methods
 * never throw.
 *
 * @throws {TypeError} if an observer is not an object, or a plain object has a method that is not an event.
 */
export function combineObservers(observers: Observer | readonly Observer[] = []): Observer {
  const all = [observers].flat();
  all.forEach(check);
  const { fault, store } = consoleObserver();
  if (!all.some(({ fault }) => fault)) all.push({ fault });
  if (!all.some(({ store }) => store)) all.push({ store });
  const combined: Record<string, (event: never) => void> & Pick<Observer, "around"> = {};
  for (const name of EVENTS) {
    const listening = all.filter((observer) => observer[name]);
    const [only] = listening;
    if (listening.length === 1) combined[name] = (event) => notify(only, name, event);
    else if (only) combined[name] = (event) => listening.forEach((observer) => notify(observer, name, event));
  }
  const wrapping = all.filter(({ around }) => around);
  if (wrapping.length) {
    combined.around = (event, run) =>
      wrapping.reduceRight((run, observer) => () => runAround(observer, event, run), run)();
  }
  return combined;
}

/** Runs the call exactly once. Returns its result even if `around` throws or returns a different value. */
function runAround<T>(observer: Observer, event: StartEvent, run: () => T): T {
  let ended: { readonly value: T } | { readonly error: unknown } | undefined;
  const runOnce = () => {
    if (ended) throw new TypeError("Cannot run a call: around must call run() only once");
    try {
      const value = run();
      ended = { value };
      return value;
    } catch (error) {
      ended = { error };
      throw error;
    }
  };
  try {
    const returned = observer.around?.(event, runOnce);
    const isKept = ended && "value" in ended && ended.value === returned;
    if (!isKept && returned instanceof Promise) returned.catch(() => {});
    if (!isKept) {
      report(
        observer,
        "around",
        new TypeError("Cannot run a call: around must return the value of run() unchanged"),
      );
    }
  } catch (error) {
    if (!ended || !("error" in ended) || ended.error !== error) report(observer, "around", error);
  }
  if (!ended) return run();
  if ("error" in ended) throw ended.error;
  return ended.value;
}

function notify(observer: Observer, name: typeof EVENTS[number], event: never): void {
  try {
    const returned: unknown = observer[name]?.(event);
    if (returned instanceof Promise) returned.catch((error) => report(observer, name, error));
  } catch (error) {
    report(observer, name, error);
  }
}

function report(observer: Observer, name: string, error: unknown): void {
  try {
    reportObserver(observer, name, error);
  } catch {
    // Ignore a failure to print, because it must not cause a further error.
  }
}

// Check for unknown methods only in plain objects, because a class may have methods that are not events.
function check(observer: Observer): void {
  const refuse = (state: string) =>
    new TypeError(
      `Cannot create a server: ${state}; an observer can have the methods around, ${EVENTS.join(", ")}`,
    );
  if (Object(observer) !== observer) throw refuse(`observer is ${observer}`);
  if (typeof observer === "function") throw refuse("observer is a function");
  const known: readonly string[] = [...EVENTS, "around"];
  if (Object.getPrototypeOf(observer) === Object.prototype) {
    for (const [name, value] of Object.entries(observer)) {
      if (typeof value === "function" && !known.includes(name)) throw refuse(`observer.${name} is not an event`);
    }
  }
  for (const name of [...EVENTS, "around"] as const) {
    const method: unknown = observer[name];
    if (method !== undefined && typeof method !== "function") throw refuse(`observer.${name} is not a function`);
  }
}

const PART = /^(service|extension) "/;

function printEvent({ id, error, server, method, subject, isUnawaited }: FaultEvent): void {
  // Do not quote the subjects of services and extensions, because their names are already quoted.
  const about = subject && !PART.test(subject) ? quote(subject) : subject;
  const place = method && about ? `${method} of ${about}` : method ?? (about ? `${about} of ${server}` : server);
  const hint = isUnawaited ? ", in a promise that no code awaits" : "";
  printFault(`${id} in ${place}${hint}`, error);
}

function printStore({ state, operation, error }: StoreEvent): void {
  if (state === "recovered") console.error(`The store has recovered${operation ? ` (${operation})` : ""}`);
  else printFault(`in the store${operation ? ` during ${operation}` : ""} (${state})`, error);
}

/** Names of methods that have thrown, by observer. A method is reported once, because it may throw for every event. */
const failed = new WeakMap<Observer, Set<string>>();

/** Prints only the first error of each method of an observer. */
function reportObserver(observer: Observer, name: string, error: unknown): void {
  const names = failed.get(observer) ?? new Set();
  failed.set(observer, names);
  if (names.has(name)) return;
  names.add(name);
  printFault(`in observer.${name}, whose further errors are not printed`, error);
}
