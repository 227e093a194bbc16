/**
 * What the editors for JSON, TOML and YAML files have in common.
 */
import { isDeepStrictEqual } from "node:util";

export interface EditOptions {
  /** The name of the file in error messages. */
  readonly file: string;
  /** The key of the object that contains the servers, and the key of the entry. */
  readonly path: readonly [serversKey: string, name: string];
  /** Whether the servers are a list, whose entries contain their names as `name`. Only for YAML. */
  readonly isList?: boolean;
  /** Members of a new file. Only for YAML. */
  readonly required?: Readonly<Record<string, string>>;
}

/** Whether two values are equal as JSON. The order of properties does not matter. */
export function isEqual(a: unknown, b: unknown): boolean {
  const [one, other] = [a, b].map((value): unknown => value === undefined ? value : JSON.parse(JSON.stringify(value)));
  return isDeepStrictEqual(one, other);
}
