// A server with `streams: false` answers every HTTP request with one complete response, and says what it cannot do.
// Over stdio, the option changes nothing.
import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { z } from "zod";
import { createServer, resource, tool } from "../../mod.ts";
import { taskClient } from "../../src/extensions/tasks/client/task_client.ts";
import { task, tasks } from "../../src/extensions/tasks/tasks.ts";
import { confirm } from "../../src/layers/layers.ts";
import { httpSse } from "../../src/server/transports/http/sse_2024.ts";
import { type Connection, type ConnectTestOptions, fakeClock } from "../../src/testing/testing.ts";
import { behaviour, gate, LEGACY_VERSIONS, plainTool, textOf, turn, until } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";
import { openSession, toSessionRequest } from "../support/sessions.ts";

const note = resource({ uri: "test://note", name: "note", read: () => "text" });
const busy = plainTool("busy", async (ctx) => {
  for (let i = 1; i <= 5; i++) {
    await ctx.progress(i, { total: 5 });
    await ctx.log.warning(`step ${i}`);
    ctx.closeStream(5);
  }
  return "done";
});
const form = z.object({ name: z.string() });
const greet = plainTool("greet", async (ctx) => {
  if (!ctx.client.capabilities.elicitation) return "no name";
  const { content } = await ctx.elicit("name", { message: "Name?", schema: form });
  return `Hello ${content?.name}`;
});
const ask = plainTool(
  "ask",
  async (ctx) => (await ctx.elicit("name", { message: "Name?", schema: form })).content?.name,
);
const needy = tool({ name: "needy", requires: ["elicitation"], run: () => "ran" });
const wipe = tool({ name: "wipe", use: [confirm("Wipe?")], run: () => "wiped" });
const handlers = [note, busy, greet, ask, needy, wipe];
const answering: ConnectTestOptions = { onElicit: () => ({ action: "accept", content: { name: "Ada" } }) };

behaviour(
  "with streams: false, HTTP clients get no progress and no log messages, and each response is JSON",
  async (connect, { era, transport }) => {
    const logs: unknown[] = [];
    const onNotification = ({ method, params }: { readonly method: string; readonly params: unknown }) =>
      void (method === "notifications/message" && logs.push(params));
    const { client } = await connect({ handlers, streams: false }, {
      ...era === "modern" && { logLevel: "debug" },
      onNotification,
    });
    const seen: number[] = [];
    const result = await client.callTool("busy", {}, { onProgress: ({ progress }) => void seen.push(progress) });
    assertEquals(textOf(result), "done");
    const isPiped = transport === "pipe";
    assertEquals(seen, isPiped ? [1, 2, 3, 4, 5] : []);
    assertEquals(logs.length, isPiped ? 5 : 0);
    const { text } = Object((await client.readResource("test://note")).contents[0]);
    assertEquals(text, "text");
  },
);

behaviour(
  "with streams: false, capabilities that need streams are announced over stdio only",
  async (connect, { era, transport }) => {
    const { client } = await connect({ handlers, streams: false });
    const read = async (client: Connection) =>
      era === "legacy" ? client.server.capabilities : Object(await client.request("server/discover", {})).capabilities;
    const streams = transport === "pipe";
    assertEquals(await read(client), {
      tools: { listChanged: streams },
      resources: { listChanged: streams, subscribe: streams },
      ...streams ? { logging: {} } : {},
    });
    const plain = await connect({ handlers });
    assertEquals(await read(plain.client), {
      tools: { listChanged: true },
      resources: { listChanged: true, subscribe: true },
      logging: {},
    });
  },
);

behaviour(
  "with streams: false, subscriptions are refused over HTTP, with words",
  async (connect, { era, transport }) => {
    const { client, server } = await connect({ handlers, streams: false });
    const filter = { toolsListChanged: true, resourceSubscriptions: ["test://note"] };
    if (transport === "pipe") {
      const subscription = await client.subscribe(filter);
      server.resourceUpdated("test://note");
      await until(() => subscription.received.length === 1, "a notification");
      return await subscription.close();
    }
    const method = era === "modern" ? "subscriptions/listen" : "resources/subscribe";
    const params = era === "modern" ? { notifications: filter } : { uri: "test://note" };
    const error = await assertRejects(() => client.request(method, params));
    assertEquals([Object(error).code, Object(error).message], [-32601, sentence()]);
    await assertRejects(() => client.subscribe(filter));
  },
);

behaviour(
  "with streams: false, questions work except in HTTP sessions, where capabilities to answer are ignored",
  async (connect, { era, transport }) => {
    const { client } = await connect({ handlers, streams: false }, answering);
    const isCut = era === "legacy" && transport !== "pipe";
    assertEquals(textOf(await client.callTool("greet")), isCut ? "no name" : "Hello Ada");
    for (const name of ["ask", "needy", "wipe"]) {
      const run = () => client.callTool(name);
      if (!isCut) assert(!(await run()).isError);
      else {
        const outcome = await run().catch((error) => error);
        const text = outcome instanceof Error ? outcome.message : textOf(outcome);
        assertEquals(text, sentence(name === "wipe" ? "elicitation" : "streams: false"));
      }
    }
  },
);

