/**
 * OpenAPI documents as servers: each operation becomes a tool, a resource or a resource template.
 *
 * ```ts
 * import { createServer } from "@x/mcp";
 * import { openapi } from "@x/mcp/openapi";
 *
 * const document = { openapi: "3.1.0", paths: { "/pets": { get: { operationId: "listPets" } } } };
 * const pets = openapi(document, { baseUrl: "https://pets.example.com/v1" });
 *
 * export default createServer({ name: "pets", version: "1.0.0", handlers: [pets] });
 * ```
 *
 * @module
 */
export { type Api, type DocumentFacts, openapi, readOpenApi, type ServedOperation } from "./api.ts";
export type { ApiCredentials, BasicCredential, FindCredential } from "./credentials.ts";
export type { ApiOperation } from "./api_operation.ts";
export type { OpenApiOptions, OperationChange, OperationKind } from "./options.ts";
export { principalOf } from "./principals.ts";
