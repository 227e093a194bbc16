/**
 * The options of the editors for JSON, TOML and YAML.
 *
 * @module
 */

/** Where to add an entry. */
export interface EditOptions {
  /** The name of the file in error messages. */
  readonly file: string;
  /** The key of the object with the servers, and the key of the entry. */
  readonly path: readonly [serversKey: string, name: string];
}
