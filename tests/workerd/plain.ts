// Tests of servers in plain Workers.
import { assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { until } from "../support/behaviour.ts";
import { ask, callInSession, callTool, openSession } from "./requests.ts";
import { serveWorker } from "./workerd.ts";

const root = new URL("./", import.meta.url).pathname;
const ADD = { a: 20, b: 22 };

export const checks: Readonly<Record<string, () => Promise<void>>> = {
  async "a plain Worker serves clients of both eras"() {
    await using worker = await serveWorker("examples/calc.ts");
    const url = `${worker.origin}/mcp`;
    assertEquals(await callTool(url, "add", ADD), "42");
    const session = await openSession(url);
    const { status, message } = await callInSession(url, session, "add", ADD);
    assertEquals([status, message.result?.content[0].text], [200, "42"]);
  },

  // On other runtimes, large bodies wait in a queue. In workerd, a request must not wait for another request.
  async "a plain Worker serves large bodies that arrive at the same time"() {
    await using worker = await serveWorker("examples/calc.ts");
    const answers = await Promise.all(Array.from({ length: 6 }, async (_, i) => {
      const _meta = { filler: "x".repeat(i % 2 ? 200_000 : 40_000) };
      return await ask(`${worker.origin}/mcp`, "tools/call", { name: "add", arguments: ADD, _meta });
    }));
    assertEquals(answers.map(({ status }) => status), [200, 200, 200, 200, 200, 200]);
  },

  // The timer of the first request ends with this request.
  async "a call in a plain Worker times out, also after other requests"() {
    await using worker = await serveWorker(`${root}plain_server.ts`);
    const url = `${worker.origin}/mcp`;
    for (const name of ["quick", "hang", "quick", "hang"]) {
      const { message } = await ask(url, "tools/call", { name, arguments: {} });
      assertEquals(message.result?.content?.[0]?.text ?? message.error?.code, name === "hang" ? -32_603 : "quick");
    }
  },

  async "a plain Worker without streams announces no notifications, and refuses subscriptions"() {
    await using worker = await serveWorker(`${root}plain_server.ts`);
    const url = `${worker.origin}/mcp`;
    const { message: found } = await ask(url, "server/discover");
    assertEquals(found.result?.capabilities, { tools: { listChanged: false } });
    const params = { notifications: { toolsListChanged: true } };
    const { message: refused } = await ask(url, "subscriptions/listen", params);
    assertEquals(refused.error?.code, -32_601);
    assertStringIncludes(refused.error?.message, "streams: false");
    const session = await openSession(url);
    const stream = await fetch(url, { headers: { ...session, accept: "text/event-stream" } });
    assertEquals(stream.status, 405);
    await stream.body?.cancel();
  },

  async "a plain Worker runs deferred functions to their end, and returns their slots"() {
    await using worker = await serveWorker(`${root}plain_server.ts`);
    const url = `${worker.origin}/mcp`;
    assertEquals(await callTool(url, "later"), "later");
    await until(async () => await callTool(url, "read_ended") === "ended", "the function has ended");
    assertEquals(await (await fetch(`${worker.origin}/running`)).text(), "0");
  },

  async "a plain Worker rejects a server with a store when it starts"() {
    const serving = async () => await (await serveWorker(`${root}store_server.ts`))[Symbol.asyncDispose]();
    await assertRejects(serving, Error, "Cannot create a server: its store");
  },
};
