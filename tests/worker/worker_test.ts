// Handlers in worker threads: every method of the context, cancelling a blocked thread, and crashes.
import process from "node:process";
import { Worker as Thread } from "node:worker_threads";
import { assert, assertEquals, assertRejects, assertStringIncludes, assertThrows } from "@std/assert";
import { type Context, createServer, extension, McpError, tool } from "../../mod.ts";
import { allScopes } from "../../src/auth/auth.ts";
import { quota, type UseItem } from "../../src/layers/layers.ts";
import { type Connection, fakeClock, fakeContext } from "../../src/testing/testing.ts";
import { BUSY } from "../../src/core/protocol/errors.ts";
import { findThreadLocks } from "../../src/core/runtime.ts";
import { worker } from "../../src/ready/worker/worker.ts";
import { behaviour, gate, started, textOf, turn, until } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";
import { call as request, fail } from "../support/requests.ts";
import { withTimersOn } from "../support/timers.ts";
import { testClient } from "../support/test_server.ts";
import { patch } from "../support/patch.ts";
import heavyInside from "./heavy.ts";
import type heavy from "./heavy.ts";

const heavyFile = new URL("./heavy.ts", import.meta.url);
/** Milliseconds that a terminated thread may take to end before the pool refuses calls. */
const ENDING_MS = 500;
const input = { type: "object", properties: { job: { type: "string" }, value: {} }, required: ["job"] } as const;

/** Creates a tool with a single thread, which ends soon after its last call. */
function makeHeavy(options = {}) {
  const run = worker<typeof heavy>(heavyFile, { size: 1, idleMs: 0, ...options });
  return tool({ name: "heavy", input, run: async (input, ctx) => await run(input, ctx) as string });
}

behaviour("a handler in a thread has the context of its call", async (join, { version }) => {
  const asked: string[] = [];
  const { client } = await join({ handlers: [makeHeavy()] }, {
    logLevel: "info",
    onElicit: ({ message }) => {
      asked.push(message);
      return { action: "accept", content: message === "Which day?" ? { day: "tue" } : { seats: 2 } };
    },
  });
  const context = await client.callTool("heavy", { job: "context" }, { meta: { "x.test/a": 1 } });
  const { method, version: seen, meta } = context.structuredContent as Record<string, unknown>;
  assertEquals([method, seen, (meta as Record<string, unknown>)["x.test/a"]], ["tools/call", version, 1]);

  const progress: unknown[] = [];
  const done = await client.callTool("heavy", { job: "progress" }, {
    onProgress: ({ progress: value, total, message }) => void progress.push([value, total, message]),
  });
  assertEquals(textOf(done), "done");
  assertEquals(progress, [[1, 2, "half"], [2, undefined, undefined]]);
  await until(() => client.received.some(({ method }) => method === "notifications/message"), "a log message");

  const booked = await client.callTool("heavy", { job: "book" });
  assertEquals(booked.structuredContent, { isSame: true, day: { day: "tue" }, seats: { seats: 20 } });
  assertEquals(asked.toSorted(), ["How many?", "Which day?"]);
});

Deno.test("an answer with singleUse to a question from a thread is accepted once", async () => {
  await using server = createServer({ name: "threads", version: "1.0.0", handlers: [makeHeavy()] });
  const _meta = { "io.modelcontextprotocol/clientCapabilities": { elicitation: { form: {}, url: {} } } };
  for (const job of ["pay", "visit"]) {
    const params = { name: "heavy", arguments: { job }, _meta };
    const { requestState } = await request(server, "tools/call", params);
    const inputResponses = { sure: { action: "accept", content: { yes: true } } };
    const answered = { ...params, requestState, inputResponses };
    assertEquals(textOf(await request(server, "tools/call", answered)), "accept");
    assertEquals((await fail(server, "tools/call", answered)).message, sentence());
  }
});

