/**
 * Checks values against a shape, which is an object of schemas. Loaded when the first value is validated.
 */
import { isPromiseLike } from "../protocol/promises.ts";
import type { Shape, StandardSchema } from "./schema.ts";
import { checkResult } from "./standard_result.ts";

/** Omits properties that the shape does not define. */
export function validateShape(shape: Shape, value: unknown): StandardSchema.Result | Promise<StandardSchema.Result> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return { issues: [{ message: "expected an object" }] };
  }
  const own = new Map(Object.entries(value));
  const names = Object.keys(shape);
  const results = names.map((name) => {
    const result = shape[name]["~standard"].validate(own.get(name));
    if (!isPromiseLike(result)) return result;
    const promise = Promise.resolve(result);
    // Mark the rejection as handled, because this promise is never awaited if a later schema throws.
    promise.catch(() => {});
    return promise;
  });
  const join = (results: readonly StandardSchema.Result[]): StandardSchema.Result => {
    results.forEach(checkResult);
    const issues = results.flatMap(({ issues = [] }, i) =>
      issues.map(({ message, path = [] }) => ({ message, path: [names[i], ...path] }))
    );
    if (issues.length) return { issues };
    const entries = results.map((result, i) => [names[i], result.issues ? undefined : result.value] as const);
    return { value: Object.fromEntries(entries.filter(([, made]) => made !== undefined)) };
  };
  const ready = results.flatMap((result) => result instanceof Promise ? [] : [result]);
  return ready.length === results.length ? join(ready) : Promise.all(results).then(join);
}
