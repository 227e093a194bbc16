// Callers who have sent too many wrong tokens or passwords must wait. Other callers, and callers at the same address
// whose token was accepted within the last hour, do not wait.
import { assert, assertEquals } from "@std/assert";
import type { Authentication } from "../../mod.ts";
import { tool } from "../../mod.ts";
import { basicAuth, customAuth, refuseRequest, type VerifyUser } from "../../src/auth/auth.ts";
import { type Claims, oauth } from "../../src/auth/oauth/oauth.ts";
import type { BoundOptions } from "../../src/server/capacity/limits.ts";
import { fakeClock } from "../../src/testing/testing.ts";
import { advanceUntil, turn, until } from "../support/behaviour.ts";
import { testLimits } from "../support/limits.ts";
import { sentence } from "../support/messages.ts";
import { readReply, toRequest } from "../support/requests.ts";
import { openServer } from "../support/servers.ts";

const RESOURCE = "https://mcp.example.com/mcp";
const [HERE, ELSEWHERE] = ["203.0.113.1", "203.0.113.2"];

/** A response whose status a test reads later. */
interface Sent {
  /** `undefined` while the server has not responded. */
  status?: number;
  retryAfter?: string | null;
  id?: string;
  message?: string;
  /** Settles with the response. */
  done: Promise<void>;
}

function start(auth: Authentication | readonly Authentication[], bounds: BoundOptions["auth"] = {}) {
  const clock = fakeClock();
  const server = openServer({
    auth,
    handlers: [tool({ name: "whoami", run: (_, { principal }) => String(principal?.id) })],
    limits: testLimits({ auth: bounds }),
    observer: { fault() {} },
    clock,
  });
  const receive = async (request: Request, hostname: string, sent: Sent) => {
    const response = await server.fetch(request, hostname === "" ? undefined : { remoteAddr: { hostname } });
    const { result, error } = await readReply(response);
    sent.retryAfter = response.headers.get("retry-after");
    sent.id = result?.content[0].text;
    sent.message = error?.message;
    sent.status = response.status;
  };
  const send = (authorization: string, hostname: string = HERE): Sent => {
    const sent: Sent = { done: Promise.resolve() };
    sent.done = receive(toRequest("tools/call", { name: "whoami" }, { authorization }), hostname, sent);
    return sent;
  };
  /** Sends a request, and waits for the response. */
  const ask = async (authorization: string, hostname?: string): Promise<Sent> => {
    const sent = send(authorization, hostname);
    await sent.done;
    return sent;
  };
  /** Sends a request, and lets the server do all work that needs no timer. */
  const hold = async (authorization: string, hostname?: string): Promise<Sent> => {
    const sent = send(authorization, hostname);
    await turn(5);
    return sent;
  };
  return { server, clock, send, ask, hold };
}

const bearer = (token: string) => `Bearer ${token}`;
const basic = (name: string, password: string) => {
  return `Basic ${btoa(String.fromCharCode(...new TextEncoder().encode(`${name}:${password}`)))}`;
};

/** An issuer that knows tokens that begin with `valid`. It does not respond for `held` tokens until they are released. */
function introspecting() {
  const asked: string[] = [];
  const held = new Map<string, PromiseWithResolvers<void>>();
  const introspection = async (token: string): Promise<Claims | undefined> => {
    asked.push(token);
    const [, kind] = /-(held)-/.exec(token) ?? [];
    if (kind) {
      const waiting = Promise.withResolvers<void>();
      held.set(token, waiting);
      await waiting.promise;
    }
    return token.startsWith("valid") ? { aud: RESOURCE, sub: "ada" } : undefined;
  };
  const auth = oauth({ resource: RESOURCE, issuers: ["https://login.example.com"], introspection });
  return { auth, asked, release: (token: string) => held.get(token)?.resolve() };
}

type Started = ReturnType<typeof start>;

/** Uses up the budget of an address for unknown tokens. */
async function spend({ ask }: Started, count = 60): Promise<void> {
  for (let at = 0; at < count; at++) assertEquals((await ask(bearer(`junk-${at}`))).status, 401);
}

