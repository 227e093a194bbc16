// Over every transport, a stream ends when the caller's credentials are revoked.
import { assert, assertEquals, assertThrows } from "@std/assert";
import type { Authentication, Principal } from "../../mod.ts";
import { resource, tool } from "../../mod.ts";
import type { FaultEvent } from "../../src/observe/observe.ts";
import { refuseRequest } from "../../src/auth/auth.ts";
import { oauth } from "../../src/auth/oauth/oauth.ts";
import { fakeClock } from "../../src/testing/testing.ts";
import { httpSse } from "../../src/server/transports/http/sse_2024.ts";
import { webSocket } from "../../src/server/transports/websocket.ts";
import { serve } from "../peers/runtime.ts";
import { until } from "../support/behaviour.ts";
import { toRequest } from "../support/requests.ts";
import { sentence } from "../support/messages.ts";
import { openServer } from "../support/servers.ts";

const TOKEN = { authorization: "Bearer secret" };
const initialize = {
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "c", version: "1" } },
};

function start(auth: Authentication) {
  const clock = fakeClock();
  const faults: FaultEvent[] = [];
  const handlers = [
    tool({ name: "open", run: () => "" }),
    resource({ uri: "note://a", name: "a", read: () => "" }),
  ];
  const observer = { fault: (event: FaultEvent) => void faults.push(event) };
  const server = openServer({ auth, handlers, clock, observer });
  return { server, clock, faults };
}

/** Reads a stream in the background, and reports whether the stream has ended. */
function watch(response: Response): { readonly ended: () => boolean; readonly cancel: () => Promise<void> } {
  assertEquals(response.status, 200);
  const reader = response.body?.getReader();
  let ended = false;
  void (async () => {
    while (!(await reader?.read())?.done);
    ended = true;
  })();
  return { ended: () => ended, cancel: async () => await reader?.cancel() };
}

type Started = ReturnType<typeof start>;

/** Functions that open a stream, one for each transport. `ended` returns whether the stream has ended. */
const openings: Readonly<
  Record<string, (started: Started) => Promise<{ readonly ended: () => boolean; readonly cancel: () => unknown }>>
> = {
  async listen({ server }) {
    const request = toRequest("subscriptions/listen", { notifications: { toolsListChanged: true } }, TOKEN);
    return watch(await server.fetch(request));
  },
  async "stream of a session"({ server }) {
    const accept = { accept: "application/json, text/event-stream", "content-type": "application/json" };
    const post = (message: unknown, headers: Record<string, string>) =>
      server.fetch(
        new Request("http://localhost/mcp", {
          method: "POST",
          headers: { ...accept, ...TOKEN, ...headers },
          body: JSON.stringify(message),
        }),
      );
    const begun = await post(initialize, {});
    await begun.text();
    const session = { "mcp-session-id": begun.headers.get("mcp-session-id") ?? "" };
    const headers = { accept: "text/event-stream", ...TOKEN, ...session };
    return watch(await server.fetch(new Request("http://localhost/mcp", { headers })));
  },
  async "HTTP+SSE"({ server }) {
    return watch(await httpSse(server).fetch(new Request("http://localhost/sse", { headers: TOKEN })));
  },
  async WebSocket({ server }) {
    const port = serve(webSocket(server));
    // The cast passes `headers`, which both runtimes accept. The standard type allows only a list of protocols.
    const socket = new WebSocket(`ws://${port.host}/ws`, { headers: TOKEN } as unknown as string[]);
    let ended = false;
    const closed = new Promise<void>((resolve) =>
      socket.addEventListener("close", () => {
        ended = true;
        resolve();
      })
    );
    await new Promise((resolve) => socket.addEventListener("open", resolve));
    const cancel = async () => {
      socket.close();
      await closed;
      await port[Symbol.asyncDispose]();
    };
    return { ended: () => ended, cancel };
  },
};