behaviour("with streams: false, tasks work by polling, also tasks that ask questions", async (connect) => {
  const { pass, open } = gate();
  const work = tool({
    name: "work",
    use: [task({ pollIntervalMs: 10 })],
    async run(_input, ctx) {
      await pass;
      return (await ctx.elicit("name", { message: "Name?", schema: form })).content?.name;
    },
  });
  const { client } = await connect({ handlers: [tasks(), work], streams: false }, {
    ...answering,
    extensions: [taskClient()],
  });
  const calling = client.callTool("work");
  open();
  assertEquals(textOf(await calling), "Ada");
}, { eras: ["modern"] });

const url = "http://localhost/mcp";
const json = { "content-type": "application/json", accept: "application/json, text/event-stream" };
const call = (name: string) => ({
  jsonrpc: "2.0",
  id: 2,
  method: "tools/call",
  params: { name, arguments: {}, _meta: { progressToken: 1 } },
});

Deno.test("with streams: false, the response of a slow call starts only with its result, and has no white space", async () => {
  let gates = gate();
  let runs = 0;
  const hold = plainTool("hold", async (ctx) => {
    runs++;
    await ctx.progress(1);
    await gates.pass;
    return "held";
  });
  const clock = fakeClock();
  await using server = createServer({ name: "b", version: "1.0.0", handlers: [hold], streams: false, clock });
  for (const session of [undefined, await openSession(server)]) {
    const coming = server.fetch(toSessionRequest(call("hold"), session ? { "mcp-session-id": session } : {}));
    let isThere = false;
    coming.then(() => isThere = true);
    await until(() => runs === (session ? 2 : 1), "it runs");
    await clock.advance(60_000);
    assert(!isThere);
    gates.open();
    gates = gate();
    const response = await coming;
    assertEquals([response.status, response.headers.get("content-type")], [200, "application/json"]);
    const body = await response.text();
    assertEquals(body[0], "{");
    assertEquals(JSON.parse(body).result.content[0].text, "held");
  }
});

Deno.test("with streams: false, GET gets 405 with Allow, DELETE ends a session, and Accept needs application/json", async () => {
  for (const revisions of [undefined, ["2026-07-28"] as const]) {
    await using server = createServer({ name: "b", version: "1.0.0", handlers, streams: false, revisions });
    const session = revisions ? "none" : await openSession(server);
    const send = async (method: string, headers: Record<string, string>, body?: string) => {
      const response = await server.fetch(new Request(url, { method, headers, body }));
      const text = await response.text();
      return [response.status, response.headers.get("allow"), text && JSON.parse(text).error.message];
    };
    const allow = revisions ? "POST" : "POST, DELETE";
    const events = { accept: "text/event-stream", "mcp-session-id": session };
    assertEquals(await send("GET", events), [405, allow, sentence()]);
    assertEquals(await send("GET", { ...events, "last-event-id": "x" }), [405, allow, sentence()]);
    assertEquals(await send("PUT", events), [405, allow, sentence()]);
    const only = { ...json, accept: "text/event-stream" };
    assertEquals(await send("POST", only, JSON.stringify(call("busy"))), [406, null, sentence()]);
    if (!revisions) {
      assertEquals(await send("DELETE", events), [204, null, ""]);
      const headers = { ...json, "mcp-session-id": session };
      assertEquals((await send("POST", headers, JSON.stringify(call("busy"))))[0], 404);
    }
  }
});

Deno.test("a server with streams: false cannot serve HTTP+SSE", () => {
  const server = createServer({ name: "b", version: "1.0.0", streams: false });
  assertThrows(() => httpSse(server), TypeError, sentence());
});

// `ctx.closeStream()` closes the connection of a call only if the client will resume the stream.

for (const says of ["nothing", "progress", "a log message"]) {
  behaviour(
    `a call that sends ${says} and then closes its stream still returns its result in every revision`,
    async (connect, { version, transport }) => {
      const leave = plainTool("leave", async (ctx) => {
        if (says === "progress") await ctx.progress(1);
        if (says === "a log message") await ctx.log.info("before");
        ctx.closeStream(5);
        await turn(5);
        ctx.closeStream(5);
        return "back";
      });
      const { client } = await connect({ handlers: [leave] }, { logLevel: "debug" });
      const result = await client.callTool("leave", {}, { meta: { progressToken: 1 } });
      assertEquals(textOf(result), "back");
      const resumes = client.transcript.some((line) => line.startsWith("→ GET") && line.includes("last-event-id"));
      assertEquals(resumes, version === "2025-11-25" && transport !== "pipe");
    },
    { versions: LEGACY_VERSIONS },
  );
}
