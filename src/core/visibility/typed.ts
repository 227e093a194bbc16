/**
 * What the compiler knows of a handler or a server, so that a client can be typed from it.
 *
 * @module
 */

/** The key of {@linkcode Typed}. It exists for the compiler only. */
export declare const TYPES: unique symbol;

/** Carries a type. No object has the field. */
export interface Typed<T> {
  /**
   * Never set.
   *
   * @ignore
   */
  readonly [TYPES]?: T;
}
