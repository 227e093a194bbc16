// A process warns once if a client sends a session id or a requestState that another process has created with another
// secret.
import { assertEquals } from "@std/assert";
import { z } from "zod";
import { createServer, type Server, tool } from "../../mod.ts";
import { readReply, toRequest } from "../support/requests.ts";
import { sentence } from "../support/messages.ts";
import { openSession, toSessionRequest } from "../support/sessions.ts";
import { collectWarnings } from "../support/warnings.ts";

const schema = z.object({ ok: z.boolean() });
const ask = tool({
  name: "ask",
  run: async (_input, ctx) => (await ctx.elicit("sure", { message: "?", schema })).action,
});
const SECRETS = [
  "a first secret of at least thirty-two characters",
  "a second secret of at least thirty-two characters",
];

function start(secret?: string): Server {
  return createServer({ name: "pair", version: "1.0.0", handlers: [ask], secret });
}

/** Uses a session. Returns the HTTP status. */
async function useSession(server: Server, id: string): Promise<number> {
  const headers = { "mcp-session-id": id, "mcp-protocol-version": "2025-11-25" };
  const response = await server.fetch(toSessionRequest({ jsonrpc: "2.0", id: 2, method: "ping" }, headers));
  await response.text();
  return response.status;
}

const capabilities = { "io.modelcontextprotocol/clientCapabilities": { elicitation: {} } };

async function call(server: Server, requestState?: string): Promise<{ requestState?: string; code?: number }> {
  const params = { name: "ask", arguments: {}, requestState, _meta: capabilities };
  const response = await server.fetch(toRequest("tools/call", params));
  const { result, error } = await readReply(response);
  return { requestState: result?.requestState, code: error?.code };
}

for (const [name, secrets] of [["different secrets", SECRETS], ["no secret", [undefined, undefined]]] as const) {
  Deno.test(`a process that gets the session of a process with ${name} warns once`, async () => {
    const [one, two] = secrets.map((secret) => start(secret));
    const id = await openSession(one);
    const warnings = await collectWarnings(async () => {
      assertEquals(await useSession(one, id), 200);
      for (let i = 0; i < 2; i++) assertEquals(await useSession(two, id), 404);
    });
    assertEquals(warnings, [sentence("session id", "pair", "secret")]);
    await Promise.all([one.close(), two.close()]);
  });

  Deno.test(`a process that gets the requestState of a process with ${name} warns once`, async () => {
    const [one, two] = secrets.map((secret) => start(secret));
    const { requestState } = await call(one);
    const warnings = await collectWarnings(async () => {
      for (let i = 0; i < 2; i++) assertEquals((await call(two, requestState)).code, -32602);
    });
    assertEquals(warnings, [sentence("requestState", "pair", "secret")]);
    await Promise.all([one.close(), two.close()]);
  });
}

Deno.test("processes with the same secret do not warn, and short texts that clients make up cause no warning", async () => {
  const [one, two] = [start(SECRETS[0]), start(SECRETS[0])];
  const id = await openSession(one);
  const warnings = await collectWarnings(async () => {
    assertEquals(await useSession(two, id), 200);
    assertEquals(await useSession(two, "made-up"), 404);
    assertEquals((await call(two, "made-up")).code, -32602);
  });
  assertEquals(warnings, []);
  await Promise.all([one.close(), two.close()]);
});
