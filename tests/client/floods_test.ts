// Limits on the client's memory if a server sends more notifications than the program reads, or more questions than the
// client can answer.
import { assert, assertEquals, assertRejects } from "@std/assert";
import { connect, type ConnectOptions } from "../../src/client/client.ts";
import { Slots } from "../../src/client/slots.ts";
import { readEvents } from "../../src/core/kit/event_stream.ts";
import { agreed, discovered, fakeHttp, fakePipe, type Message, ok, stream, url } from "./fakes.ts";
import { until } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";

const SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId";
// Without `maxAnswers: Infinity`, the client would refuse the questions earlier.
const quiet: ConnectOptions = { onWarning() {}, maxAnswers: Infinity };

/**
 * Creates a server that accepts a subscription. `send` makes the server send `count` notifications of `size`
 * characters.
 */
function toFlood(count: number, size: number) {
  const uri = "notes://1";
  const flood = (id: unknown) =>
    Array.from({ length: count }, () => ({
      jsonrpc: "2.0",
      method: "notifications/resources/updated",
      params: { uri, text: "x".repeat(size), _meta: { [SUBSCRIPTION]: id } },
    }));
  const acknowledge = (id: unknown) => ({
    jsonrpc: "2.0",
    method: "notifications/subscriptions/acknowledged",
    params: { notifications: { resourceSubscriptions: [uri] }, _meta: { [SUBSCRIPTION]: id } },
  });
  const http = fakeHttp((heard) => {
    if (heard.method === "server/discover") return discovered(heard);
    if (heard.method === "initialize") return ok(heard, agreed);
    if (heard.method === "subscriptions/listen") return stream([acknowledge(heard.id), ...flood(heard.id)], "open");
    if (heard.http === "GET") return stream(flood(1), "open");
    return heard.id === undefined ? undefined : ok(heard);
  });
  const pipe = fakePipe(({ id, method }, say) => {
    if (method === "server/discover") {
      say({ id, result: { resultType: "complete", supportedVersions: ["2026-07-28"], capabilities: {} } });
    } else if (method === "initialize") say({ id, result: agreed });
    else if (method === "subscriptions/listen") { for (const each of [acknowledge(id), ...flood(id)]) say(each); }
    else if (id !== undefined) {
      say({ id, result: {} });
      if (method === "resources/subscribe") { for (const each of flood(1)) say(each); }
    }
  });
  return { http, pipe };
}

for (const era of ["modern", "legacy"] as const) {
  for (const way of ["http", "pipe"] as const) {
    const open = (count: number, size: number) => {
      const { http, pipe } = toFlood(count, size);
      const options = { ...quiet, era };
      return way === "http" ? connect(url, { ...options, fetch: http.fetch }) : connect(pipe as never, options);
    };

    Deno.test(`a subscription ends with an error if its unread notifications are too large (${way}, ${era})`, async () => {
      await using client = await open(60, 1024 * 1024);
      const subscription = await client.subscribe({ resourceSubscriptions: ["notes://1"] });
      await assertRejects(
        async () => {
          await subscription.ended;
          await Array.fromAsync(subscription);
        },
        RangeError,
        sentence(16777216),
      );
      // Other requests still work on the same connection.
      assertEquals(await client.request("ping"), {});
    });

    Deno.test(`a subscription can receive any number of notifications if the program reads them (${way}, ${era})`, async () => {
      await using client = await open(30, 512 * 1024);
      const subscription = await client.subscribe({ resourceSubscriptions: ["notes://1"] });
      let taken = 0;
      for await (const { method } of subscription) {
        assertEquals(method, "notifications/resources/updated");
        if (++taken === 30) break;
      }
    });
  }
}

