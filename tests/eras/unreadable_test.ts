// Errors for messages without a readable id. Revisions differ in how they express a missing id.
import { assertEquals } from "@std/assert";
import { createServer } from "../../mod.ts";
import { serveStdio } from "../../src/server/transports/stdio/stdio.ts";
import { LEGACY_VERSIONS } from "../support/behaviour.ts";
import { toHello, toSession, toSessionRequest } from "../support/sessions.ts";

/** Texts without an id, or with an id that no revision accepts. */
const UNREADABLE = [
  "{",
  "{}",
  "5",
  '{"jsonrpc":"2.0","id":null,"method":"ping"}',
  '{"jsonrpc":"2.0","id":1.5,"method":"ping"}',
  '{"jsonrpc":"2.0","id":{},"method":"ping"}',
];

const hello = (version: string) => JSON.stringify(toHello({ id: "hello", version }));

/** Returns the `id` of a response, or "none" if the response has no such property. */
function idOf(text: string): unknown {
  const { error, ...answer } = JSON.parse(text);
  assertEquals(Number.isInteger(error.code), true, text);
  return "id" in answer ? answer.id : "none";
}

async function post(server: ReturnType<typeof createServer>, body?: string, headers = {}, method = "POST") {
  return await server.fetch(toSessionRequest(body, headers, { method }));
}

for (const version of [...LEGACY_VERSIONS, "2026-07-28"]) {
  const none = version >= "2025-11-25" ? "none" : null;
  const isLegacy = version < "2026";

  Deno.test(`over HTTP, an error without an id has the form of revision ${version}`, async () => {
    await using server = createServer({ name: "s", version: "1", requireSession: true });
    const stated = { "mcp-protocol-version": version };
    const bodies = isLegacy ? UNREADABLE : [...UNREADABLE, "[]", "[1]", '{"jsonrpc":"2.0","id":1,"result":{}}'];
    for (const body of bodies) assertEquals(idOf(await (await post(server, body, stated)).text()), none, body);
    if (!isLegacy) return;
    const id = await toSession(await post(server, hello(version), stated));
    for (const headers of [{ ...stated, "mcp-session-id": id }, { "mcp-session-id": id }]) {
      // Without a version header, the session determines the revision.
      for (const body of UNREADABLE) assertEquals(idOf(await (await post(server, body, headers)).text()), none, body);
      const other = version === "2025-03-26" ? "[]" : '[{"jsonrpc":"2.0","id":1,"method":"ping"}]';
      assertEquals(idOf(await (await post(server, other, headers)).text()), none);
      const lost = await post(server, undefined, { ...headers, "last-event-id": "gone" }, "GET");
      assertEquals([lost.status, idOf(await lost.text())], [400, none]);
    }
    const note = '{"jsonrpc":"2.0","method":"notifications/initialized"}';
    const gone = { ...stated, "mcp-session-id": "x".repeat(80) };
    for (const [body, method] of [[note, "POST"], [undefined, "GET"], [undefined, "DELETE"]] as const) {
      const response = await post(server, body, gone, method);
      assertEquals([response.status, idOf(await response.text())], [404, none], method);
      const bare = await post(server, body, stated, method);
      assertEquals([bare.status, idOf(await bare.text())], [400, none], method);
    }
  });

  Deno.test(`over a byte stream, an error without an id has the form of revision ${version}`, async () => {
    const server = createServer({ name: "s", version: "1" });
    const lines = isLegacy ? [hello(version), ...UNREADABLE] : UNREADABLE;
    let written = "";
    await serveStdio(server, {
      input: new Blob([lines.join("\n")]).stream(),
      output: (bytes) => Promise.resolve(void (written += new TextDecoder().decode(bytes))),
    });
    await server.close();
    const answers = written.trim().split("\n").filter((line) => !line.includes('"hello"'));
    assertEquals(answers.map(idOf), UNREADABLE.map(() => none));
  });
}

Deno.test("over HTTP, a client whose revision is unknown gets an error without an id in JSON-RPC's form", async () => {
  await using server = createServer({ name: "s", version: "1" });
  // The specification treats such a client as a client of revision 2025-03-26.
  for (const body of UNREADABLE) assertEquals(idOf(await (await post(server, body)).text()), null);
});