Deno.test("a token that was accepted within the last hour does not wait for unknown tokens of the same address", async () => {
  const { auth, asked } = introspecting();
  const started = start(auth);
  const { clock, ask } = started;
  assertEquals((await ask(bearer("valid-1"))).status, 200);
  await clock.advance(3_540_000);
  await spend(started);
  const before = asked.length;
  assertEquals((await ask(bearer("valid-1"))).status, 200);
  assertEquals(asked.length, before + 1, "the server still introspects the token");
  await clock.advance(3_590_000);
  await spend(started);
  assertEquals((await ask(bearer("valid-1"))).status, 200, "one hour from the last time that the token was accepted");
});

Deno.test("a token that was accepted long ago, or was revoked since, is an unknown token", async () => {
  const { auth, asked, release } = introspecting();
  let isRevoked = false;
  const revocable = oauth({
    resource: RESOURCE,
    issuers: ["https://login.example.com"],
    introspection: (token) => token === "valid" && !isRevoked ? { aud: RESOURCE, sub: "ada" } : undefined,
  });
  const revoked = start(revocable);
  assertEquals((await revoked.ask(bearer("valid"))).status, 200);
  await revoked.clock.advance(31_000);
  isRevoked = true;
  assertEquals((await revoked.ask(bearer("valid"))).status, 401);
  await revoked.clock.advance(31_000);
  for (let at = 0; at < 59; at++) assertEquals((await revoked.ask(bearer(`junk-${at}`))).status, 401);
  assertEquals((await revoked.ask(bearer("valid"))).status, 401, "the 60th failure");

  const started = start(auth);
  assertEquals((await started.ask(bearer("valid-old"))).status, 200);
  await started.clock.advance(3_600_000);
  await spend(started);
  const held = await started.hold(bearer("junk-held-1"));
  const old = await started.hold(bearer("valid-old"));
  assertEquals([held.status, old.status, asked.at(-1)], [undefined, undefined, "junk-held-1"]);
  release("junk-held-1");
  await turn(3);
  assertEquals([held.status, old.status], [401, 200]);
});

Deno.test("over the budget, the server introspects one unknown token of an address at a time", async () => {
  const { auth, asked, release } = introspecting();
  const started = start(auth);
  const { clock, ask, hold } = started;
  await spend(started);
  await clock.advance(1000);
  const first = await hold(bearer("junk-held-1"));
  const second = await hold(bearer("valid-held-2"));
  const third = await hold(bearer("valid-3"));
  assertEquals(asked.slice(60), ["junk-held-1"]);
  assertEquals((await ask(bearer("valid-4"), ELSEWHERE)).status, 200, "another address does not wait");
  release("junk-held-1");
  await turn(3);
  assertEquals([first.status, second.status, third.status], [401, undefined, undefined]);
  release("valid-held-2");
  await turn(3);
  assertEquals([second.status, third.status], [200, 200]);
  assertEquals(asked.slice(60), ["junk-held-1", "valid-4", "valid-held-2", "valid-3"]);
  await clock.advance(59_000);
  const [one, two] = [await hold(bearer("junk-held-5")), await ask(bearer("valid-6"))];
  assertEquals([one.status, two.status], [undefined, 200], "after a minute the budget is full again");
  release("junk-held-5");
  await one.done;
});

Deno.test("an unknown token waits at most 5 seconds, and only a limited number of requests per address wait", async () => {
  const { auth, asked, release } = introspecting();
  const started = start(auth, { delayedPerPeer: 3 });
  const { clock, ask, hold } = started;
  await spend(started);
  const held = await hold(bearer("junk-held-1"));
  const waiting = [await hold(bearer("valid-1")), await hold(bearer("wrong")), await hold(bearer("valid-2"))];
  const refused = await ask(bearer("valid-3"));
  assertEquals([refused.status, refused.retryAfter], [429, "5"]);
  assertEquals(refused.message, sentence("auth.failuresPerPeer"));
  assertEquals(waiting.map(({ status }) => status), [undefined, undefined, undefined]);
  await clock.advance(4999);
  assertEquals(waiting.map(({ status }) => status), [undefined, undefined, undefined]);
  await clock.advance(1);
  assertEquals(waiting.map(({ status, retryAfter }) => [status, retryAfter]), [[429, "5"], [429, "5"], [429, "5"]]);
  release("junk-held-1");
  await held.done;
  assertEquals(asked.slice(60), ["junk-held-1"], "a refused request causes no introspection");
  assertEquals((await ask(bearer("valid-3"))).status, 200, "the turn does not stay with a request that was refused");
});

