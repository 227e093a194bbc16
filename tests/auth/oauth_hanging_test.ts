// Functions in options that never settle and ignore their signal do not block requests.
import { assertEquals, assertRejects } from "@std/assert";
import { sendJson } from "../../src/auth/oauth/http.ts";
import { oauth } from "../../src/auth/oauth/oauth.ts";
import { createServer, tool } from "../../mod.ts";
import { toRequest } from "../support/requests.ts";
import { advanceUntil, turn, until } from "../support/behaviour.ts";
import { testLimits } from "../support/limits.ts";
import { fakeClock } from "../../src/testing/testing.ts";

const resource = "http://localhost/mcp";

Deno.test("a token is checked again after its first check has timed out", async () => {
  let asked = 0;
  const hang = new Promise<never>(() => {});
  const auth = oauth({
    resource,
    issuers: ["https://login.example.com"],
    introspection: () => asked++ ? { active: true, aud: resource, sub: "ada" } : hang,
  });
  const limits = testLimits({ auth: { timeoutMs: 50 } });
  const handlers = [tool({ name: "hi", run: () => "Hi" })];
  const clock = fakeClock();
  const server = createServer({ name: "x", version: "1", auth, limits, handlers, observer: { fault() {} }, clock });
  const ask = async () => {
    const request = new Request(toRequest("tools/list"));
    request.headers.set("authorization", "Bearer opaque");
    const response = await server.fetch(request);
    await response.body?.cancel();
    return response.status;
  };
  const first = ask();
  await until(() => asked === 1, "the first check");
  const statuses = [await advanceUntil(clock, 50, first), await ask()];
  await server.close();
  assertEquals([statuses, asked], [[503, 200], 2]);
});

Deno.test("a request to an authorization server times out even if the custom fetch never settles", async () => {
  const never = new Promise<never>(() => {});
  const hanging = new ReadableStream<Uint8Array>();
  for (const send of [() => never, () => Promise.resolve(new Response(hanging))]) {
    const stop = new AbortController();
    turn(5).then(() => stop.abort(new Error("it took too long")));
    const outcome = () => sendJson(send, "https://login.example.com/", { signal: stop.signal });
    await assertRejects(outcome, Error, "it took too long");
  }
});
