/**
 * The common parts of the editors for JSON, TOML and YAML.
 *
 * @module
 */
import { isDeepStrictEqual } from "node:util";

/** The file and the keys at which an entry is added. */
export interface EditOptions {
  /** The name of the file in error messages. */
  readonly file: string;
  /** The key of the object with the servers, and the key of the entry. */
  readonly path: readonly [serversKey: string, name: string];
}

/** Whether two values are equal as JSON. The order of properties does not matter. */
export function isEqual(a: unknown, b: unknown): boolean {
  const [one, other] = [a, b].map((value): unknown => value === undefined ? value : JSON.parse(JSON.stringify(value)));
  return isDeepStrictEqual(one, other);
}
