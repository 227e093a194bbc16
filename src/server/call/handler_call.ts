/**
 * Calls of handlers as data: which handler was called, and which other handlers it has called for its caller.
 */

/** A call to a handler. */
export interface HandlerCall {
  /** Method, such as `tools/call`. */
  readonly method: string;
  /** The parameters that name the handler, such as `{ name: "add" }`. Defaults to `{}`. */
  readonly params?: { readonly [name: string]: unknown };
  /**
   * URIs of the resources that the handler has read with `ctx.readResource` for its caller, if not every caller may read
   * them. The caller needs the rights to these resources too. An entry that begins with `+` is the JSON of the method and
   * parameters of another handler that the handler has called, such as `+["tools/call",{"name":"add"}]`. An entry that
   * begins with `=` is the hash of the only caller for whom output guards have checked what the handler returns. If there
   * are too many entries to check the rights of another caller, the hash of the only caller who may use what the handler
   * returns.
   */
  readonly reads?: readonly string[] | string;
}

export type Reads = NonNullable<HandlerCall["reads"]>;

/** A read, and the hash of the caller that reads. */
export interface Read {
  readonly uri: string;
  readonly caller: string;
  /** Whether the entry stands for the output guards around the output of a call, instead of a resource. */
  readonly isOutput?: boolean;
}