Deno.test("a request that waits does not count as an authentication in progress", async () => {
  const { auth, release } = introspecting();
  const started = start(auth, { running: 8, runningPerPeer: 2 });
  const { server, clock, ask, hold } = started;
  assertEquals((await ask(bearer("valid-1"))).status, 200);
  await clock.advance(31_000);
  await spend(started);
  const waiting = [];
  for (const at of Array(20).keys()) waiting.push(await hold(bearer(`junk-held-${at}`)));
  assertEquals((await ask(bearer("valid-1"))).status, 200);
  assertEquals(waiting.filter(({ status }) => status !== undefined), []);
  await server.close();
  for (const at of waiting.keys()) release(`junk-held-${at}`);
  await Promise.all(waiting.map(({ done }) => done));
  assertEquals([...new Set(waiting.map(({ status }) => status))], [503]);
});

Deno.test("tokens that are being introspected count towards the budget, and valid tokens do not stay counted", async () => {
  const { auth, asked, release } = introspecting();
  const { hold } = start(auth);
  const all = Array.from({ length: 64 }, (_, at) => `valid-held-${at}`);
  const sent = [];
  for (const token of all) sent.push(await hold(bearer(token)));
  assertEquals(asked.length, 61, "60 at the same time, and one in turn");
  for (const token of all) {
    release(token);
    await turn(2);
  }
  for (const token of all) release(token);
  await Promise.all(sent.map(({ done }) => done));
  assertEquals([...new Set(sent.map(({ status }) => status))], [200]);
});

Deno.test("an introspection that ignores its signal keeps its turn for at most 10 seconds", async () => {
  const { auth, release } = introspecting();
  const started = start(auth);
  const { clock, hold } = started;
  await spend(started);
  const hanging = await hold(bearer("valid-held-1"));
  await clock.advance(9000);
  const next = await hold(bearer("valid-2"));
  assertEquals([hanging.status, next.status], [undefined, undefined]);
  await clock.advance(1000);
  assertEquals([hanging.status, next.status], [503, 200]);
  release("valid-held-1");
});

for (const kind of ["a table", "a synchronous function", "an asynchronous function"] as const) {
  const verify: VerifyUser = (name, password) => password === `right ${name}` ? {} : undefined;
  const users = {
    "a table": { ada: "right ada", eve: "right eve" },
    "a synchronous function": verify,
    "an asynchronous function": async (...given: Parameters<VerifyUser>) => await verify(...given),
  };
  Deno.test(`a client that guesses passwords waits, but the user does not wait at another address (${kind})`, async () => {
    const { clock, send, ask, hold } = start(basicAuth({ users: users[kind] }));
    for (let at = 0; at < 10; at++) assertEquals((await ask(basic("ada", `wrong ${at}`))).status, 401);
    const guesses = Array.from({ length: 3000 }, (_, at) => send(basic("ada", `guess ${at}`)));
    await turn(5);
    assertEquals([await ask(basic("ada", "right ada"), ELSEWHERE), await ask(basic("eve", "right eve"))].map(toShort), [
      [200, "basic:ada"],
      [200, "basic:eve"],
    ]);
    await clock.advance(5000);
    await Promise.all(guesses.map(({ done }) => done));
    const checked = guesses.filter(({ status }) => status === 401).length;
    assert(checked >= 4 && checked <= 5, `${checked} guesses were checked`);
    const refused = guesses.filter(({ status, retryAfter }) => status === 429 && retryAfter === "5");
    assertEquals(refused.length, 3000 - checked);
    const own = await hold(basic("ada", "right ada"));
    assertEquals(own.status, undefined, "the user waits at the guesser's address");
    await clock.advance(1000);
    assertEquals(toShort(own), [200, "basic:ada"]);
    await clock.advance(60_000);
    assertEquals((await ask(basic("ada", "right ada"))).status, 200);
  });
}

