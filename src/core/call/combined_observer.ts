/**
 * Combines the observers of a server into one, which never throws.
 *
 * @module
 */
import type { FaultEvent, Observer } from "./observer.ts";
import { printEvent, reportObserver } from "./observer_faults.ts";

/** The names of all events. */
export const EVENTS: readonly (keyof Observer)[] = [
  "message",
  "start",
  "call",
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

/** Creates the observer that prints unexpected errors with `console.error`. It is the default for `fault`. */
export function consoleObserver(): Pick<Observer, "fault"> & { fault(event: FaultEvent): void } {
  return { fault: printEvent };
}

/**
 * Combines observers into one. It has a method only for events that one of them handles, so
 * `observer.call?.({ … })` builds nothing otherwise. Its methods never throw.
 *
 * @throws {TypeError} if one of them is no object, or has an own method that is not an event.
 */
export function combineObservers(observers: Observer | readonly Observer[] = []): Observer {
  const all = [observers].flat();
  all.forEach(check);
  if (!all.some(({ fault }) => fault)) all.push(consoleObserver());
  const combined: Record<string, (event: never) => void> = {};
  for (const name of EVENTS) {
    const listening = all.filter((observer) => observer[name]);
    const [only] = listening;
    if (listening.length === 1) combined[name] = (event) => notify(only, name, event);
    else if (only) combined[name] = (event) => listening.forEach((observer) => notify(observer, name, event));
  }
  return combined;
}

function notify(observer: Observer, name: keyof Observer, event: never): void {
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
    // An error that cannot be printed must not cause another one.
  }
}

// Only own methods of plain objects are checked, because a class may have other methods.
function check(observer: Observer): void {
  const refuse = (state: string) =>
    new TypeError(`Cannot create a server: ${state}; the events are ${EVENTS.join(", ")}`);
  if (Object(observer) !== observer) throw refuse(`observer is ${observer}`);
  if (typeof observer === "function") throw refuse("observer is a function, not an object with methods");
  const known: readonly string[] = EVENTS;
  if (Object.getPrototypeOf(observer) === Object.prototype) {
    for (const [name, value] of Object.entries(observer)) {
      if (typeof value === "function" && !known.includes(name)) throw refuse(`observer.${name} is not an event`);
    }
  }
  for (const name of EVENTS) {
    const method: unknown = observer[name];
    if (method !== undefined && typeof method !== "function") throw refuse(`observer.${name} is not a function`);
  }
}
