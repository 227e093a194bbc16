// `admit` also decides about the requests of a session that carry no request: answers, and GET requests. Otherwise a
// caller who is blocked during a session could read results and give consent.
import { assert, assertEquals } from "@std/assert";
import { z } from "zod";
import { createServer, tool } from "../../mod.ts";
import { refuseRequest } from "../../src/auth/auth.ts";
import type { Admit, AdmitInfo } from "../../src/server/engine/admission.ts";
import type { RefusedEvent } from "../../src/server/call/observer.ts";
import { webSocket } from "../../src/server/transports/websocket.ts";
import { HELLO, serveOld } from "../hostile/sse.ts";
import { gate, plainTool } from "../support/behaviour.ts";
import { FULL, Reading, request, toRefused, untilFound, withSite } from "./session_site.ts";
import { toStatus } from "../support/requests.ts";

const MS = 30_000;

/** An `admit` option that refuses all requests while `isBlocked` is set, and records the methods. */
function makeDoor(status: 401 | 403 | 429 | 503 = 403) {
  const door = {
    isBlocked: false,
    seen: [] as string[],
    admit: (({ method }) => {
      door.seen.push(method);
      if (!door.isBlocked) return true;
      return refuseRequest(status, { reason: "the account is closed", ...status > 403 && { retryAfterMs: MS } });
    }) as Admit,
  };
  return door;
}

const answerTo = (id: string) => ({ jsonrpc: "2.0", id, result: { action: "decline" } });
const toId = (text: string) => /"id":"([^"]+)","method":"elicitation/.exec(text)?.[1] ?? "";
const FORM = { type: "object", properties: {} } as const;

for (const instances of [1, 2]) {
  const place = instances === 1 ? "one instance" : "two instances";
  for (const status of [401, 403, 503] as const) {
    Deno.test(`admit refuses GET requests and answers with HTTP ${status} (${place})`, async () => {
      const work = gate();
      const answers: string[] = [];
      const refused: unknown[] = [];
      const door = makeDoor(status);
      const observer = {
        refused: ({ status, reason, code }: RefusedEvent) => void refused.push([status, reason, code]),
      };
      const makeHandlers = () => [
        tool({ name: "audit", run: async (_, ctx) => (await ctx.progress(1), await work.pass, "the figures") }),
        plainTool("order", async (ctx) => {
          answers.push((await ctx.elicit("sure", { message: "Sure?", schema: FORM })).action);
          return "done";
        }),
      ];
      const setting = { version: "2025-11-25", instances, observer, admit: door.admit };
      await withSite(setting, makeHandlers, async (site) => {
        const audit = new Reading(await site.send(request(2, "tools/call", { name: "audit" }), FULL));
        await audit.until(`"progress":1`);
        const order = new Reading(await site.send(request(3, "tools/call", { name: "order" }), FULL));
        await order.until("elicitation/create");
        const lastEvent = audit.last;
        await untilFound(site, lastEvent);
        door.isBlocked = true;
        refused.length = 0;
        const called = await toRefused(await site.sendLast(request(9, "ping", {}), FULL));
        assertEquals(called.status, status);
        const answer = answerTo(toId(order.text));
        for (
          const send of [
            () => site.resume(lastEvent, FULL),
            () => site.open(FULL),
            () => site.send(answer, FULL),
            () => site.sendLast(answer, FULL),
          ]
        ) {
          const response = await send();
          assertEquals(response.headers.get("retry-after"), status === 503 ? `${MS / 1000}` : null);
          assertEquals(await toRefused(response), called);
        }
        assertEquals(refused, Array(5).fill([status, "admission", -31_000 - status]));
        assertEquals(answers, []);
        door.isBlocked = false;
        assertEquals((await site.sendLast(answer, FULL)).status, 202);
        await order.until("done");
        work.open();
        await new Reading(await site.resume(lastEvent, FULL)).until("the figures");
        for (const method of ["GET", "response", "initialize", "tools/call", "ping"]) {
          assert(door.seen.includes(method), method);
        }
      });
    });
  }
}

