// Unknown tokens cannot block callers whose tokens are cached.
import { assertEquals } from "@std/assert";
import type { Authentication } from "../../mod.ts";
import { createServer, tool } from "../../mod.ts";
import { oauth } from "../../src/auth/oauth/oauth.ts";
import { toRequest } from "../support/requests.ts";
import { testLimits } from "../support/limits.ts";

const RESOURCE = "https://mcp.example.com/mcp";

function start(auth: Authentication) {
  const handlers = [tool({ name: "whoami", run: (_, { principal }) => String(principal?.id) })];
  const limits = testLimits({ auth: { running: 8, runningPerPeer: 4 } });
  const server = createServer({
    name: "x",
    version: "1.0.0",
    auth,
    handlers,
    limits,
    observer: { fault() {} },
  });
  const send = (token: string, hostname = "203.0.113.1") =>
    server.fetch(toRequest("tools/call", { name: "whoami" }, { authorization: `Bearer ${token}` }), {
      remoteAddr: { hostname },
    });
  const status = async (token: string, hostname?: string) => {
    const response = await send(token, hostname);
    await response.text();
    return response.status;
  };
  return { server, send, status };
}

function introspecting() {
  const asked: string[] = [];
  const { promise: end, resolve } = Promise.withResolvers<void>();
  const auth = oauth({
    resource: RESOURCE,
    issuers: ["https://login.example.com"],
    introspection: async (token) => {
      asked.push(token);
      if (token === "known") return { aud: RESOURCE, sub: "ada" };
      if (token.startsWith("slow")) await end;
    },
  });
  return { auth, asked, end: resolve };
}

Deno.test("a caller whose token is cached is served while checks of unknown tokens reach the limit auth.running", async () => {
  const { auth, asked, end } = introspecting();
  const { server, send, status } = start(auth);
  assertEquals(await status("known"), 200);
  const waiting = ["203.0.113.1", "203.0.113.2", "203.0.113.3"].flatMap((peer) =>
    Array.from({ length: 4 }, (_, at) => send(`slow-${peer}-${at}`, peer))
  );
  assertEquals(await status("slow-more"), 503);
  const before = asked.length;
  assertEquals(await status("more"), 503);
  assertEquals(asked.length, before, "a refused request causes no check");
  for (const peer of ["203.0.113.1", "203.0.113.4"]) assertEquals(await status("known", peer), 200);
  end();
  const ended = await Promise.all(waiting.map(async (each) => (await each).status));
  assertEquals([...new Set(ended)].sort(), [401, 503]);
  assertEquals(await status("more"), 401);
  await server.close();
});

Deno.test("a caller whose check is synchronous is served while other requests wait", async () => {
  const { promise: end, resolve } = Promise.withResolvers<void>();
  let started = 0;
  const { server, send, status } = start({
    authenticate(request) {
      if (request.headers.get("authorization") === "Bearer known") return { id: "ada" };
      started++;
      return end.then(() => undefined);
    },
  });
  assertEquals(await status("known"), 200);
  const waiting = Array.from({ length: 4 }, () => send("slow"));
  assertEquals([await status("known"), await status("slow"), await status("known")], [200, 503, 200]);
  for (let i = 0; i < 20; i++) assertEquals(await status("slow"), 503);
  assertEquals(started, 8, "refused requests whose check continues are bounded too");
  assertEquals(await status("known", "203.0.113.9"), 200);
  resolve();
  for (const each of waiting) assertEquals((await each).status, 401);
  assertEquals([await status("slow"), await status("known")], [401, 200]);
  await server.close();
});
