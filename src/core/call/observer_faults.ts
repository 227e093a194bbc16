/**
 * Prints unexpected errors, and those of observers.
 *
 * @module
 */
import { quote } from "../../protocol/errors.ts";
import { printFault } from "../../protocol/printable.ts";
import type { FaultEvent, Observer } from "./observer.ts";

/** Prints an unexpected error, such as `Error 1f3a in tools/call of "add":`. */
export function printEvent({ id, error, server, method, subject }: FaultEvent): void {
  // The subject of a service, such as `service "db"`, is in quotes already.
  const about = subject === undefined || subject.startsWith('service "') ? subject : quote(subject);
  const place = method && about ? `${method} of ${about}` : method ?? (about ? `${about} of ${server}` : server);
  printFault(`${id} in ${place}`, error);
}

/** Methods that have failed. Each is reported once, because it may fail for every event. */
const failed = new WeakMap<Observer, Set<string>>();

/** Prints the first error of each method of an observer. */
export function reportObserver(observer: Observer, name: string, error: unknown): void {
  const names = failed.get(observer) ?? new Set();
  failed.set(observer, names);
  if (names.has(name)) return;
  names.add(name);
  printFault(`in observer.${name}, which is reported once`, error);
}
