/**
 * Checks the types of the values that a server sends. Without these checks, a client would pass on values that do not
 * have the types that its methods promise.
 *
 * @see specification/2026-07-28/schema
 */
import { toPrintableLine } from "../core/kit/printable.ts";
import { McpError } from "../core/protocol/errors.ts";
import type { Result } from "../core/protocol/jsonrpc.ts";
import {
  describeEntry,
  describeMisfits,
  type EntryMisfit,
  fitEntries,
  fitResult,
  type Members,
} from "../core/protocol/wire.ts";

/**
 * Called with the description of a member that has a wrong type and was left out. A test client throws, because strict
 * clients refuse the whole list or result.
 */
export type OnMisfit = (text: string) => void;

/** Maximum number of problems that are reported for one list. */
const MAX_PROBLEMS = 10;

export function toMisfit(what: string, state: string): McpError {
  return new McpError(0, toPrintableLine(`Cannot use the result of ${what}: ${state}`), undefined, {});
}

/** Leaves out members of a wrong type, and entries whose required members have a wrong type. */
export function readEntries(method: string, entries: readonly Members[], onMisfit: OnMisfit): readonly Members[] {
  const problems: string[] = [];
  const add = (misfit: EntryMisfit) => void problems.push(describeEntry(method, misfit));
  const read = fitEntries(method, entries, add, { isReceived: true });
  const more = problems.length - MAX_PROBLEMS;
  for (const [at, problem] of problems.slice(0, MAX_PROBLEMS).entries()) {
    const others = at === MAX_PROBLEMS - 1 && more ? `; other members of a wrong type in the list: ${more}` : "";
    onMisfit(toPrintableLine(`Cannot use ${problem}${others}`));
  }
  return read;
}

/**
 * Returns a result without optional members of a wrong type. `what` names the result in errors.
 *
 * @throws {McpError} if a required member has a wrong type.
 */
export function readResult(
  method: string,
  result: Result,
  { what, onMisfit }: { readonly what: string; readonly onMisfit: OnMisfit },
): Result {
  // Some servers leave out the content if they send structured content. Other clients continue with an empty list.
  const lacksContent = method === "tools/call" && result.content === undefined;
  const whole = lacksContent ? { ...result, content: [] } : result;
  const { value, misfits } = fitResult(method, whole, { isReceived: true });
  if (!value) throw toMisfit(what, describeMisfits(misfits));
  const problems = lacksContent ? [{ place: "content", state: "is missing; use an array" }, ...misfits] : misfits;
  if (problems.length) {
    onMisfit(toPrintableLine(`Cannot use a part of the result of ${what}: ${describeMisfits(problems)}`));
  }
  return value;
}