Deno.test("if admit fails, GET requests and answers get HTTP 500", async () => {
  let isBroken = false;
  const faults: unknown[] = [];
  const admit = () => {
    if (isBroken) throw new Error("no database");
    return true as const;
  };
  const observer = { fault: ({ error }: { readonly error: unknown }) => void faults.push(String(error)) };
  const makeHandlers = () => [
    plainTool("order", async (ctx) => (await ctx.elicit("sure", { message: "Sure?", schema: FORM })).action),
  ];
  await withSite({ version: "2025-06-18", instances: 1, admit, observer }, makeHandlers, async (site) => {
    const order = new Reading(await site.send(request(2, "tools/call", { name: "order" }), FULL));
    await order.until("elicitation/create");
    const answer = answerTo(toId(order.text));
    isBroken = true;
    for (const response of [await site.open(FULL), await site.send(answer, FULL)]) {
      const { status, error } = await toRefused(response);
      assertEquals([status, Object(error).code], [500, -32_603]);
    }
    assertEquals(faults, ["Error: no database", "Error: no database"]);
    isBroken = false;
    await (await site.send(answer, FULL)).text();
    await order.until("decline");
  });
});

Deno.test("admit refuses the request that opens an HTTP+SSE stream or a WebSocket, and later answers", async () => {
  const door = makeDoor();
  const facts: Pick<AdmitInfo, "transport" | "principal">[] = [];
  const answers: string[] = [];
  const order = plainTool("order", async (ctx) => {
    answers.push((await ctx.elicit("sure", { message: "Sure?", schema: FORM })).action);
    return "done";
  });
  const refused: unknown[] = [];
  await using server = createServer({
    name: "shop",
    version: "1.0.0",
    handlers: [order],
    admit(asked) {
      const { method, transport, principal, http, client } = asked;
      if (method === "GET") {
        assert(http?.url.startsWith("http://localhost/"));
        assertEquals(client.version, "");
        facts.push({ transport, principal });
      }
      return door.admit(asked);
    },
    observer: { refused: ({ transport, status, reason }) => void refused.push([transport, status, reason]) },
  });
  const { open, post } = serveOld(server);
  const info = { principal: { id: "eve" } };
  const { address, next, leave } = await open("/sse", { info });
  const params = { ...HELLO.params, capabilities: { elicitation: {} } };
  await post(address, { ...HELLO, params }, { info });
  await next();
  await post(address, request(1, "tools/call", { name: "order" }), { info });
  const question = await next() ?? "";
  door.isBlocked = true;
  const late = await open("/sse", { info });
  assertEquals(late.response.status, 403);
  await late.response.body?.cancel();
  await post(address, answerTo(toId(question)), { info });
  assertEquals(JSON.parse(await next() ?? "").error.code, -31_403);
  const upgrade = new Request("http://localhost/ws", { headers: { upgrade: "websocket", connection: "upgrade" } });
  assertEquals(await toStatus(webSocket(server).fetch(upgrade, info)), 403);
  assertEquals(answers, []);
  assertEquals(facts, [
    { transport: "http-sse", principal: info.principal },
    { transport: "http-sse", principal: info.principal },
    { transport: "websocket", principal: info.principal },
  ]);
  assertEquals(refused, [
    ["http-sse", 403, "admission"],
    ["http-sse", undefined, "admission"],
    ["websocket", 403, "admission"],
  ]);
  assertEquals(server.stats().streams, 1);
  door.isBlocked = false;
  await post(address, answerTo(toId(question)), { info });
  assertEquals(JSON.parse(await next() ?? "").result.content[0].text, "done");
  await leave();
});

Deno.test("admit reads the path parameters of a request that opens an HTTP+SSE stream", async () => {
  const pathSchema = z.object({ tenant: z.string() });
  const seen: unknown[] = [];
  await using server = createServer({
    name: "shop",
    version: "1.0.0",
    path: "/tenants/:tenant/mcp",
    pathSchema,
    handlers: [tool({ name: "list", run: () => "" })],
    admit({ method, pathParams }) {
      const { tenant } = pathParams(pathSchema);
      seen.push([method, tenant]);
      return tenant === "acme" || refuseRequest(403);
    },
  });
  const { open } = serveOld(server, { path: "/tenants/:tenant/sse", messages: "/tenants/:tenant/messages" });
  const [mine, other] = [await open("/tenants/acme/sse"), await open("/tenants/globex/sse")];
  assertEquals([mine.response.status, other.response.status], [200, 403]);
  assertEquals(seen, [["GET", "acme"], ["GET", "globex"]]);
  await other.response.body?.cancel();
  await mine.leave();
});
