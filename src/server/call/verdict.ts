/**
 * Validates the decision that an author's function, such as `allow`, returns. Only `true` grants access, because any
 * other truthy value, such as a promise or a string, is a mistake in the author's code.
 */
import { quote } from "../../core/protocol/errors.ts";
import { isPromiseLike, isStrayPromise } from "../../core/protocol/promises.ts";

/**
 * `asked` names the function, such as `allow`.
 *
 * @throws {TypeError} if the decision is neither `true` nor `false`. If the function is asynchronous, the returned
 * promise rejects with this error.
 */
export function readVerdict(decided: unknown, asked: string): boolean | Promise<boolean> {
  if (typeof decided === "boolean") return decided;
  return isPromiseLike(decided)
    ? Promise.resolve(decided).then((decided) => readSyncVerdict(decided, asked))
    : readSyncVerdict(decided, asked);
}

/** @throws {TypeError} if the decision is neither `true` nor `false`. */
export function readSyncVerdict(decided: unknown, asked: string): boolean {
  if (typeof decided === "boolean") return decided;
  throw new TypeError(`Cannot use the result of ${asked}: it is ${toKind(decided)}; return true or false`);
}

function toKind(value: unknown): string {
  if (isStrayPromise(value)) return "a promise";
  if (value === undefined || value === null) return String(value);
  return typeof value === "string" ? `the text ${quote(value)}` : `a value of type ${typeof value}`;
}