for (const [name, open] of Object.entries(openings)) {
  Deno.test(`${name}: the caller of a stream is rechecked every minute, and the stream ends when the recheck fails`, async () => {
    const state: { answer: () => unknown; asked: number } = {
      answer: () => ({ id: "ada", scopes: ["a"] }),
      asked: 0,
    };
    const auth: Authentication = {
      authenticate(request) {
        state.asked++;
        if (request.headers.get("authorization") !== TOKEN.authorization) return;
        // The cast returns values of the wrong type on purpose.
        return state.answer() as ReturnType<Authentication["authenticate"]>;
      },
    };
    for (
      const revoked of [
        () => undefined,
        () => Promise.resolve(undefined),
        () => refuseRequest(401),
        () => ({ id: "eve", scopes: ["a"] }),
        () => ({ id: "ada", scopes: [] }),
        () => ({ id: "ada" }),
      ]
    ) {
      const valid = state.answer;
      const started = start(auth);
      const stream = await open(started);
      const { asked } = state;
      for (let minute = 1; minute <= 3; minute++) {
        await started.clock.advance(60_000);
        await until(() => state.asked === asked + minute, `check ${minute}`);
      }
      assert(!stream.ended());
      state.answer = revoked;
      await started.clock.advance(60_000);
      await until(stream.ended, `the end (${revoked})`);
      state.answer = valid;
      assertEquals(started.faults, []);
      await stream.cancel();
    }
  });
}

Deno.test("rechecks that cannot complete for five minutes end the stream, and a successful recheck resets this time", async () => {
  const failing = [
    () => refuseRequest(503),
    () => Promise.reject(new Error("no database")),
    () => new Promise(() => {}),
  ];
  for (const fail of failing) {
    const state: { answer: () => unknown; asked: number } = { answer: () => ({ id: "ada" }), asked: 0 };
    const auth: Authentication = {
      authenticate() {
        state.asked++;
        return state.answer() as ReturnType<Authentication["authenticate"]>; // The cast returns values of the wrong type on purpose.
      },
    };
    const started = start(auth);
    const stream = await openings.listen(started);
    const valid = state.answer;
    const pass = async (minutes: number) => {
      for (let minute = 0; minute < minutes; minute++) {
        const { asked } = state;
        await started.clock.advance(60_000);
        await until(() => state.asked > asked || stream.ended(), "a check");
        await started.clock.advance(10_000);
      }
    };
    state.answer = fail;
    await pass(3);
    state.answer = valid;
    await pass(1);
    assert(!stream.ended());
    state.answer = fail;
    await pass(6);
    await until(stream.ended, "the end");
  }
});

Deno.test("a subscription ends after its opaque token was revoked, with and without exp", async () => {
  for (const exp of [undefined, Math.floor(Date.now() / 1000) + 86_400]) {
    let isActive = true;
    const resource = "https://mcp.example.com/mcp";
    const auth = oauth({
      resource,
      issuers: ["https://login.example.com"],
      introspection: () => isActive ? { aud: resource, sub: "ada", exp } : undefined,
    });
    const clock = fakeClock(Date.now());
    const server = openServer({ auth, clock, handlers: [tool({ name: "t", run: () => "" })] });
    const request = toRequest("subscriptions/listen", { notifications: { toolsListChanged: true } }, TOKEN);
    const stream = watch(await server.fetch(request));
    await clock.advance(60_000);
    assert(!stream.ended());
    isActive = false;
    for (let i = 0; i < 2; i++) await clock.advance(60_000);
    await until(stream.ended, `the end (exp ${exp})`);
  }
});

Deno.test("a principal that is passed to fetch is not rechecked, and the stream ends at expiresAt", async () => {
  let asked = 0;
  const authenticate = (_: unknown, { now }: { readonly now: number }) => {
    asked++;
    return { id: "ada", expiresAt: now + 240_000 };
  };
  const { server, clock } = start({ authenticate });
  const listen = () => toRequest("subscriptions/listen", { notifications: { toolsListChanged: true } }, TOKEN);
  const [front, own] = [
    watch(await server.fetch(listen(), { principal: { id: "bob" } })),
    watch(await server.fetch(listen())),
  ];
  await clock.advance(120_000);
  assertEquals([asked, front.ended(), own.ended()], [1, false, false]);
  await clock.advance(120_000);
  await until(own.ended, "the end");
  assert(!front.ended());
});

