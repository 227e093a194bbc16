/**
 * What the editors of configuration files have in common.
 *
 * @module
 */

/** Where an entry goes. */
export interface EditOptions {
  /** The file's name for the user. */
  readonly file: string;
  /** The key of the object that holds the entry, and that of the entry. */
  readonly path: readonly [holder: string, name: string];
}