function toShort({ status, id }: Sent): unknown[] {
  return [status, id];
}

Deno.test("3,000 concurrent guesses cause at most ten checks of passwords before the first of them has ended", async () => {
  const checked: string[] = [];
  const end = Promise.withResolvers<void>();
  const users: VerifyUser = async (_, password) => {
    checked.push(password);
    await end.promise;
    return undefined;
  };
  const { clock, send } = start(basicAuth({ users }));
  const guesses = Array.from({ length: 3000 }, (_, at) => send(basic("ada", `guess ${at}`)));
  await turn(5);
  assertEquals(checked.length, 10);
  end.resolve();
  await advanceUntil(clock, 1000, Promise.all(guesses.map(({ done }) => done)));
  assert(checked.length <= 15, `${checked.length}`);
});

Deno.test("hostile: another spelling of a name that a database may ignore is not another budget", async () => {
  const names = [
    "ada",
    "ADA",
    "aDa",
    " ada",
    "ada ",
    "ada\u00a0",
    "\u00e1d\u00e1",
    "a\u0301da",
    "a\u200bda",
    "\uff41\uff44\uff41",
  ];
  const { clock, ask, hold } = start(basicAuth({ users: () => undefined }));
  for (const name of names) assertEquals((await ask(basic(name, "x"))).status, 401, name);
  for (const name of ["Ada", "ada  ", "\u00c5da"]) {
    const guess = await hold(basic(name, "x"));
    assertEquals(guess.status, undefined, name);
    await clock.advance(1000);
    assertEquals(guess.status, 401, name);
  }
  assertEquals((await ask(basic("adam", "x"))).status, 401);
});

/** Spellings that the users function of a test treats as one name. No two of them have the same Unicode normalization. */
const spell = (at: number) => `ad${"\u00f8\u0142\u0111\u0127\u2c65\u1d00\ua730"[at % 7]}a${"\u02b9".repeat(at / 7)}`;

