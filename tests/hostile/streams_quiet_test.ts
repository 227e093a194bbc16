// Idle streams stay open, on the HTTP servers of Deno and Bun, and behind a proxy.
import { assert, assertEquals } from "@std/assert";
import { tool } from "../../mod.ts";
import type { LimitOptions } from "../../src/server/capacity/limits.ts";
import { startHttpServer } from "../../src/testing/http_server.ts";
import { startProxy } from "./proxy.ts";
import { startSession, toCall } from "./unread.ts";
import { openServer } from "../support/servers.ts";

interface Quiet {
  /** Idle time in milliseconds. */
  readonly quietMs: number;
  /** The idle timeout of the proxy, in milliseconds. */
  readonly timeoutMs: number;
  readonly limits?: LimitOptions;
}

async function checkIdleStreams({ quietMs, timeoutMs, limits }: Quiet): Promise<void> {
  const { promise: over, resolve: end } = Promise.withResolvers<void>();
  const sleep = tool({ name: "sleep", run: () => over.then(() => "slept") });
  const server = openServer({ handlers: [sleep], limits });
  const host = startHttpServer(server.fetch);
  const port = Number(new URL(host.origin).port);
  const proxy = startProxy(port, timeoutMs);
  const urls = [port, proxy.port].map((port) => `http://127.0.0.1:${port}/mcp`);
  const sessions = await Promise.all(urls.map((url) => startSession(url, fetch)));
  const start = performance.now();

  /** Reads a response to its end. Returns the text, and the time at which each chunk arrived. */
  async function follow(request: Request) {
    const response = await fetch(request);
    const times: number[] = [];
    let text = "";
    const decoder = new TextDecoder();
    for await (const chunk of response.body ?? []) {
      times.push(performance.now() - start);
      text += decoder.decode(chunk, { stream: true });
    }
    return { text, times, ended: performance.now() - start };
  }

  const followed = urls.flatMap((url, at) => {
    const session = sessions[at];
    const listen = toCall("");
    const message = JSON.parse(listen.body);
    const { params: { _meta } } = message;
    const params = { _meta, notifications: { toolsListChanged: true } };
    const kinds: readonly (readonly [what: string, init: RequestInit])[] = [
      ["call", toCall("sleep")],
      ["call of a session", toCall("sleep", { session })],
      ["call that accepts no events", toCall("sleep", { accept: "application/json" })],
      ["stream of a session", { headers: { accept: "text/event-stream", "mcp-session-id": session } }],
      ["subscription", {
        ...listen,
        headers: { ...listen.headers, "mcp-method": "subscriptions/listen" },
        body: JSON.stringify({ ...message, method: "subscriptions/listen", params }),
      }],
    ];
    return kinds.map(async ([what, init]) => ({ what, ...await follow(new Request(url, init)) }));
  });

  // Fixed wait: runtimes close connections that are idle for some time.
  await new Promise((resolve) => setTimeout(resolve, quietMs));
  end();
  await server.close();
  const all = await Promise.all(followed);
  assertEquals(all.length, 10);
  for (const { what, text, times, ended } of all) {
    assert(times[0] < 2000, `${what}: the first byte came after ${times[0]} ms`);
    assert(ended > quietMs, `${what}: it ended after ${ended} ms`);
    const gaps = [...times, quietMs].map((time, i) => time - (times[i - 1] ?? 0));
    assert(Math.max(...gaps) < timeoutMs - 400, `${what}: ${gaps}`);
    if (what.startsWith("call")) assert(text.includes('"slept"'), `${what}: ${text}`);
    if (what.endsWith("no events")) assertEquals(JSON.parse(text).result.content[0].text, "slept");
    if (what === "subscription") assert(text.includes('"result"'), text);
  }
  assertEquals(proxy.cuts, 0);
  proxy.stop();
  await host.stop();
}

Deno.test("the server sends keep-alives at intervals, so an idle stream stays open", async () => {
  // Bun closes an idle connection after 10 s.
  await checkIdleStreams({ quietMs: 14_000, timeoutMs: 9900 });
});

Deno.test("a lower streams.heartbeatMs keeps idle streams open behind a proxy with a short idle timeout", async () => {
  await checkIdleStreams({ quietMs: 7000, timeoutMs: 3000, limits: { streams: { heartbeatMs: 2000 } } });
});
