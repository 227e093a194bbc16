// Tests the messages that the fuzzer damages: without damage, each message reaches its handler and gets a result.
import { assert, assertEquals } from "@std/assert";
import { createVisitor, fetchOutcome, toInput } from "./drive.ts";
import { capabilities, fillIn, MODERN, modern, toMirror } from "./samples.ts";
import { createTarget } from "./target.ts";

/** Samples that are invalid on purpose: a part of their text, with the expected error code or tool error. */
const wrong: readonly (readonly [part: string, problem: unknown])[] = [
  ['"cursor":"dG9', -32602],
  ['prompts/list {"cursor"', -32602],
  ["nowhere://29", -32602],
  ['{"name":"broken"', true],
];

Deno.test("undamaged fuzzer samples get a result", async () => {
  const { server, faults } = createTarget();
  const { handed } = await createVisitor(server);
  for (const [method, params] of modern) {
    const meta = "io.modelcontextprotocol/";
    const _meta = { [`${meta}protocolVersion`]: MODERN, [`${meta}clientCapabilities`]: capabilities[1] };
    const message = { jsonrpc: "2.0", id: 1, method, params: { ...fillIn(params, handed), _meta } };
    const headers = {
      ...method !== "subscriptions/listen" && { accept: "application/json" },
      "mcp-protocol-version": MODERN,
      ...Object.fromEntries(toMirror(message)),
    };
    const { status, body, isOpen } = await fetchOutcome(server, toInput(headers, message));
    const shown = `${method} ${JSON.stringify(params)}`;
    if (isOpen) {
      assert(body.includes("notifications/subscriptions/acknowledged"), `${shown}: ${body}`);
      continue;
    }
    const problem = wrong.find(([part]) => shown.includes(part))?.[1];
    const { result, error } = JSON.parse(body);
    assertEquals(error?.code ?? result.isError, problem, `${shown}: ${status} ${body}`);
  }
  assertEquals(faults, []);
  await server.close();
});
