/**
 * Types of a handler or a server that exist only for the compiler, so that a client can derive its types from them.
 *
 * @module
 */

/** The key of {@linkcode Typed}. It exists only for the compiler. */
export declare const TYPES: unique symbol;

/** Carries a type. At run time, no object has this field. */
export interface Typed<T> {
  /**
   * Never set.
   *
   * @ignore
   */
  readonly [TYPES]?: T;
}