for (const isAsync of [false, true]) {
  const kind = isAsync ? "asynchronous" : "synchronous";
  /** A server, and the passwords that its users function has checked. */
  const startCounting = (bounds?: BoundOptions["auth"]) => {
    const checked: string[] = [];
    const verify = (name: string, password: string) => {
      checked.push(password);
      return password === `right ${name}` ? { id: name } : undefined;
    };
    const users: VerifyUser = isAsync ? async (...[name, password]) => await verify(name, password) : verify;
    return { ...start(basicAuth({ users }), bounds), checked };
  };

  Deno.test(`hostile: the passwords of all names from one address share a budget (${kind})`, async () => {
    const { server, clock, send, ask, hold, checked } = startCounting();
    await server.ready();
    // Guess the password of one user with many spellings of the name, and one password of many users.
    const guesses = Array.from({ length: 400 }, (_, at) => [
      send(basic(spell(at), `guess ${at}`)),
      send(basic(`user ${at}`, "12345678")),
    ]).flat();
    await turn(20);
    assertEquals(checked.length, 60);
    assertEquals(toShort(await ask(basic("ada", "right ada"), ELSEWHERE)), [200, "basic:ada"]);
    for (let s = 0; s < 5; s++) await clock.advance(1000);
    await Promise.all(guesses.map(({ done }) => done));
    const found = guesses.filter(({ status }) => status === 401).length;
    assert(found >= 64 && found <= 65, `${found} guesses were checked`);
    const refused = guesses.find(({ status }) => status === 429);
    assertEquals([refused?.retryAfter, refused?.message], ["5", sentence("auth.failuresPerPeer")]);
    const own = await hold(basic("ada", "right ada"));
    assertEquals(own.status, undefined, "a user who was not here in the last hour waits");
    await clock.advance(1000);
    assertEquals(toShort(own), [200, "basic:ada"]);
  });

  Deno.test(`a user who was here within the last hour does not wait for the passwords of other names (${kind})`, async () => {
    const { clock, ask, hold } = startCounting();
    assertEquals((await ask(basic("ada", "right ada"))).status, 200);
    await clock.advance(3_000_000);
    assertEquals((await ask(basic("ada", "right ada"))).status, 200);
    assertEquals((await ask(basic("eve", "right eve"), ELSEWHERE)).status, 200);
    await clock.advance(3_000_000);
    for (let at = 0; at < 60; at++) assertEquals((await ask(basic(`user ${at}`, "x"))).status, 401);
    for (let at = 0; at < 70; at++) assertEquals((await ask(basic("ada", "right ada"))).status, 200);
    const others = [await hold(basic("eve", "right eve")), await hold(basic("zoe", "right zoe"))];
    assertEquals(others.map(({ status }) => status), [undefined, undefined], "other names here");
    for (let at = 0; at < 10; at++) assertEquals((await ask(basic("ada", `guess ${at}`))).status, 401);
    assertEquals((await hold(basic("ada", "right ada"))).status, undefined, "guesses of this name still count");
    await clock.advance(3_700_000);
    for (let at = 0; at < 60; at++) assertEquals((await ask(basic(`user ${at}`, "x"))).status, 401);
    assertEquals((await hold(basic("ada", "right ada"))).status, undefined, "the last time was over an hour ago");
  });

  Deno.test(`one user's old password does not make the other users of an address wait (${kind})`, async () => {
    const { clock, ask, hold } = startCounting();
    assertEquals((await ask(basic("ada", "right ada"))).status, 200);
    for (let s = 0; s < 90; s++) {
      await hold(basic("eve", "old"));
      assertEquals((await ask(basic("ada", "right ada"))).status, 200);
      await clock.advance(1000);
    }
  });

  Deno.test(`a request that waits for two budgets does not count as an authentication in progress (${kind})`, async () => {
    const { clock, ask, hold } = startCounting({ running: 4, runningPerPeer: 1 });
    assertEquals((await ask(basic("ada", "right ada"))).status, 200);
    for (let at = 0; at < 10; at++) assertEquals((await ask(basic("eve", "x"))).status, 401);
    for (let at = 0; at < 50; at++) assertEquals((await ask(basic(`user ${at}`, "x"))).status, 401);
    const waiting = await hold(basic("eve", "right eve"));
    await clock.advance(1000);
    assertEquals(waiting.status, undefined, "it has waited for the budget of its name");
    assertEquals((await ask(basic("ada", "right ada"))).status, 200);
    await clock.advance(1000);
    assertEquals(toShort(waiting), [200, "basic:eve"]);
  });
}

Deno.test("hostile: the /64 networks of one IPv6 /56 network share a budget", async () => {
  const neighbor = (at: number) => `2001:db8:0:12${at.toString(16).padStart(2, "0")}::1`;
  const guessing = start(basicAuth({ users: { ada: "right ada" } }));
  for (let at = 0; at < 10; at++) assertEquals((await guessing.ask(basic("ada", `${at}`), neighbor(at))).status, 401);
  assertEquals((await guessing.hold(basic("ada", "right ada"), neighbor(255))).status, undefined);
  assertEquals((await guessing.ask(basic("ada", "right ada"), "2001:db8:0:1300::1")).status, 200);

  const { auth, release } = introspecting();
  const flooding = start(auth);
  for (let at = 0; at < 60; at++) assertEquals((await flooding.ask(bearer(`junk-${at}`), neighbor(at))).status, 401);
  const held = await flooding.hold(bearer("junk-held-1"), neighbor(61));
  const waiting = await flooding.hold(bearer("valid"), neighbor(62));
  assertEquals([held.status, waiting.status], [undefined, undefined]);
  assertEquals((await flooding.ask(bearer("valid-1"), "2001:db8:0:1300::1")).status, 200);
  release("junk-held-1");
  await Promise.all([held.done, waiting.done]);
});

Deno.test("an error of the users function counts as a wrong password, and a refusal because of load does not", async () => {
  const throwing = start(basicAuth({
    users() {
      throw new Error("the password does not match");
    },
  }));
  for (let at = 0; at < 10; at++) assertEquals((await throwing.ask(basic("ada", "x"))).status, 500);
  assertEquals((await throwing.hold(basic("ada", "x"))).status, undefined);
  await throwing.server.close();
  for (const [status, isCounted] of [[401, true], [403, true], [429, false], [503, false]] as const) {
    const { ask, hold } = start(basicAuth({ users: () => refuseRequest(status) as never }));
    for (let at = 0; at < 10; at++) assertEquals((await ask(basic("ada", "x"))).status, status);
    assertEquals((await hold(basic("ada", "x"))).status, isCounted ? undefined : status);
  }
});