/** Waits until a number of threads run calls at the same time. A call is refused while a terminated thread ends. */
async function untilThreads(client: Connection, count: number): Promise<void> {
  await until(async () => {
    let most = 0;
    let running = 0;
    await Promise.all(Array.from({ length: count }, async () => {
      let isRunning = 0;
      const onProgress = () => void (most = Math.max(most, running += isRunning = 1));
      await client.callTool("heavy", { job: "announce and burn", value: 100 }, { onProgress }).catch(({ code }) => {
        assertEquals(code, BUSY);
      });
      running -= isRunning;
    }));
    return most === count;
  }, `${count} threads`);
}

/** Returns a message without the parts that differ between runtimes. */
function toStable(message: string): string {
  return message.replace(/Uncaught (\(in promise\) )?Error: /, "")
    .replace(/(\(\)\s*=>\s*\{\s*\} could|The object can) not be cloned\.?/, "ERROR");
}

behaviour("errors in a thread are treated like errors in a handler", async (join) => {
  const { client, takeFaults } = await join({ handlers: [makeHeavy()] });
  const run = (job: string) => client.callTool("heavy", { job });
  assertEquals(textOf(await run("tool error")), "try tuesday");
  assertEquals(textOf(await run("fail once")), "could not make it");
  const error = await assertRejects(() => run("mcp error"), Error, "seven");
  assertEquals([Reflect.get(error, "code"), Reflect.get(error, "data")], [7, { at: 7 }]);
  assertEquals(takeFaults(), []);
  for (
    const [job, message] of [
      ["bug", "out of range"],
      ["once too large", sentence('ctx.once("k")', "maxBytes")],
      ["function", sentence("ERROR")],
      ["uncaught", sentence("nobody caught this")],
      ["late", sentence("too late")],
      ["exit", sentence()],
    ] as const
  ) {
    assertEquals((await run(job)).isError, true);
    const [fault] = takeFaults();
    assertEquals(toStable((fault.error as Error).message), message, job);
    // The pool has a free thread again.
    assertEquals(textOf(await client.callTool("heavy", { job: "echo", value: "next" })), "next");
  }
});

/** Runs `use` with threads whose errors are counted. */
async function countErrors(use: (count: () => number) => Promise<void>): Promise<void> {
  let errors = 0;
  const restore = watchErrors(() => void errors++);
  try {
    await use(() => errors);
  } finally {
    restore();
  }
}

/** Calls `onError` for each error of a thread. Returns a function that ends this. */
function watchErrors(onError: () => void): () => void {
  const { Worker: real } = globalThis;
  if (!real) {
    const { emit } = Thread.prototype;
    Thread.prototype.emit = function (this: Thread, event: string, ...args: unknown[]): boolean {
      if (event === "error") onError();
      return Reflect.apply(emit, this, [event, ...args]);
    };
    return () => void (Thread.prototype.emit = emit);
  }
  globalThis.Worker = class extends real {
    constructor(...args: ConstructorParameters<typeof real>) {
      super(...args);
      this.addEventListener("error", onError);
    }
  };
  return () => void (globalThis.Worker = real);
}

Deno.test("a thread that ends while it is idle is replaced", async () => {
  const run = worker<typeof heavy>(heavyFile, { size: 1, idleMs: 60_000 });
  await countErrors(async (count) => {
    for (let i = 1; i <= 2; i++) {
      assertEquals(await run({ job: "crash when idle" }, fakeContext()), "done");
      await until(() => count() === i, "the thread has ended");
    }
  });
});

Deno.test("a thread that fails before its first call fails the call", async () => {
  let made = 0;
  class Failing extends EventTarget {
    constructor() {
      super();
      made++;
      queueMicrotask(() => this.dispatchEvent(Object.assign(new Event("error"), { message: "failed early" })));
    }
    postMessage(): void {}
    terminate(): void {}
  }
  using _patched = patch(globalThis, { Worker: Failing });
  const run = worker<typeof heavy>(heavyFile, { size: 1, startMs: 200 });
  for (let i = 1; i <= 2; i++) {
    await assertRejects(() => run({ job: "echo" }, fakeContext()), Error, "failed early");
    assertEquals(made, i);
  }
});

