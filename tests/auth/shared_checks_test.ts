// One check of credentials that several requests share.
import { assertEquals } from "@std/assert";
import { SharedChecks } from "../../src/auth/shared_checks.ts";
import type { AuthRequestInfo } from "../../src/server/engine/auth.ts";
import { type Authentication, tool } from "../../mod.ts";
import { oauth } from "../../src/auth/oauth/oauth.ts";
import { toRequest } from "../support/requests.ts";
import { testLimits } from "../support/limits.ts";
import { openServer } from "../support/servers.ts";

function readNothing(): never {
  throw new Error("a check read the path parameters");
}

function toInfo({ signal }: AbortController): AuthRequestInfo {
  return { transport: "http", now: 0, signal, pathParams: readNothing };
}

/** Starts a check that two other requests join. Returns what aborts each request, and the signal of the check. */
function share() {
  const checks = new SharedChecks<string>();
  const [first, second, third] = Array.from({ length: 3 }, () => new AbortController());
  let signal: AbortSignal | undefined;
  const { promise, resolve } = Promise.withResolvers<string>();
  const found = checks.start("id", toInfo(first), (info) => {
    signal = info.signal;
    return promise;
  });
  return { checks, first, second, third, found, resolve, isAborted: () => signal?.aborted };
}

Deno.test("a request that is refused after it has joined a check does not end the check for later requests", async () => {
  const { checks, second, third, found, resolve, isAborted } = share();
  const joined = checks.join("id", toInfo(second));
  second.abort();
  assertEquals([checks.has("id"), isAborted()], [true, false]);
  const later = checks.join("id", toInfo(third));
  resolve("ada");
  assertEquals(await Promise.all([found, joined, later]), ["ada", "ada", "ada"]);
  assertEquals(checks.has("id"), false);
});

Deno.test("later requests do not join a check whose first request has timed out, and the last request ends it", async () => {
  const { checks, first, second, third, found, resolve, isAborted } = share();
  const joined = checks.join("id", toInfo(second));
  first.abort();
  assertEquals([checks.join("id", toInfo(third)), isAborted()], [undefined, false]);
  second.abort();
  assertEquals(isAborted(), true);
  resolve("ada");
  assertEquals(await Promise.all([found, joined]), ["ada", "ada"]);
});

Deno.test("a check whose only request was aborted before it is aborted, and is not shared", () => {
  const checks = new SharedChecks<string>();
  const aborted = new AbortController();
  aborted.abort();
  let signal: AbortSignal | undefined;
  checks.start("id", toInfo(aborted), (info) => {
    signal = info.signal;
    return new Promise(() => {});
  });
  assertEquals([checks.has("id"), signal?.aborted], [false, true]);
});

// Unknown tokens cannot block callers whose tokens are cached.

const RESOURCE = "https://mcp.example.com/mcp";

function start(auth: Authentication) {
  const handlers = [tool({ name: "whoami", run: (_, { principal }) => String(principal?.id) })];
  const limits = testLimits({ auth: { running: 8, runningPerPeer: 4 } });
  const server = openServer({ auth, handlers, limits, observer: { fault() {} } });
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
  const { send, status } = start(auth);
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
});

Deno.test("a caller whose check is synchronous is served while other requests wait", async () => {
  const { promise: end, resolve } = Promise.withResolvers<void>();
  let started = 0;
  const { send, status } = start({
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
});
