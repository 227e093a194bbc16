/**
 * The description of an operation for functions of the author, such as `as`.
 */

/** An operation of an OpenAPI document. */
export interface ApiOperation {
  /** The `operationId`. If it is missing or not unique, the name of the tool. */
  readonly id: string;
  /** The name of the tool, without the changes of `transform`. */
  readonly name: string;
  /** The method in capital letters, such as `GET`. */
  readonly method: string;
  /** The path with its parameters, such as `/pets/{id}`. */
  readonly path: string;
  /** The tags of the operation in the document. */
  readonly tags: readonly string[];
  /** The short description in the document. */
  readonly summary?: string;
  /** The long description in the document. */
  readonly description?: string;
  /** Whether the document marks the operation as deprecated. */
  readonly isDeprecated: boolean;
  /**
   * The URLs of the servers that the document names for this operation or its path instead of the servers of the whole
   * document. They may be relative, or contain variables. Empty for most operations.
   */
  readonly servers: readonly string[];
}
