/**
 * Checks values of the server's author before they are sent, because strict clients refuse a whole list or result that
 * contains a member of a wrong type. Loaded when the author's code first returns such a value.
 */
import { isFrozenError } from "../../core/kit/frozen_error.ts";
import { quote, ResultError } from "../../core/protocol/errors.ts";
import { isObject, readResultType, type Result } from "../../core/protocol/jsonrpc.ts";
import { describeEntry, describeMisfits, findList, fitEntries, fitResult } from "../../core/protocol/wire.ts";
import type { Call } from "./call.ts";

/**
 * Checks a result that the library did not create, such as the result of a middleware. `source` names the code that
 * returned the result. Members of a list that have a wrong type are left out and reported, because a list must not fail
 * because of one entry.
 *
 * @throws {ResultError} that names the handler and the member, if any other result has a member of a wrong type.
 */
export function checkResult(call: Call, result: unknown, source: string): Result {
  const { method, subject } = call;
  if (method === "tools/call" && isPlainText(result)) return result;
  const refuse = (state: string) =>
    new ResultError(
      `Cannot send the result of ${method}${
        subject === undefined ? "" : ` ${quote(subject)}`
      } from ${source}: ${state}`,
    );
  if (!isObject(result)) throw refuse("it is not an object; return the result of next()");
  // The extension that created the result defines its members.
  if (readResultType(result) !== undefined) return result;
  const { value, misfits } = fitResult(method, result);
  const list = findList(method);
  const entries = list === undefined ? undefined : result[list];
  if (!value || misfits.length && !Array.isArray(entries)) throw refuse(describeMisfits(misfits));
  if (list === undefined || !Array.isArray(entries)) return value;
  for (const { place, state } of misfits) {
    report(call, new TypeError(`Cannot send ${place} of ${method} from ${source}: it ${state}`));
  }
  const fitted = checkEntries(call, entries, { method, source: `from ${source}` });
  return fitted === entries ? value : { ...value, [list]: fitted };
}

/** Checks the result of a middleware, like {@linkcode checkResult}. */
export function checkMiddleware(call: Call, result: unknown): Result | Promise<Result> {
  const check = () => checkResult(call, result, "middleware");
  // Slow guards may still check messages that the middleware has not awaited.
  return call.guard ? call.guard.said().then(check) : check();
}

/** Adds the remedy to the error of middleware that has changed a part of a result that all callers get. */
export function explainFrozen({ method }: Call, error: unknown): unknown {
  const list = findList(method);
  if (!isFrozenError(error) || !list && !/^(initialize|server\/discover)$/.test(method)) return error;
  const entry = list === "resourceTemplates" ? "template" : list?.slice(0, -1);
  const copy = entry
    ? `{ ...${entry}, description }`
    : method === "initialize"
    ? "{ ...result, capabilities: { ...result.capabilities, tools: {} } }"
    : "{ ...serverInfo, description }";
  return new TypeError(
    `Cannot change the result of ${method} in middleware: all callers get the same objects, which are frozen; ` +
      `return a copy, such as ${copy}`,
    { cause: error },
  );
}

/** Fast path: tests whether a value is the result of a tool with only text, which needs no further check. */
function isPlainText(result: unknown): result is Result {
  if (!isObject(result)) return false;
  const { content, isError, _meta, resultType } = result;
  return _meta === undefined && resultType === undefined && (isError === undefined || typeof isError === "boolean") &&
    Array.isArray(content) && content.every(isTextBlock);
}

function isTextBlock(block: unknown): boolean {
  if (!isObject(block) || block.type !== "text" || typeof block.text !== "string") return false;
  for (const name in block) if (name !== "type" && name !== "text") return false;
  return true;
}

export interface CheckedList {
  readonly method: string;
  /** The code that returned the entries, such as `of "note://{id}"`. */
  readonly source: string;
}

/**
 * Returns the entries that can be sent, without members of a wrong type. Reports what was left out with one error,
 * because all entries of a list often have the same mistake.
 */
export function checkEntries<T>(call: Call, entries: readonly T[], { method, source }: CheckedList): readonly T[] {
  const problems: string[] = [];
  const fitted = fitEntries(method, entries, (misfit) => void problems.push(describeEntry(method, misfit, source)));
  const [first, ...others] = problems;
  if (first === undefined) return fitted;
  const more = others.length ? `; other members of a wrong type in the list: ${others.length}` : "";
  report(call, new TypeError(`Cannot list ${first}${more}`));
  return fitted;
}

function report(call: Call, error: Error): void {
  call.host.parts?.report(error, call);
}
