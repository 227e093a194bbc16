/**
 * Checks values by a shape, an object of schemas. Loaded with the first value.
 *
 * @module
 */
import type { Shape, StandardResult } from "./schema.ts";

/** Checks an object property by property. Properties that the shape does not name are left out. */
export function validateShape(shape: Shape, value: unknown): StandardResult | Promise<StandardResult> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return { issues: [{ message: "expected an object" }] };
  }
  const own = new Map(Object.entries(value));
  const names = Object.keys(shape);
  const results = names.map((name) => {
    const result = shape[name]["~standard"].validate(own.get(name));
    // If a later one throws, nobody waits for this one.
    if (result instanceof Promise) result.catch(() => {});
    return result;
  });
  const join = (results: readonly StandardResult[]): StandardResult => {
    const issues = results.flatMap(({ issues = [] }, i) =>
      issues.map(({ message, path = [] }) => ({ message, path: [names[i], ...path] }))
    );
    if (issues.length) return { issues };
    const entries = results.map((result, i) => [names[i], result.issues ? undefined : result.value] as const); // a pair
    return { value: Object.fromEntries(entries.filter(([, made]) => made !== undefined)) };
  };
  const ready = results.flatMap((result) => result instanceof Promise ? [] : [result]);
  return ready.length === results.length ? join(ready) : Promise.all(results).then(join);
}
