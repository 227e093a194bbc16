// The constructors of protocol errors that carry a code.
import { assert, assertEquals } from "@std/assert";
import { McpError } from "../../mod.ts";
import { isMcpError } from "../../src/protocol/errors.ts";

Deno.test("McpError has a constructor for each JSON-RPC code that a handler may need", () => {
  const { invalidParams, invalidRequest, methodNotFound, internalError, resourceNotFound } = McpError;
  const made = [
    [invalidParams("a", { at: 1 }), -32602, "a", { at: 1 }],
    [invalidRequest("b"), -32600, "b", undefined],
    [methodNotFound("c", []), -32601, "c", []],
    [internalError("d", null), -32603, "d", null],
    [resourceNotFound("note://1"), -32602, "Resource not found", { uri: "note://1" }],
  ] as const;
  for (const [error, code, message, data] of made) {
    assertEquals<unknown>([error.code, error.message, error.data], [code, message, data]);
    assert(error instanceof McpError && isMcpError(error) && error.name === "McpError");
  }
});