Deno.test("all subscriptions of a client share a limit on unread notifications", async () => {
  const { http } = toFlood(15, 1024 * 1024);
  await using client = await connect(url, { ...quiet, era: "modern", fetch: http.fetch });
  const listen = () => client.subscribe({ resourceSubscriptions: ["notes://1"] });
  const subscriptions = await Promise.all(Array.from({ length: 6 }, listen));
  const isEnded = (subscription: Awaited<ReturnType<typeof listen>>) =>
    Promise.race([subscription.ended.then(() => true), new Promise((resolve) => setTimeout(resolve, 0, false))]);
  await Promise.any(subscriptions.map(({ ended }) => ended));
  const ended: typeof subscriptions = [];
  for (const each of subscriptions) if (await isEnded(each)) ended.push(each);
  assert(ended.length >= 1 && ended.length <= 2, `${ended.length} of 6 have ended`);
  await assertRejects(() => Array.fromAsync(ended[0]), RangeError, sentence(67108864));
});

/** Sends questions during a call, over each stream that a session has. `end` ends the call. */
function toAsking(requests: readonly object[]) {
  const answers: Message[] = [];
  const finish = Promise.withResolvers<void>();
  const pipe = fakePipe((message, say) => {
    const { id, method } = message;
    if (method === "initialize") say({ id, result: agreed });
    else if (method === undefined) answers.push(message);
    else if (method === "tools/call") {
      for (const each of requests) say(each);
      finish.promise.then(() => say({ id, result: { content: [] } }));
    } else if (id !== undefined) say({ id, result: {} });
  });
  const http = fakeHttp((heard) => {
    if (heard.method === "initialize") return ok(heard, agreed);
    if (heard.method === "tools/call") {
      const encoder = new TextEncoder();
      const write = (message: object) => encoder.encode(`data: ${JSON.stringify({ jsonrpc: "2.0", ...message })}\n\n`);
      const body = new ReadableStream({
        start(controller) {
          for (const each of requests) controller.enqueue(write(each));
          finish.promise.then(() => {
            controller.enqueue(write({ id: heard.id, result: { content: [] } }));
            controller.close();
          });
        },
      });
      return new Response(body, { headers: { "content-type": "text/event-stream" } });
    }
    if (heard.http === "POST" && heard.method === undefined) answers.push(heard);
    return heard.method === undefined || heard.id === undefined ? undefined : ok(heard);
  });
  return { pipe, http, answers, finish: finish.resolve };
}

const toSample = (id: number, text = "") => ({
  id,
  method: "sampling/createMessage",
  params: { messages: [{ role: "user", content: { type: "text", text } }], maxTokens: 1 },
});
const sampled = { role: "assistant", content: { type: "text", text: "" }, model: "m" } as const;

for (const way of ["http", "pipe"] as const) {
  const open = ({ http, pipe }: ReturnType<typeof toAsking>, options: ConnectOptions) =>
    way === "http"
      ? connect(url, { ...quiet, era: "legacy", fetch: http.fetch, ...options })
      : connect(pipe as never, { ...quiet, era: "legacy", ...options });

  Deno.test(`the client limits running and waiting questions, refuses further questions, and ends all questions of a call with the call (${way})`, async () => {
    const ping = { id: 9999, method: "ping" };
    const asking = toAsking([...Array.from({ length: 5000 }, (_, i) => toSample(i)), ping]);
    let running = 0;
    let most = 0;
    let started = 0;
    const release: (() => void)[] = [];
    await using client = await open(asking, {
      async onSample(_, { signal }) {
        started++;
        most = Math.max(most, ++running);
        await new Promise<void>((resolve) => {
          release.push(resolve);
          signal.addEventListener("abort", () => resolve());
        });
        running--;
        return sampled;
      },
    });
    const calling = client.callTool("ask");
    // Wait until eight questions are running, and more than 50 questions were refused.
    await until(() => running === 8 && asking.answers.length > 50, "the first answers");
    const refusals = asking.answers.filter(({ error }) => error);
    assert(refusals.length > 50);
    assertEquals(Object(refusals[0].error).message, sentence());
    release.splice(0).forEach((resolve) => resolve());
    await until(
      () => started === 16 && asking.answers.filter(({ result }) => result).length >= 8,
      "the next questions run",
    );
    assertEquals(most, 8);
    asking.finish();
    await calling;
    await until(() => running === 0, "the end of all");
    assertEquals([started, most], [16, 8], "waiting questions ran after their call");
  });

  Deno.test(`questions are refused if their total size is too large (${way})`, async () => {
    const asking = toAsking(Array.from({ length: 8 }, (_, i) => toSample(i, "x".repeat(4 * 1024 * 1024))));
    let started = 0;
    await using client = await open(asking, {
      async onSample(_, { signal }) {
        started++;
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
        return sampled;
      },
    });
    const calling = client.callTool("ask");
    await until(() => asking.answers.length === 5, "five answers");
    assertEquals(started, 3);
    asking.finish();
    await calling;
  });

  Deno.test(`cancelling a call ends the questions of the call (${way})`, async () => {
    const asking = toAsking([toSample(1), toSample(2)]);
    let [started, stopped] = [0, 0];
    await using client = await open(asking, {
      async onSample(_, { signal }) {
        started++;
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
        stopped++;
        return sampled;
      },
    });
    const stop = new AbortController();
    const calling = client.callTool("ask", {}, { signal: stop.signal });
    await until(() => started === 2, "both questions run");
    stop.abort();
    await assertRejects(() => calling);
    await until(() => stopped === 2, "both questions stop");
  });
}

