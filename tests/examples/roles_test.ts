// The roles example: each caller sees the tools of its roles, in both eras, in this process and in other processes.
import { assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { connect } from "../../src/client/client.ts";
import { connectTest, McpError } from "../../src/testing/testing.ts";
import { textOf, until } from "../support/behaviour.ts";
import { testProcesses } from "../support/command_line.ts";
import { withEnvironment } from "../support/environment.ts";
import { TestIssuer } from "../support/issuer.ts";
import { sentence } from "../support/messages.ts";
import { findFreePort, root, start } from "../support/processes.ts";

// The example reads its environment during its import, so all tests share one issuer.
const issuer = await TestIssuer.start();
const resource = "https://orders.example.com/mcp";
const key = "nightly-key-8d3f5a7c6e1b";
const variables = { MCP_RESOURCE: resource, MCP_ISSUER: issuer.name, SCRIPT_KEY: key };
const { default: server } = await withEnvironment(variables, () => import("../../examples/roles.ts"));

type Headers = Record<string, string>;

async function signIn(claims: Record<string, unknown>, aud = resource): Promise<Headers> {
  return { authorization: `Bearer ${await issuer.sign({ claims: { aud, ...claims } })}` };
}

for (const era of ["modern", "legacy"] as const) {
  Deno.test(`roles: each caller sees the tools of its roles (${era})`, async () => {
    const open = (headers: Headers) => connectTest(server, { era, transport: "http", headers });
    const names = async (headers: Headers) => {
      await using client = await open(headers);
      return (await client.listTools()).map(({ name }) => name).sort();
    };
    assertEquals(await names(await signIn({ roles: ["support"] })), ["find_order"]);
    assertEquals(await names(await signIn({ roles: ["finance"] })), ["find_order", "refund", "total"]);
    assertEquals(await names(await signIn({ roles: [] })), []);
    assertEquals(await names({ "x-api-key": key }), ["total"]);
    await using ada = await open(await signIn({ roles: ["finance", "support"], name: "Ada" }));
    assertEquals(textOf(await ada.callTool("refund", { number: "A-17" })), "Ada refunded A-17.");
    await using eve = await open(await signIn({ roles: ["support"], sub: "eve" }));
    await assertRejects(() => eve.callTool("refund", { number: "A-17" }), McpError, sentence("refund"));
    await using script = await open({ "x-api-key": key });
    assertEquals(textOf(await script.callTool("total")), "0");
  });

  Deno.test(`roles: a token with an unknown role is refused (${era})`, async () => {
    for (const claims of [{}, { roles: ["owner"] }, { roles: "finance" }]) {
      const headers = await signIn(claims);
      const list = async () => {
        await using client = await connectTest(server, { era, transport: "http", headers });
        return await client.listTools();
      };
      const error = await list().catch((error) => error);
      assertEquals(error.status, 401, String(error));
    }
  });
}

/** By runtime, the command that serves the example. */
const commands = {
  deno: (
    port: number,
  ) => ["deno", "run", "-A", `${root}mod.ts`, `${root}examples/roles.ts`, "--http", "--port", `${port}`],
  bun: (port: number) => ["bun", `${root}mod.ts`, `${root}examples/roles.ts`, "--http", "--port", `${port}`],
};

for (const [runtime, toCommand] of Object.entries(commands)) {
  testProcesses(`roles: ${runtime} serves the example to people and scripts`, async () => {
    const port = findFreePort();
    const url = `http://127.0.0.1:${port}/mcp`;
    const env = { MCP_RESOURCE: url, MCP_ISSUER: issuer.name, SCRIPT_KEY: key };
    await using running = await start(toCommand(port), { env, timeoutMs: 60_000 });
    const isServed = async () => {
      const response = await fetch(url).catch(() => undefined);
      await response?.body?.cancel();
      return response !== undefined;
    };
    await until(isServed, "the server listens").catch(async (error) => {
      await running[Symbol.asyncDispose]();
      throw new Error((await running.finished).stderr, { cause: error });
    });
    const response = await fetch(url, { method: "POST" });
    await response.body?.cancel();
    const challenge = String(response.headers.get("www-authenticate"));
    assertEquals([response.status, challenge.split(" ")[0]], [401, "Bearer"]);
    assertStringIncludes(challenge, ", ApiKey");
    const names = async (headers: Headers) => {
      await using client = await connect(url, { headers });
      return (await client.listTools()).map(({ name }) => name).sort();
    };
    assertEquals(await names(await signIn({ roles: ["finance"] }, url)), ["find_order", "refund", "total"]);
    assertEquals(await names({ "x-api-key": key }), ["total"]);
  });
}
