// The option `revisions`: the server serves clients of the listed revisions, and sends other clients the list of
// supported revisions.
import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { createServer, type Revision, type ServerOptions, tool } from "../../mod.ts";
import { connect as connectClient } from "../../src/client/client.ts";
import { connectTest } from "../../src/testing/testing.ts";
import { sentence } from "../support/messages.ts";
import { readReply } from "../support/requests.ts";

const ALL = ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"] as const;
const [NEWEST, ...OLDER] = ALL;

const hello = tool({ name: "hello", run: () => "Hello!" });

function serve(revisions: readonly Revision[] | undefined, options: Partial<ServerOptions> = {}) {
  return createServer({ name: "s", version: "1.0.0", handlers: [hello], revisions, ...options });
}

const lists: readonly (readonly Revision[])[] = [
  [NEWEST],
  ["2025-11-25"],
  ["2024-11-05", "2025-06-18"],
  [NEWEST, "2025-11-25"],
  [NEWEST, "2025-03-26", "2024-11-05"],
  [...OLDER],
];

for (const transport of ["memory", "pipe", "http"] as const) {
  Deno.test(`only clients of the listed revisions are served, over ${transport}`, async () => {
    for (const revisions of lists) {
      for (const revision of ALL) {
        const connected = connectTest(serve(revisions), { transport, revisions: [revision] });
        if (revisions.includes(revision)) {
          await using client = await connected;
          assertEquals((await client.callTool("hello")).content, [{ type: "text", text: "Hello!" }]);
        } else if (revision === NEWEST || revisions.every((each) => each === NEWEST)) {
          const call = async () => {
            await using client = await connected;
            await client.callTool("hello");
          };
          const { code, data } = await assertRejects(call) as Error & { code?: number; data?: unknown };
          assertEquals([code, data], [-32022, {
            supported: ALL.filter((each) => revisions.includes(each)),
            requested: revision,
          }], `${revisions} for ${revision}`);
        } else {
          // The client can accept the revision that the server offers instead.
          const offered = OLDER.find((each) => revisions.includes(each));
          const client = await connected.catch((error: Error) => error);
          const said = client instanceof Error ? client.message : client.server.version;
          assert(said?.includes(`${offered}`), `${revisions} for ${revision}: ${said}`);
          if (!(client instanceof Error)) await client.close();
        }
      }
    }
  });
}

Deno.test("a client that supports all revisions negotiates a listed revision", async () => {
  for (const revisions of lists) {
    await using server = serve(revisions);
    const fetch = (request: Request) => server.fetch(request);
    await using client = await connectClient("http://localhost/mcp", { fetch });
    assertEquals(client.server.version, ALL.find((each) => revisions.includes(each)), `${revisions}`);
    assertEquals((await client.callTool("hello")).content, [{ type: "text", text: "Hello!" }]);
  }
});

function toRequest(method: string, headers: Record<string, string>, params: object = {}): Request {
  return new Request("http://localhost/mcp", {
    method: "POST",
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
    headers: {
      host: "localhost",
      accept: "application/json, text/event-stream",
      "content-type": "application/json",
      ...headers,
    },
  });
}

Deno.test("a request that states an unlisted revision is refused, even if only its header states it", async () => {
  const cases: readonly (readonly [revisions: readonly Revision[], stated: string])[] = [
    [[NEWEST], "2025-11-25"],
    [[NEWEST, "2025-11-25"], "2025-06-18"],
    [["2025-11-25"], NEWEST],
    [["2025-11-25"], "2027-01-01"],
    [["2025-11-25", "2024-11-05"], "2025-06-18"],
  ];
  for (const [revisions, stated] of cases) {
    await using server = serve(revisions);
    for (const method of ["tools/list", "ping"]) {
      const response = await server.fetch(toRequest(method, { "mcp-protocol-version": stated }));
      const { id, error } = await readReply(response);
      assertEquals([response.status, id, error.code, error.data.requested], [400, 1, -32022, stated]);
      assertEquals([...error.data.supported].sort(), [...revisions].sort());
    }
  }
});

Deno.test("a session is unknown if its revision is no longer listed", async () => {
  const secret = "0123456789abcdef0123456789abcdef";
  const before = serve(undefined, { secret });
  const offer = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "c", version: "1" } };
  const opened = await before.fetch(toRequest("initialize", {}, offer));
  const session = opened.headers.get("mcp-session-id") ?? "";
  await opened.body?.cancel();
  const headers = { "mcp-session-id": session };
  const again = await before.fetch(toRequest("ping", headers));
  assertEquals(again.status, 200);
  await again.body?.cancel();
  const after = serve([NEWEST, "2025-11-25"], { secret });
  const refused = await after.fetch(toRequest("ping", headers));
  assertEquals(refused.status, 404);
  await refused.body?.cancel();
  await Promise.all([before.close(), after.close()]);
});

Deno.test("a list that is empty, or contains a value other than a revision, is refused", () => {
  const wrong: readonly unknown[] = [[], ["2026-07-27"], [NEWEST, "latest"], [undefined], [null], NEWEST, {}, [[
    NEWEST,
  ]]];
  for (const revisions of wrong) {
    assertThrows(() => serve(revisions as Revision[]), TypeError, "revisions", JSON.stringify(revisions));
  }
  assertThrows(() => createServer(undefined as never), TypeError);
  assertThrows(() => serve(undefined, { versions: [NEWEST] } as object), TypeError, sentence("versions", "revisions"));
});
