// The server releases all resources of clients that have disconnected. This is a short version of `deno task soak`.
import { assertEquals } from "@std/assert";
import { createServer, tool } from "../../mod.ts";
import { INTERNALS } from "../../src/core/internals.ts";
import { until } from "../support/behaviour.ts";
import { startSession, toCall } from "./unread.ts";

Deno.test("the server releases all resources after valid calls, invalid messages, failures, sessions and disconnects", async () => {
  const counts = { started: 0, ended: 0 };
  const hold = tool({
    name: "hold",
    async run(_input, { signal }) {
      counts.started++;
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      counts.ended++;
      return "";
    },
  });
  const fail = tool({
    name: "fail",
    run() {
      throw new Error("on purpose");
    },
  });
  const quick = tool({ name: "quick", run: () => "quick" });
  const handlers = [hold, fail, quick];
  const server = createServer({
    name: "leaks",
    version: "1.0.0",
    handlers,
    limits: { connections: { sessions: 20 } },
    observer: { fault() {} },
  });
  const url = "http://127.0.0.1/mcp";
  const send = (init: RequestInit) => {
    const request = new Request(url, { method: "POST", ...init });
    request.headers.set("host", "127.0.0.1");
    return server.fetch(request);
  };
  const fetchHere: typeof fetch = (_url, init) => send(init ?? {});
  const statuses = new Map<number, number>();
  const finish = async (init: RequestInit) => {
    const response = await send(init);
    await response.text();
    statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1);
  };
  await Promise.all(Array.from({ length: 50 }, async (_, i) => {
    const session = await startSession(url, fetchHere);
    await finish(toCall("quick"));
    await finish(toCall("quick", { session }));
    await finish(toCall("fail", { session }));
    await finish({ ...toCall("quick"), body: "{" });
    const { body } = await send(toCall("hold", { id: `${i}` }));
    await body?.cancel();
    const visit = await server.fetch(
      new Request(url, { headers: { host: "127.0.0.1", accept: "text/event-stream", "mcp-session-id": session } }),
    );
    await visit.body?.cancel();
  }));
  const { streams } = (await server[INTERNALS].http.endpoint.load()).parts;
  await until(() => counts.ended === 50 && streams.size === 0, "all streams are gone");
  assertEquals([counts.started, statuses.get(400)], [50, 50]);
  // Only the timer of the session sweep remains after the timers of bodies and streams have ended.
  await until(() => streams.ticker.size <= 1, "no timer but the session sweep");
  await server.close();
  await until(() => streams.ticker.size === 0, "no timer");
});