Deno.test("an error of the users function also counts in a request that has waited for its turn", async () => {
  const end = Promise.withResolvers<void>();
  const users: VerifyUser = async (_, password) => {
    if (!password.startsWith("right")) throw new Error("the password does not match");
    await end.promise;
    return {};
  };
  const { ask, send, hold, clock } = start(basicAuth({ users }));
  // Valid checks that are in progress use up the budget, and then stop counting.
  const valid = Array.from({ length: 10 }, (_, at) => send(basic("ada", `right ${at}`)));
  await turn(5);
  const late = send(basic("ada", "wrong"));
  await advanceUntil(clock, 100, late.done);
  assertEquals(late.status, 500);
  end.resolve();
  await Promise.all(valid.map(({ done }) => done));
  for (let at = 0; at < 9; at++) assertEquals((await ask(basic("ada", "wrong"))).status, 500);
  assertEquals((await hold(basic("ada", "wrong"))).status, undefined);
});

Deno.test("the recheck of a caller with an open stream does not wait for guesses from the same address", async () => {
  const checked: string[] = [];
  const users: VerifyUser = (_, password) => {
    checked.push(password);
    return password === "right" ? {} : undefined;
  };
  const { server, clock, ask, hold } = start(basicAuth({ users }));
  const listen = { notifications: { toolsListChanged: true } };
  const request = toRequest("subscriptions/listen", listen, { authorization: basic("ada", "right") });
  const stream = await server.fetch(request, { remoteAddr: { hostname: HERE } });
  assertEquals(stream.status, 200);
  const reader = stream.body!.getReader(); // The stream of a subscription has a body.
  let isOpen = true;
  const reading = (async () => {
    while (!(await reader.read()).done);
    isOpen = false;
  })();
  await clock.advance(30_000);
  for (let at = 0; at < 10; at++) assertEquals((await ask(basic("ada", "wrong"))).status, 401);
  const guess = await hold(basic("ada", "right"));
  assertEquals([guess.status, checked.filter((each) => each === "right").length], [undefined, 1]);
  await clock.advance(1000);
  assertEquals([guess.status, checked.filter((each) => each === "right").length], [200, 2]);
  await clock.advance(28_000);
  for (let at = 0; at < 3; at++) await hold(basic("ada", "wrong"));
  await clock.advance(999);
  const before = checked.filter((each) => each === "right").length;
  await clock.advance(2);
  await until(
    () => checked.filter((each) => each === "right").length > before,
    "the caller of the stream is rechecked",
  );
  assertEquals(isOpen, true);
  await reader.cancel();
  await reading;
});

/** A users function that does not return until it is released. Passwords that begin with `right` are right. */
function holding() {
  const checked: string[] = [];
  const signals: AbortSignal[] = [];
  let gate = Promise.withResolvers<void>();
  const users: VerifyUser = async (name, password, { signal }) => {
    checked.push(`${name}:${password}`);
    signals.push(signal);
    await gate.promise;
    return password.startsWith("right") ? {} : undefined;
  };
  const release = () => {
    gate.resolve();
    gate = Promise.withResolvers();
  };
  return { users, checked, signals, release };
}

Deno.test("parallel requests with the same password share one check, and none of them is refused", async () => {
  for (const password of ["right", "wrong"]) {
    const { users, checked, release } = holding();
    const { server, send, hold } = start(basicAuth({ users }));
    await server.ready();
    const all = Array.from({ length: 100 }, () => send(basic("ada", password)));
    await turn(5);
    assertEquals(checked, [`ada:${password}`]);
    release();
    await Promise.all(all.map(({ done }) => done));
    const status = password === "right" ? 200 : 401;
    assertEquals([...new Set(all.map((each) => each.status))], [status]);
    // A wrong password counts once.
    const others = [];
    for (let at = 0; at < 8; at++) others.push(await hold(basic("ada", `right ${at}`)));
    assertEquals(checked.length, 9);
    release();
    await Promise.all(others.map(({ done }) => done));
    assertEquals([...new Set(others.map((each) => each.status))], [200]);
  }
});

