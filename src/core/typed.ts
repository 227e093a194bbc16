/** The key of the field in {@linkcode Typed}. Does not exist at run time. */
export declare const TYPES: unique symbol;

/** Stores the type `T` in a field that no object has at run time. */
export interface Typed<T> {
  /**
   * Never set.
   *
   * @ignore
   */
  readonly [TYPES]?: T;
}
