// Streams of sessions, and the memory for sessions and streams.
import { assert, assertEquals } from "@std/assert";
import { tool } from "../../mod.ts";
import { any, as, soon, start, toGet, toInitialize, toLegacy } from "./attack.ts";
import { turn } from "../support/behaviour.ts";
import { testLimits } from "../support/limits.ts";

const EVENTS = { accept: "text/event-stream" };

Deno.test("a session is idle after its call has ended, even if the client accepts only event streams", async () => {
  const later = tool({ name: "later", run: () => Promise.resolve("") });
  const server = start({ handlers: [later], limits: testLimits({ sessions: { openPerClient: 1 } }) });
  const begin = async () => {
    const response = await server.fetch(toLegacy(toInitialize()), as("eve"));
    await response.text();
    return { "mcp-session-id": response.headers.get("mcp-session-id") ?? "" };
  };
  const call = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "later" } };
  await (await server.fetch(toLegacy(call, { ...EVENTS, ...await begin() }), as("eve"))).text();
  // The limit is one session, so this request succeeds only if the first session can be evicted.
  const ping = { jsonrpc: "2.0", id: 2, method: "ping" };
  const { status } = await server.fetch(toLegacy(ping, await begin()), as("eve"));
  await server.close();
  assertEquals(status, 200);
});

Deno.test("the server closes a connection that reads replayed events too slowly, after the events have expired", async () => {
  const say = tool({
    name: "say",
    input: any,
    async run({ n }: { readonly n?: unknown }, { log: { info } }) {
      for (let i = 0; i < Number(n); i++) await info("x".repeat(200));
      return "";
    },
  });
  const server = start({
    handlers: [say],
    limits: testLimits({ replay: { events: 50 }, streams: { waitingCharacters: 500 } }),
  });
  const begun = await server.fetch(toLegacy(toInitialize()), as("eve"));
  await begun.text();
  const id = begun.headers.get("mcp-session-id") ?? "";
  const call = async (n: number) => {
    const message = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "say", arguments: { n } } };
    return await (await server.fetch(toLegacy(message, { "mcp-session-id": id }), as("eve"))).text();
  };
  const [, first] = /id: (\S+_1)\n/.exec(await call(30)) ?? [];
  const { body } = await server.fetch(toGet(id, first), as("eve"));
  await turn(10);
  await call(60);
  const reader = body?.getReader();
  const end = async () => {
    while (!(await reader?.read())?.done);
    return true;
  };
  const isEnded = await soon(end());
  await reader?.cancel();
  await server.close();
  assert(isEnded, "the connection stays open, and counts towards no limit");
});
