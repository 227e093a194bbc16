/** The `pathParams` of a call at a path without parameters. */
export function refusePathParams(): never {
  throw new TypeError(
    "Cannot read path parameters: the server's path has no parameters; use a path such as /tenants/:tenant/mcp",
  );
}
