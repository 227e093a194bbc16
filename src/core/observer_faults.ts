/**
 * Reports errors of observers.
 *
 * @module
 */
import { printFault } from "../protocol/printable.ts";
import type { Observer } from "./observer.ts";

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