for (const [how, message] of [["fails", "failed late"], ["exits", "the thread ended before it sent a response"]]) {
  Deno.test(`a call waits for the end of a thread that ${how}, however long it takes`, async () => {
    const clock = fakeClock();
    const { pass, open } = gate();
    let made = 0;
    // The first thread stops at once, but the runtime ends this thread only when the gate opens.
    class Failing extends EventTarget {
      readonly #isFirst = !made++;

      constructor(_url: URL, { name }: { readonly name: string }) {
        super();
        if (this.#isFirst) findThreadLocks()?.request(name, () => pass);
        pass.then(() => this.#isFirst && this.dispatchEvent(new Event("close")));
        setTimeout(() => this.#send({ kind: "ready" }));
      }

      #send(data: unknown): void {
        this.dispatchEvent(new MessageEvent("message", { data }));
      }

      postMessage(): void {
        if (!this.#isFirst) this.#send({ kind: "result", value: "next" });
        else if (how === "exits") queueMicrotask(() => this.#send({ kind: "gone" }));
        else queueMicrotask(() => this.dispatchEvent(Object.assign(new Event("error"), { message })));
      }

      terminate(): void {}
    }
    using _patched = patch(globalThis, { Worker: Failing });
    await withTimersOn(clock, ENDING_MS, async () => {
      const run = worker<typeof heavy>(heavyFile, { size: 1, idleMs: 0 });
      await assertRejects(() => run({ job: "echo" }, fakeContext()), Error, message);
      const next = started(run({ job: "echo" }, fakeContext()));
      for (let i = 0; i < 3; i++) await clock.advance(ENDING_MS);
      assertEquals(made, 1);
      open();
      assertEquals(await next, "next");
      // The timer has ended with its thread.
      assertEquals([made, clock.waiting], [2, 0]);
    });
  });
}

behaviour("cancelling a call ends a thread that does not stop by itself", async (join) => {
  const { client } = await join({ handlers: [makeHeavy({ stopMs: 20 })] });
  // Deno cannot end a thread that never yields.
  for (const job of "Bun" in globalThis ? ["spin", "wait"] : ["wait"]) {
    const abort = new AbortController();
    const call = client.callTool("heavy", { job }, { signal: abort.signal, onProgress: () => abort.abort() });
    const echo = () => client.callTool("heavy", { job: "echo", value: "waited" });
    // The thread may need a moment to end on a loaded machine, and calls are refused until then.
    const waiting = echo().catch((error: McpError) => assertEquals(error.code, BUSY));
    await assertRejects(() => call);
    // The only thread was blocked, so a new thread responds.
    let result = await waiting;
    await until(async () => {
      result ??= await echo().catch((error: McpError) => assertEquals(error.code, BUSY));
      return result;
    }, "a new thread");
    assertEquals(textOf(result!), "waited");
  }
});

behaviour("a terminated thread counts until it has ended, and calls are refused until then", async (join) => {
  const { client } = await join({ handlers: [makeHeavy({ stopMs: 20, size: 2 })] });
  const toRefusal = ({ code, message }: McpError) => `${code} ${message}`;
  const echo = () => client.callTool("heavy", { job: "echo", value: "here" }).then(textOf, toRefusal);
  const burnMs = 2500;
  const since = performance.now();
  const cancelled = [1, 2].map(async () => {
    const abort = new AbortController();
    const onProgress = () => abort.abort();
    const options = { signal: abort.signal, onProgress };
    await assertRejects(() => client.callTool("heavy", { job: "announce and burn", value: burnMs }, options));
  });
  const waiting = echo();
  await Promise.all(cancelled);
  const answers = [await waiting];
  // On a busy machine, the threads may have ended before the call reaches them.
  const isSoon = performance.now() - since < burnMs;
  await until(async () => answers.at(-1) === "here" || answers.push(await echo()) < 0, "a thread");
  const refused = [...new Set(answers)].filter((answer) => answer !== "here");
  // Bun can end any thread, so it may refuse no call.
  if ("Bun" in globalThis || !isSoon) assert(refused.every((answer) => answer.startsWith(`${BUSY} `)), refused.join());
  else assertEquals(refused, [`${BUSY} ${sentence()}`]);
  // Both terminated threads have ended.
  await untilThreads(client, 2);
}, { eras: ["modern"], transports: ["memory", "http"] });

behaviour("a handler that blocks its thread detects the cancellation through its signal", async (join) => {
  // The server never ends the thread, so the next call gets the thread only after the handler stops.
  const { client } = await join({ handlers: [makeHeavy({ stopMs: 60_000 })] });
  for (const job of ["poll", "check"]) {
    const abort = new AbortController();
    const call = client.callTool("heavy", { job }, { signal: abort.signal, onProgress: () => abort.abort() });
    await assertRejects(() => call);
    assertEquals(textOf(await client.callTool("heavy", { job: "echo", value: "next" })), "next");
  }
});

behaviour("a call that waits for a thread can be cancelled", async (join) => {
  const { client } = await join({ handlers: [makeHeavy()] });
  const first = client.callTool("heavy", { job: "burn", value: 400 });
  const abort = new AbortController();
  const second = started(client.callTool("heavy", { job: "burn", value: 1 }, { signal: abort.signal }));
  await turn(5);
  abort.abort();
  await assertRejects(() => second);
  assertEquals(textOf(await first), "burnt");
}, { transports: ["memory"] });

behaviour("one client cannot use all threads", async (join) => {
  const { client, join: joinOther } = await join({
    handlers: [makeHeavy({ size: 4, stopMs: 60_000 })],
  }, { principal: { id: "eve" } });
  const ada = await joinOther({ principal: { id: "ada" } });
  const abort = new AbortController();
  let running = 0;
  const options = { signal: abort.signal, onProgress: () => void running++ };
  const calls = [1, 2, 3, 4].map(() => started(client.callTool("heavy", { job: "wait" }, options)));
  await until(() => running === 3, "the calls in threads");
  assertEquals(textOf(await ada.callTool("heavy", { job: "echo", value: "here" })), "here");
  assertEquals(running, 3);
  abort.abort();
  for (const call of calls) await assertRejects(() => call);
  // The cancelled handlers have ended.
  await untilThreads(client, 3);
}, { perInstance: "ready", transports: ["memory", "http"] });

for (const [name, isWrapped] of [["", false], [" with a layer of an extension", true]] as const) {
  behaviour(`the wait for a thread does not count towards the timeout of a call${name}`, async (join) => {
    const clock = fakeClock();
    const run = worker<typeof heavy>(heavyFile, { size: 1, idleMs: 0, stopMs: 60_000 });
    const late = extension({ id: "com.example/late" });
    const around = late.layer({ around: async (_call, next) => await next() });
    const make = (name: string, timeoutMs: number, use: readonly UseItem[] = []) =>
      tool({ name, input, use: [quota({ timeoutMs }), ...use], run: async (...call) => await run(...call) as string });
    const handlers = [late, make("slow", 60_000), make("quick", 1000, isWrapped ? [around] : [])];
    const { client } = await join({ clock, handlers });
    const abort = new AbortController();
    let quick: Promise<unknown> | undefined;
    const slow = client.callTool("slow", { job: "wait" }, {
      signal: abort.signal,
      onProgress: () => void (quick = started(client.callTool("quick", { job: "echo", value: "waited" }).then(textOf))),
    });
    await until(() => !!quick, "a call that waits for the thread");
    await turn(20);
    await clock.advance(5000);
    abort.abort();
    await assertRejects(() => slow);
    assertEquals(await quick, "waited");
    // The time on the thread counts.
    let isRunning = false;
    const last = started(client.callTool("quick", { job: "wait" }, { onProgress: () => void (isRunning = true) }));
    await until(() => isRunning, "a call that runs in the thread");
    await clock.advance(1000);
    assertEquals(String(await last.catch((error) => error)), sentence("McpError", 1000, "handler.timeoutMs"));
    // The next call gets the thread when the handler has stopped.
    assertEquals(textOf(await client.callTool("quick", { job: "echo", value: "next" })), "next");
  }, { perInstance: "ready" });
}

Deno.test("a blocked thread cannot flood the server with notifications", async () => {
  let count = 0;
  const ctx = new Proxy(fakeContext(), {
    get: (context, name) => name === "progress" ? () => Promise.resolve(void count++) : Reflect.get(context, name),
  });
  const run = worker<typeof heavy>(heavyFile, { size: 1, idleMs: 0 });
  assertEquals(await run({ job: "flood" }, ctx), "flooded");
  assert(count >= 64 && count < 100_000, `${count} notifications`);
});

Deno.test("other calls run while a thread is busy", async () => {
  await using client = await testClient({ handlers: [makeHeavy(), tool({ name: "quick", run: () => "quick" })] });
  let isBusy = true;
  const heavy = client.callTool("heavy", { job: "burn", value: 500 }).finally(() => isBusy = false);
  let quick = 0;
  for (; isBusy; quick++) {
    await client.callTool("quick");
    await turn();
  }
  assertEquals(textOf(await heavy), "burnt");
  // A blocked event loop would run at most one call. On a busy machine, calls are slow.
  assert(quick > 3, `${quick} calls`);
});

Deno.test("a file that cannot run in a thread causes an error with the reason", async () => {
  // The test starts a process, because Deno's test runner can hang after it has started a thread whose file cannot be
  // loaded.
  const { system } = await import("../support/folder.ts");
  const program = new URL("./unusable_files.ts", import.meta.url).pathname;
  const words = typeof Deno === "undefined" ? [program] : ["run", "-A", "--quiet", "--no-check", program];
  const lines = (await system(process.execPath, ...words)).split("\n");
  for (const [at, name] of ["missing.ts", "exposeWorker()", "broken at load"].entries()) {
    assertStringIncludes(lines[at], name);
    // Compare the message without the reason, which differs between runtimes.
    assertEquals(lines[at].split(": ").slice(0, 2).join(": "), `Error: ${sentence()}`);
  }
});

Deno.test("an input that cannot be cloned causes an error with the reason", async () => {
  const run = worker<typeof heavy>(heavyFile, { size: 1, idleMs: 0 });
  const secret = { job: "echo", value: () => {} };
  const { message } = await assertRejects(() => run(secret, fakeContext()), TypeError);
  assertEquals(toStable(message), sentence("ERROR"));
  assertEquals(await run({ job: "echo", value: 1 }, fakeContext()), 1);
});

/** Creates a context that answers `roots` after a delay, and records progress. */
function slowContext(answer: string, ms: number, more: Partial<Context> = {}) {
  const progress: number[] = [];
  const own: Partial<Context> = {
    // Fixed wait: no event reports that an idle thread has ended.
    roots: () => new Promise((resolve) => setTimeout(() => resolve([{ uri: answer }]), ms)),
    progress: (value) => Promise.resolve(void progress.push(value)),
    ...more,
  };
  const get = (context: Context, name: string) => Reflect.get(name in own ? own : context, name);
  return { progress, ctx: new Proxy(fakeContext(), { get: (context, name) => get(context, String(name)) }) };
}

Deno.test("work that a handler leaves running does not affect the next call of its thread", async () => {
  const run = worker<typeof heavy>(heavyFile, { size: 1, idleMs: 0 });
  const [first, second] = [slowContext("file:///first", 50), slowContext("file:///second", 150)];
  // A call in progress keeps the thread for the next call.
  const results = [run({ job: "leave" }, first.ctx), run({ job: "roots" }, second.ctx)];
  assertEquals(await Promise.all(results), ["left", [{ uri: "file:///second" }]]);
  assertEquals([first.progress, second.progress], [[], []]);
});

/** Options of tests whose thread waits for further calls after the test. */
const leavesThread = { sanitizeOps: false, sanitizeResources: false };

Deno.test("an error that a handler causes after its call does not fail a later call", leavesThread, async () => {
  const run = worker<typeof heavy>(heavyFile, { size: 1, idleMs: 60_000 });
  await countErrors(async (count) => {
    assertEquals(await run({ job: "leave an error" }, fakeContext()), "left");
    await until(() => count() === 1, "the error");
  });
  const late = Promise.withResolvers<string>();
  const timer = setTimeout(() => late.resolve("no answer"), 60_000);
  assertEquals(await Promise.race([run({ job: "echo", value: 1 }, fakeContext()), late.promise]), 1);
  clearTimeout(timer);
});

Deno.test("if a value of the context cannot be cloned, the call fails", async () => {
  const run = worker<typeof heavy>(heavyFile, { size: 1, idleMs: 0 });
  const once = (() => Promise.resolve({ close() {} })) as Context["once"]; // Middleware could have created such a value.
  const { ctx } = slowContext("", 0, { once });
  await assertRejects(() => run({ job: "once" }, ctx), Error, sentence("ctx.once"));
  const fail = () => Promise.reject(new McpError(7, "seven", { at() {} }));
  await assertRejects(() => run({ job: "roots" }, slowContext("", 0, { roots: fail }).ctx), McpError, "seven");
});

/** Makes the creation of threads fail. */
function withoutThreads(): Disposable {
  class Failing {
    constructor() {
      throw new Error("no more threads");
    }
  }
  return patch(globalThis, { Worker: Failing });
}

Deno.test("if no thread can be created, every call fails, and no call waits", async () => {
  using _patched = withoutThreads();
  const run = worker<typeof heavy>(heavyFile, { size: 1 });
  for (const job of ["echo", "burn"]) {
    await assertRejects(() => run({ job }, fakeContext()), Error, "no more threads");
  }
});

Deno.test("a caller with many calls does not block the threads for other callers", async () => {
  const run = worker<typeof heavy>(heavyFile, { size: 1, idleMs: 0 });
  const order: string[] = [];
  const call = async (id: string) => {
    await run({ job: "burn", value: 5 }, fakeContext({ principal: { id } }));
    order.push(id);
  };
  await Promise.all([...Array.from({ length: 10 }, () => call("eve")), call("ada"), call("bob")]);
  assertEquals(order.slice(0, 4).toSorted(), ["ada", "bob", "eve", "eve"]);
});

Deno.test("if no further thread can be created, every waiting call gets an error or a result", async () => {
  const run = worker<typeof heavy>(heavyFile, { size: 1 });
  const first = run({ job: "uncaught" }, fakeContext());
  using _patched = withoutThreads();
  const waiting = Array.from({ length: 3 }, () => run({ job: "echo" }, fakeContext()));
  await assertRejects(() => first, Error, "nobody caught this");
  for (const call of waiting) await assertRejects(() => call, Error, "no more threads");
});

Deno.test("calls that are cancelled while their thread starts do not each start a thread", leavesThread, async () => {
  const { Worker } = globalThis;
  let started = 0;
  using _patched = patch(globalThis, {
    Worker: class extends Worker {
      constructor(url: string | URL, options?: WorkerOptions) {
        started++;
        super(url, options);
      }
    },
  });
  const run = worker<typeof heavy>(heavyFile, { size: 1, idleMs: 60_000 });
  for (let i = 0; i < 20; i++) {
    const controller = new AbortController();
    const call = run({ job: "echo" }, fakeContext({ signal: controller.signal }));
    controller.abort(new Error("cancelled"));
    await assertRejects(() => call, Error, "cancelled");
  }
  assertEquals(await run({ job: "echo", value: 7 }, fakeContext()), 7);
  assertEquals(started, 1);
});

Deno.test("outside of a thread, an exposed handler is an ordinary function", async () => {
  assertEquals(await heavyInside({ job: "echo", value: 5 }, fakeContext()), 5);
});

Deno.test("invalid options are refused", () => {
  // @ts-expect-error a path has no base
  assertThrows(() => worker("./heavy.ts"), TypeError, sentence('new URL("./file.ts", import.meta.url)'));
  assertThrows(() => worker(heavyFile, { size: 0 }), TypeError, sentence("size", 0));
  assertThrows(() => worker(heavyFile, { stopMs: Infinity }), TypeError, sentence("stopMs", Infinity));
});

behaviour("scopes and allScopes are passed to a thread, but the thread's context cannot test scopes", async (join) => {
  const { client, join: joinAs } = await join({ handlers: [makeHeavy()] }, {
    principal: { id: "ada", scopes: ["notes:read"], open: () => {} },
  });
  const ask = async (from: typeof client) => (await from.callTool("heavy", { job: "caller" })).structuredContent;
  assertEquals(await ask(client), { principal: { id: "ada", scopes: ["notes:read"] }, hasTest: false });
  const all = await joinAs({ principal: { id: "bob", scopes: allScopes } });
  assertEquals(await ask(all), { principal: { id: "bob", scopes: [...allScopes] }, hasTest: false });
  assertEquals(await ask(await joinAs({ principal: { id: "eve" } })), { principal: { id: "eve" }, hasTest: false });
});

behaviour("facts about a caller that cannot be cloned throw when a handler in a thread reads them", async (join) => {
  class Account {
    readonly name = "ada";
    get isBlocked() {
      return true;
    }
  }
  const cyclic: Record<string, unknown> = { a: 1 };
  cyclic.self = cyclic;
  const copied = { plain: { at: [1, null] }, date: new Date(5), bytes: new Uint8Array([7]), cyclic, none: undefined };
  const withheld = {
    isBlocked: () => true,
    claims: { roles: ["a"], isBlocked: () => true },
    account: new Account(),
    accounts: [new Account()],
    bare: Object.create({ isBlocked: true }),
    mark: Symbol("blocked"),
    request: new Request("http://localhost/"),
  };
  const principal = { id: "ada", scopes: ["a"], ...copied, ...withheld };
  const { client } = await join({ handlers: [makeHeavy()] }, { principal });
  const value = [...Object.keys(principal), "unknown"];
  const { structuredContent } = await client.callTool("heavy", { job: "facts", value });
  const errors = Object.keys(withheld).map((name) => [name, `TypeError: ${sentence(`principal.${name}`)}`]);
  const plain = "[object Object]";
  assertEquals(structuredContent, {
    ...{ id: "ada", scopes: "a", plain, date: `${new Date(5)}`, bytes: "7", cyclic: plain },
    ...{ none: "undefined", unknown: "undefined", ...Object.fromEntries(errors) },
  });
}, { transports: ["memory"] });

// Deno cannot end a thread that never yields.
Deno.test(
  "a cancellation reason that is not a string ends the thread of a blocked handler, but not the process",
  leavesThread,
  async () => {
    const options = { size: 2, stopMs: 20 };
    await using client = await testClient({ handlers: [makeHeavy(options)] }, { era: "legacy", transport: "pipe" });
    const echo = async () => textOf(await client.callTool("heavy", { job: "echo", value: "again" }));
    await echo();
    void client.callTool("heavy", { job: "spin" }).catch(() => {});
    // Wait until the other thread responds, because it starts while this thread is blocked.
    await echo();
    for (let requestId = 0; requestId < 10; requestId++) {
      await client.notify("notifications/cancelled", { requestId, reason: { toString: null, valueOf: null } });
    }
    for (let i = 0; i < 2; i++) assertEquals(await echo(), "again");
  },
);