Deno.test("checks in progress are not failures: requests that wait for them start as soon as one has succeeded", async () => {
  const { users, checked, release } = holding();
  const { server, clock, send } = start(basicAuth({ users }));
  await server.ready();
  const all = Array.from({ length: 100 }, (_, at) => send(basic(`user ${at}`, "right")));
  await turn(5);
  assertEquals(checked.length, 60);
  for (let round = 0; round < 4; round++) {
    release();
    await turn(20);
  }
  // The first request that waited began with a pause, because no check had succeeded.
  assertEquals(all.filter(({ status }) => status === 200).length, 99);
  await clock.advance(1000);
  release();
  await Promise.all(all.map(({ done }) => done));
  assertEquals([...new Set(all.map(({ status }) => status))], [200]);
});

Deno.test("the refusal says whether credentials were wrong or are being checked", async () => {
  const { users, release } = holding();
  const { clock, send, hold } = start(basicAuth({ users }), { delayedPerPeer: 2 });
  const ask = async (password: string) => {
    const sent = await hold(basic("ada", password));
    release();
    await sent.done;
  };
  const refused = async () => {
    const late = await hold(basic("ada", "late"));
    assertEquals([late.status, late.retryAfter], [429, "5"]);
    return late.message;
  };
  for (let at = 0; at < 10; at++) await hold(basic("ada", `right ${at}`));
  await Promise.all([hold(basic("ada", "a")), hold(basic("ada", "b"))]);
  assertEquals(await refused(), sentence("auth.failuresPerUser", "are being checked"));
  release();
  await clock.advance(1000);
  release();
  await clock.advance(60_000);
  for (let at = 0; at < 5; at++) await ask(`wrong ${at}`);
  const slow = Array.from({ length: 7 }, (_, at) => send(basic("ada", `right ${at}`)));
  await turn(5);
  assertEquals(await refused(), sentence("auth.failuresPerUser", "were wrong or are being checked"));
  release();
  await clock.advance(1000);
  release();
  await Promise.all(slow.map(({ done }) => done));
  for (let at = 0; at < 5; at++) await ask(`wrong again ${at}`);
  const waiting = Array.from({ length: 2 }, (_, at) => send(basic("ada", `right ${at}`)));
  await turn(5);
  assertEquals(await refused(), sentence("auth.failuresPerUser", "were wrong"));
  await clock.advance(1000);
  release();
  await clock.advance(1000);
  release();
  await Promise.all(waiting.map(({ done }) => done));
});

Deno.test("an accepted password is remembered for 5 seconds, for one address and one URL", async () => {
  const checked: string[] = [];
  const auth = basicAuth({
    users: async (name, password, { peer, pathParams }) => {
      checked.push([name, password, peer, await pathParams().tenant].join(" "));
      return password === "right" ? { scopes: [`of:${pathParams().tenant}`] } : undefined;
    },
  });
  const clock = fakeClock();
  const server = openServer({
    auth,
    path: "/:tenant/mcp",
    hosts: ["one.example", "two.example"],
    handlers: [tool({ name: "whoami", run: (_, { principal }) => String(principal?.scopes) })],
    clock,
  });
  const ask = async (password: string, url: string, hostname: string) => {
    const { headers, body } = toRequest("tools/call", { name: "whoami" }, { authorization: basic("ada", password) });
    const request = new Request(url, { method: "POST", headers, body: await new Response(body).text() });
    const { result } = await readReply(await server.fetch(request, { remoteAddr: { hostname } }));
    return result?.content[0].text;
  };
  const [a, b, other] = ["http://one.example/a/mcp", "http://one.example/b/mcp", "http://two.example/a/mcp"];
  for (let round = 0; round < 3; round++) {
    assertEquals(await ask("right", a, HERE), "of:a");
    assertEquals(await ask("right", b, HERE), "of:b");
    assertEquals(await ask("right", a, ELSEWHERE), "of:a");
    assertEquals(await ask("right", other, HERE), "of:a");
    await clock.advance(1600);
  }
  assertEquals(checked.length, 4);
  await clock.advance(400);
  assertEquals(await ask("right", a, HERE), "of:a");
  assertEquals(checked.length, 5, "further uses do not make it longer");
  for (let round = 0; round < 2; round++) assertEquals(await ask("wrong", a, HERE), undefined);
  assertEquals(checked.length, 7);
});