for (const [name, open] of Object.entries(openings)) {
  Deno.test(`${name}: the server can end the streams of selected callers`, async () => {
    const callers = ["ada", "bob"];
    const started = start({ authenticate: () => ({ id: callers[0] }) });
    const ada = await open(started);
    callers.shift();
    const bob = await open(started);
    await until(() => !ada.ended() && !bob.ended(), "the streams");
    for (const select of [undefined, "ada", () => undefined, () => 1, () => Promise.resolve(true)]) {
      assertThrows(() => started.server.end(select as never), TypeError, sentence());
    }
    assertThrows(
      () =>
        started.server.end(() => {
          throw new Error("own");
        }),
      Error,
      "own",
    );
    started.server.end(({ principal }) => principal?.id === "ada");
    await until(ada.ended, "the end");
    assert(!bob.ended());
    started.server.end(() => true);
    await until(bob.ended, "the end of the other stream");
    assertEquals(started.faults, []);
    for (const stream of [ada, bob]) await stream.cancel();
  });

  Deno.test(`${name}: the server calls renew shortly before the credentials of a stream's caller expire`, async () => {
    const asked: unknown[] = [];
    const times = [50_000, 30_000, 12_000];
    let now = () => 0;
    let result: (principal: Principal) => unknown = (principal) => ({ ...principal, expiresAt: now() + times[1] });
    const started = start({
      authenticate: (_, info) => ({ id: "ada", scopes: ["a"], expiresAt: info.now + times[0] }),
      renew(principal) {
        asked.push([principal.id, (principal.expiresAt ?? 0) - now()]);
        return result(principal) as Principal; // The cast returns values of the wrong type on purpose.
      },
    });
    now = () => started.clock.date();
    const stream = await open(started);
    await started.clock.advance(39_000);
    assertEquals(asked, []);
    await started.clock.advance(1000);
    await until(() => asked.length === 1, "the first renewal");
    await started.clock.advance(19_000);
    assert(!stream.ended(), "the stream outlives its first credentials");
    await started.clock.advance(1000);
    await until(() => asked.length === 2, "the second renewal");
    assertEquals(asked, [["ada", 10_000], ["ada", 10_000]]);
    for (
      const wrong of [
        () => undefined,
        () => ({ id: "eve", scopes: ["a"], expiresAt: now() + 60_000 }),
        () => ({ id: "ada", expiresAt: now() + 60_000 }),
        () => ({ id: "ada", scopes: ["a"], expiresAt: now() }),
      ]
    ) {
      result = wrong;
      const other = await open(started);
      await started.clock.advance(50_000);
      await until(other.ended, `the end (${wrong})`);
      await other.cancel();
    }
    await until(stream.ended, "the end of the first stream");
    assertEquals(started.faults, []);
    await stream.cancel();
  });
}

Deno.test("a failed renewal is retried until the credentials expire, and the stream ends even if a renewal never settles", async () => {
  let asked = 0;
  let isWorking = false;
  const started = start({
    authenticate: (_, { now }) => ({ id: "ada", expiresAt: now + 20_000 }),
    renew(principal) {
      asked++;
      if (!isWorking) throw new Error("no database");
      return { ...principal, expiresAt: started.clock.date() + 20_000 };
    },
  });
  const stream = await openings.listen(started);
  await started.clock.advance(10_000);
  await until(() => asked === 1, "the first renewal");
  isWorking = true;
  await started.clock.advance(5000);
  await until(() => asked === 2, "the second renewal");
  await started.clock.advance(9000);
  assert(!stream.ended());
  isWorking = false;
  for (let i = 0; i < 12; i++) await started.clock.advance(1000);
  await until(stream.ended, "the end");
  assert(started.faults.length > 1);

  const never = start({
    authenticate: (_, { now }) => ({ id: "ada", expiresAt: now + 5000 }),
    renew: () => new Promise(() => {}),
  });
  const waiting = await openings.listen(never);
  await never.clock.advance(5001);
  await until(waiting.ended, "the end without an answer");
});

Deno.test("messages on a WebSocket use the renewed principal", async () => {
  const started = start({
    authenticate: (_, { now }) => ({ id: "ada", expiresAt: now + 20_000 }),
    renew: (principal) => ({ ...principal, expiresAt: started.clock.date() + 20_000 }),
  });
  await using port = serve(webSocket(started.server));
  const socket = new WebSocket(`ws://${port.host}/ws`);
  const texts: string[] = [];
  socket.addEventListener("message", ({ data }) => texts.push(data));
  await new Promise((resolve) => socket.addEventListener("open", resolve));
  for (let i = 0; i < 3; i++) await started.clock.advance(10_000);
  socket.send(JSON.stringify(initialize));
  await until(() => texts.length === 1, "the response");
  assert(texts[0].includes("serverInfo"), texts[0]);
  const closed = new Promise((resolve) => socket.addEventListener("close", resolve));
  socket.close();
  await closed;
});