Deno.test("a ping gets a response while the client waits for its user's answers", async () => {
  const asking = toAsking([...Array.from({ length: 40 }, (_, i) => toSample(i)), { id: 77, method: "ping" }]);
  await using client = await connect(asking.pipe as never, {
    ...quiet,
    era: "legacy",
    onSample: (_, { signal }) => new Promise((resolve) => signal.addEventListener("abort", () => resolve(sampled))),
  });
  const calling = client.callTool("ask");
  await until(() => asking.answers.some(({ id }) => id === 77), "the answer");
  asking.finish();
  await calling;
});

Deno.test("a call fails if its result contains too many questions", async () => {
  const question = { method: "elicitation/create", params: { message: "?", requestedSchema: { properties: {} } } };
  const inputRequests = Object.fromEntries(Array.from({ length: 101 }, (_, i) => [`q${i}`, question]));
  const { fetch } = fakeHttp((heard) =>
    heard.method === "server/discover"
      ? discovered(heard)
      : ok(heard, { resultType: "input_required", inputRequests, requestState: "s" })
  );
  let asked = 0;
  const onElicit = () => ({ action: "decline", asked: asked++ }) as const;
  await using client = await connect(url, { fetch, onElicit });
  await assertRejects(() => client.callTool("ask"), Error, sentence("tools/call", 32, "maxAnswers"));
  assertEquals(asked, 0);
});

Deno.test("a slot is released after a job that fails or never starts", async () => {
  const slots = new Slots(1);
  const { promise, resolve } = Promise.withResolvers<void>();
  const never = new AbortController().signal;
  const first = slots.run(() => promise, never);
  const stop = new AbortController();
  const second = slots.run(() => Promise.resolve("second"), stop.signal);
  const third = slots.run(() => Promise.reject(new Error("third")), never);
  const fourth = slots.run(() => Promise.resolve("fourth"), never);
  assertEquals(slots.waiting, 3);
  stop.abort(new Error("stopped"));
  await assertRejects(() => second, Error, "stopped");
  resolve();
  await first;
  await assertRejects(() => third, Error, "third");
  assertEquals(await fourth, "fourth");
  assertEquals(slots.waiting, 0);
});

Deno.test("an event stream drops comments, limits the lines of an event, and ignores overlong ids and retry times", async () => {
  const read = (text: string, times = 1) => {
    const body = new ReadableStream({
      pull(controller) {
        if (times-- > 0) controller.enqueue(new TextEncoder().encode(text));
        else controller.close();
      },
    }, { highWaterMark: 0 });
    return Array.fromAsync(readEvents(new Response(body)));
  };
  assertEquals(await read(":\n".repeat(100_000), 30), []);
  await assertRejects(() => read("a\n".repeat(100_000), 30), RangeError, sentence(67108864));
  const [event] = await read(`id: ${"x".repeat(5000)}\nretry: 999999999\ndata: 1\n\n`);
  assertEquals([event.id, event.retry, event.data], [undefined, 3_600_000, "1"]);
});
