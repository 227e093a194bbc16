// A process does not decrypt the session ids that it has just sealed. The contents are remembered for a few seconds, and
// in no more memory than a share per client.
import { assert, assertEquals } from "@std/assert";
import { createServer, type Server, type ServerOptions, tool } from "../../mod.ts";
import { INTERNALS } from "../../src/core/internals.ts";
import { fakeClock } from "../../src/testing/testing.ts";
import { closeAtEnd } from "../support/running.ts";
import { toSession, toSessionRequest } from "../support/sessions.ts";
import { readReply } from "../support/requests.ts";

const SECRET = "a secret of at least thirty-two characters";

interface Client {
  readonly server: Pick<Server, "fetch">;
  readonly address?: string;
  readonly principal?: string;
  readonly path?: string;
}

const whoami = tool({
  name: "whoami",
  run: (_input, { session, client }) => ({
    session: session(),
    client: client.info,
    capabilities: client.capabilities,
  }),
});

function open(options: Partial<ServerOptions> = {}): Server {
  return closeAtEnd(createServer({ name: "sealed", version: "1.0.0", secret: SECRET, handlers: [whoami], ...options }));
}

async function send({ server, address, principal, path = "/mcp" }: Client, message: object, id?: string) {
  const url = `http://localhost${path}`;
  return await server.fetch(
    toSessionRequest({ jsonrpc: "2.0", ...message }, id ? { "mcp-session-id": id } : {}, { url }),
    {
      ...address && { remoteAddr: { hostname: address } },
      ...principal && { principal: { id: principal } },
    },
  );
}

const info = { name: "client", version: "1.2.3", title: "A client", websiteUrl: "https://example.com/ü" };
const capabilities = { roots: { listChanged: true }, elicitation: {} };

async function begin(client: Client, clientInfo: object = info): Promise<string> {
  const params = { protocolVersion: "2025-11-25", capabilities, clientInfo };
  return await toSession(await send(client, { id: 1, method: "initialize", params }));
}

async function use(client: Client, id: string): Promise<number> {
  const response = await send(client, { method: "notifications/initialized" }, id);
  await response.text();
  return response.status;
}

/** Returns the number of values that `run` decrypts. */
async function countOpened(run: () => Promise<unknown>): Promise<number> {
  const { decrypt } = crypto.subtle;
  let count = 0;
  crypto.subtle.decrypt = (...args: Parameters<typeof decrypt>) => {
    count++;
    return decrypt.apply(crypto.subtle, args);
  };
  try {
    await run();
    return count;
  } finally {
    crypto.subtle.decrypt = decrypt;
  }
}

Deno.test("a session that its process has just created opens without a decryption, and with the same facts as on another instance", async () => {
  const sessionData = () => ({ tenant: "acme", roles: ["reader"] });
  const [server, other] = [open({ sessionData }), open({ sessionData })];
  let id = "";
  const opened = await countOpened(async () => {
    id = await begin({ server });
    assertEquals(await use({ server }, id), 202);
  });
  assertEquals(opened, 0);
  const read = async (server: Server) => {
    const response = await send({ server }, { id: 2, method: "tools/call", params: { name: "whoami" } }, id);
    return Object(await readReply(response)).result;
  };
  assertEquals(await countOpened(async () => assertEquals(await read(other), await read(server))), 1);
});

Deno.test("the contents of an id do not open it for another principal, on another path or after its end", async () => {
  const clock = fakeClock(Date.now());
  await using server = open({ clock, path: "/:tenant/mcp" });
  const ada = { server, principal: "ada", path: "/a/mcp" };
  const id = await begin(ada);
  assertEquals(await use({ ...ada, principal: "eve" }, id), 404);
  assertEquals(await use({ ...ada, path: "/b/mcp" }, id), 404);
  assertEquals(await use(ada, `${id.slice(0, -1)}${id.endsWith("A") ? "B" : "A"}`), 404);
  assertEquals(await countOpened(async () => assertEquals(await use(ada, id), 202)), 0);
  const ended = await begin(ada);
  const headers = { "mcp-session-id": ended };
  const request = new Request("http://localhost/a/mcp", { method: "DELETE", headers });
  assertEquals((await server.fetch(request, { principal: { id: "ada" } })).status, 204);
  assertEquals(await use(ada, ended), 404);
});

Deno.test("the contents are forgotten with the first use, and after a few seconds", async () => {
  const clock = fakeClock(Date.now());
  await using server = open({ clock });
  const { pots } = server[INTERNALS].engine.accounts;
  const used = () => pots.get("sessions.sealed")?.used;
  const ids = [await begin({ server }), await begin({ server })];
  assert(Number(used()) > 0);
  for (const id of ids) assertEquals(await use({ server }, id), 202);
  assertEquals(used(), 0);
  const late = await begin({ server });
  await clock.advance(11_000);
  assertEquals(used(), 0);
  assertEquals(await countOpened(async () => assertEquals(await use({ server }, late), 202)), 1);
});

Deno.test("a client that creates many ids makes the server forget only its own contents, and none of its sessions", async () => {
  await using server = open();
  const [flood, quiet] = [{ server, address: "192.0.2.1" }, { server, address: "192.0.2.2" }];
  const own = await begin(flood);
  const other = await begin(quiet);
  const description = "x".repeat(500);
  for (let i = 0; i < 300; i++) await begin(flood, { ...info, description });
  const { pots } = server[INTERNALS].engine.accounts;
  assert(Number(pots.get("sessions.sealed")?.used) <= 2 * 262_144);
  assertEquals(await countOpened(async () => assertEquals(await use(quiet, other), 202)), 0);
  assertEquals(await countOpened(async () => assertEquals(await use(flood, own), 202)), 1);
});
