// Constructors for protocol errors, one per error code.
import { assert, assertEquals } from "@std/assert";
import { McpError } from "../../mod.ts";
import { isMcpError } from "../../src/core/protocol/errors.ts";
import { sentence } from "../support/messages.ts";

Deno.test("McpError has a constructor for each JSON-RPC error code that a handler may need", () => {
  const made = [
    [McpError.invalidParams("a", { at: 1 }), -32602, "a", { at: 1 }],
    [McpError.invalidRequest("b"), -32600, "b", undefined],
    [McpError.methodNotFound("c", []), -32601, "c", []],
    [McpError.internalError("d", null), -32603, "d", null],
    [McpError.parseError("e"), -32700, "e", undefined],
    [McpError.headerMismatch("f"), -32020, "f", undefined],
    [McpError.missingCapability("g", { requiredCapabilities: {} }), -32021, "g", { requiredCapabilities: {} }],
    [McpError.unsupportedVersion("h", { supported: [] }), -32022, "h", { supported: [] }],
    [McpError.unauthenticated("i"), -31401, "i", undefined],
    [McpError.insufficientScope("j", { scopes: ["a"] }), -31403, "j", { scopes: ["a"] }],
    [McpError.rateLimited("k", { retryAfterMs: 5 }), -31429, "k", { retryAfterMs: 5 }],
    [McpError.busy("l"), -31503, "l", undefined],
    [McpError.resourceNotFound("note://1"), -32602, sentence(), { uri: "note://1" }],
  ] as const;
  for (const [error, code, message, data] of made) {
    assertEquals<unknown>([error.code, error.message, error.data], [code, message, data]);
    assert(error instanceof McpError && isMcpError(error) && error.name === "McpError");
  }
  const functions = Object.getOwnPropertyNames(McpError).filter((name) => name in Function.prototype === false);
  assertEquals(functions.filter((name) => name !== "prototype").length, made.length, `${functions}`);
});