Deno.test("hostile: a client that must wait learns nothing from the check of another request with the same password", async () => {
  const { users, checked, release } = holding();
  const { server, clock, send, hold } = start(basicAuth({ users }));
  for (let at = 0; at < 10; at++) {
    const sent = await hold(basic("ada", `guess ${at}`));
    release();
    await sent.done;
  }
  const own = await hold(basic("ada", "right"));
  await clock.advance(1000);
  assertEquals(checked.length, 11);
  const guesses = ["right", "wrong", "right", "wrong"].map((password) => send(basic("ada", password)));
  await turn(20);
  release();
  await own.done;
  assertEquals(own.status, 200);
  // The password is known now, but every guess waits for its turn.
  await turn(20);
  assertEquals(guesses.map(({ status }) => status), [undefined, undefined, undefined, undefined]);
  await clock.advance(1000);
  await turn(5);
  assertEquals(guesses.map(({ status }) => status), [200, undefined, undefined, undefined]);
  await clock.advance(1000);
  release();
  await turn(5);
  assertEquals(guesses.map(({ status }) => status), [200, 401, undefined, undefined]);
  await server.close();
  await Promise.all(guesses.map(({ done }) => done));
});

for (const kind of ["basicAuth", "introspection"] as const) {
  Deno.test(`the timeout of the request that has started a check does not end the check of others (${kind})`, async () => {
    const { users, checked, signals, release } = holding();
    const auth = kind === "basicAuth" ? basicAuth({ users }) : oauth({
      resource: RESOURCE,
      issuers: ["https://login.example.com"],
      introspection: async (token, signal) => {
        await users(token, "right", { signal, transport: "http", now: 0, pathParams: () => ({}) });
        return signal.aborted ? undefined : { aud: RESOURCE, sub: "ada" };
      },
    });
    const { clock, hold } = start(auth);
    const credentials = kind === "basicAuth" ? basic("ada", "right") : bearer("opaque");
    const first = await hold(credentials);
    await clock.advance(6000);
    const second = await hold(credentials);
    await clock.advance(4000);
    assertEquals([first.status, second.status, signals[0].aborted], [503, undefined, false]);
    // A check that has timed out once is not shared with further requests.
    const third = await hold(credentials);
    assertEquals(checked.length, 2);
    release();
    await Promise.all([second.done, third.done]);
    assertEquals([second.status, third.status], [200, 200]);
    const lost = await hold(kind === "basicAuth" ? basic("eve", "right") : bearer("other"));
    await clock.advance(10_000);
    assertEquals([lost.status, signals.map(({ aborted }) => aborted)], [503, [false, false, true]]);
    release();
  });
}

Deno.test("callers whose address is unknown do not share a budget", async () => {
  const { auth } = introspecting();
  const { ask } = start([auth, basicAuth({ users: { ada: "right" } })]);
  for (let at = 0; at < 70; at++) {
    assertEquals((await ask(basic("ada", "x"), "")).status, 401);
    assertEquals((await ask(bearer(`junk-${at}`), "")).status, 401);
  }
});

Deno.test("a budget works in a list of schemes, and behind your own function", async () => {
  const { auth, asked, release } = introspecting();
  const own = customAuth(auth.authenticate, { form: "bearer", prefix: "own" });
  for (const each of [[auth, basicAuth({ users: { ada: "x" } })], own]) {
    asked.length = 0;
    const started = start(each);
    await spend(started);
    const held = await started.hold(bearer("junk-held-1"));
    const valid = await started.hold(bearer("valid-1"));
    assertEquals([held.status, valid.status], [undefined, undefined]);
    release("junk-held-1");
    await turn(5);
    assertEquals([held.status, valid.status], [401, 200]);
    await started.server.close();
  }
});
