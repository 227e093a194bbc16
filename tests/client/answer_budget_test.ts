// The number of the server's questions that one request of the program can cause. Each question costs a user's
// attention, or money for a model, so a hostile server must not be able to ask without end.
import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { tool } from "../../mod.ts";
import { clientExtension, connect, type ConnectOptions } from "../../src/client/client.ts";
import { skillsOf } from "../../src/extensions/skills/client/skills.ts";
import { taskClient } from "../../src/extensions/tasks/client/tasks.ts";
import { checkMaxAnswers } from "../../src/client/answer_budget.ts";
import { behaviour, until } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";
import { agreed, discovered, fakeHttp, fakePipe, type Heard, type Message, ok, url } from "./fakes.ts";

const messages = [{ role: "user", content: { type: "text", text: "?" } }];
const question = { method: "sampling/createMessage", params: { messages, maxTokens: 1 } };
const sampled = { role: "assistant", content: { type: "text", text: "" }, model: "m" } as const;

/** Counts the samplings. */
function toModel() {
  const model = { count: 0, onSample: () => (model.count++, sampled) };
  return model;
}

const toQuestions = (count: number, start = 0) =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`q${start + at}`, question]));

/** A modern server that asks `count` questions in each round, without end. */
function toInsatiable(count: number, more: (heard: Heard) => Response | undefined = () => undefined) {
  let round = 0;
  return fakeHttp((heard) =>
    heard.method === "server/discover" ? discovered(heard) : more(heard) ?? ok(heard, {
      resultType: "input_required",
      inputRequests: toQuestions(count),
      requestState: `${round++}`,
    })
  );
}

Deno.test("the answers for one call are limited over all rounds, and no question of a round is asked in vain", async () => {
  for (const count of [1, 5, 32]) {
    const model = toModel();
    await using client = await connect(url, { fetch: toInsatiable(count).fetch, onSample: model.onSample });
    await assertRejects(() => client.callTool("ask"), Error, sentence("tools/call", 32, "maxAnswers"));
    assertEquals(model.count, 32 - 32 % count);
    // Each call has its own budget, with any method.
    await assertRejects(() => client.readResource("a://b"), Error, sentence("resources/read", 32));
    await assertRejects(() => client.request("foreign/method"), Error, sentence("foreign/method", 32));
    assertEquals(model.count, 3 * (32 - 32 % count));
  }
  const model = toModel();
  await using client = await connect(url, { fetch: toInsatiable(33).fetch, onSample: model.onSample });
  await assertRejects(() => client.getPrompt("ask"), Error, sentence("prompts/get", 32));
  assertEquals(model.count, 0);
});

Deno.test("the pages of a list share the answers of one request", async () => {
  let page = 0;
  const server = toInsatiable(20, (heard) => {
    if (heard.params.inputResponses === undefined) return;
    return ok(heard, { tools: [], skills: [], nextCursor: `${page++}` });
  });
  const model = toModel();
  await using client = await connect(url, { fetch: server.fetch, onSample: model.onSample });
  await assertRejects(() => client.listTools(), Error, sentence("tools/list", 32));
  assertEquals(model.count, 20);
  await assertRejects(() => skillsOf(client).list(), Error, sentence("skills/list", 32));
  assertEquals(model.count, 40);
});

Deno.test("listing tools to find the headers of a call asks nobody", async () => {
  const server = toInsatiable(5, (heard) => {
    if (heard.method !== "tools/call") return;
    const error = { code: -32020, message: "Header mismatch" };
    return Response.json({ jsonrpc: "2.0", id: heard.id, error }, { status: 400 });
  });
  const model = toModel();
  await using client = await connect(url, { fetch: server.fetch, onSample: model.onSample });
  await assertRejects(() => client.callTool("ask"), Error);
  assertEquals(model.count, 0);
});

Deno.test("requests and answers of an extension count for the call that it finishes", async () => {
  const server = toInsatiable(
    10,
    (heard) => heard.method === "tools/call" ? ok(heard, { resultType: "slow" }) : undefined,
  );
  const model = toModel();
  const slow = clientExtension({
    id: "com.example/slow",
    results: {
      slow: {
        schema: { type: "object" },
        async finish(_result, call) {
          for (let at = 0; at < 15; at++) await call.answer(question);
          return await call.request("slow/finish");
        },
      },
    },
  });
  await using client = await connect(url, { fetch: server.fetch, onSample: model.onSample, extensions: [slow] });
  await assertRejects(() => client.callTool("ask"), Error, sentence("slow/finish", 32));
  assertEquals(model.count, 25);
});

Deno.test("the answers for a task are limited over all its states, and the task is cancelled", async () => {
  let polls = 0;
  let cancelled = 0;
  const server = fakeHttp((heard) => {
    if (heard.method === "server/discover") return discovered(heard);
    const task = { taskId: "t1", status: "working", pollIntervalMs: 1, createdAt: "2026-01-01T00:00:00Z" };
    if (heard.method === "tools/call") return ok(heard, { resultType: "task", ...task });
    if (heard.method === "tasks/cancel") cancelled++;
    if (heard.method !== "tasks/get") return ok(heard, {});
    const inputRequests = toQuestions(20, 20 * polls++);
    return ok(heard, { ...task, status: "input_required", inputRequests });
  });
  const model = toModel();
  const options = { fetch: server.fetch, onSample: model.onSample, extensions: [taskClient()] };
  await using client = await connect(url, options);
  await assertRejects(() => client.callTool("ask"), Error, sentence("tools/call", 32));
  assertEquals([model.count, cancelled], [32, 1]);
});

/** A server whose session asks during a call until the client has refused ten questions, and also outside of calls. */
function toSession(way: "http" | "pipe") {
  let asked = 0;
  let refused = 0;
  const next = () => ({ jsonrpc: "2.0", id: `q${asked++}`, ...question });
  const isDone = () => refused >= 10;
  const restart = () => refused = 0;
  const refusals: string[] = [];
  const note = ({ error }: Message) => {
    if (!error) return;
    refused++;
    refusals.push(Object(error).message);
  };
  if (way === "pipe") {
    let call: Message["id"];
    let send = (_: object) => {};
    const pipe = fakePipe((message, say) => {
      send = say;
      const { id, method } = message;
      if (method === "initialize") say({ id, result: agreed });
      else if (method === "tools/call") {
        restart();
        call = id;
        say(next());
      } else if (method === undefined) {
        note(message);
        if (!isDone()) return say(next());
        if (call === undefined) return;
        say({ id: call, result: { content: [] } });
        call = undefined;
      } else if (id !== undefined) say({ id, result: {} });
    });
    const beginOutside = () => {
      restart();
      send(next());
    };
    return {
      open: (options: ConnectOptions) => connect(pipe as never, { era: "legacy", ...options }),
      beginOutside,
      isDone,
      refusals,
    };
  }
  const encoder = new TextEncoder();
  const streams = new Map<Message["id"] | "GET", (message: object) => void>();
  const http = fakeHttp((heard) => {
    const { id, method } = heard;
    const open = (key: Message["id"] | "GET") => {
      const body = new ReadableStream<Uint8Array>({
        start: (controller) =>
          void streams.set(key, (message) => {
            controller.enqueue(encoder.encode(`data: ${JSON.stringify({ jsonrpc: "2.0", ...message })}\n\n`));
            if (!("result" in message)) return;
            streams.delete(key);
            controller.close();
          }),
      });
      return new Response(body, { headers: { "content-type": "text/event-stream" } });
    };
    if (heard.http === "GET") return open("GET");
    if (method === "initialize") return ok(heard, agreed);
    if (method === "tools/call") {
      restart();
      const response = open(id);
      streams.get(id)?.(next());
      return response;
    }
    if (method !== undefined) return id === undefined ? undefined : ok(heard);
    note(heard);
    const [key = "GET"] = [...streams.keys()].filter((key) => key !== "GET");
    if (!isDone()) streams.get(key)?.(next());
    else if (key !== "GET") streams.get(key)?.({ id: key, result: { content: [] } });
    return undefined;
  });
  const beginOutside = () => {
    restart();
    streams.get("GET")?.(next());
  };
  const open = (options: ConnectOptions) => connect(url, { era: "legacy", fetch: http.fetch, ...options });
  return { open, beginOutside, isDone, refusals };
}

for (const way of ["http", "pipe"] as const) {
  Deno.test(`in a session, the client refuses further questions during a call and outside of calls (${way})`, async () => {
    const session = toSession(way);
    const model = toModel();
    await using client = await session.open({ onSample: model.onSample });
    await client.callTool("ask");
    assertEquals(model.count, 32);
    assertEquals(session.refusals[0], sentence("sampling/createMessage", 32));
    await client.callTool("ask");
    assertEquals(model.count, 64);
    for (const sum of [96, 96]) {
      session.beginOutside();
      await until(session.isDone, "ten refusals");
      assertEquals(model.count, sum);
    }
    // The next request of the program allows questions outside of requests again.
    await client.request("ping");
    session.beginOutside();
    await until(session.isDone, "ten refusals");
    assertEquals(model.count, 128);
  });
}

Deno.test("a server cannot get more answers by ending the session", async () => {
  let [asked, refused, sessions, streams] = [0, 0, 0, 0];
  const encoder = new TextEncoder();
  let end = () => {};
  // The server asks on its standalone stream until the client has refused, and then forgets the session. Each request
  // that begins the new session asks too.
  const ask = () => `data: ${JSON.stringify({ jsonrpc: "2.0", id: `q${asked++}`, ...question })}\n\n`;
  const http = fakeHttp((heard) => {
    const { id, method } = heard;
    if (heard.http === "GET") {
      if (streams++ % 2) return new Response(null, { status: 404 });
      const body = new ReadableStream<Uint8Array>({
        start(controller) {
          end = () => controller.close();
          controller.enqueue(encoder.encode(Array.from({ length: 40 }, ask).join("")));
        },
      });
      return new Response(body, { headers: { "content-type": "text/event-stream" } });
    }
    if (method === "initialize") {
      const event = `data: ${JSON.stringify({ jsonrpc: "2.0", id, result: agreed })}\n\n`;
      const headers = { "content-type": "text/event-stream", "mcp-session-id": `${++sessions}` };
      return new Response((sessions > 1 ? ask() : "") + event, { headers });
    }
    if (method === undefined && heard.error && ++refused === 8) end();
    return method === undefined || id === undefined ? undefined : ok(heard);
  });
  const model = toModel();
  await using client = await connect(url, { era: "legacy", fetch: http.fetch, onSample: model.onSample });
  await until(() => refused === 49, "the client has refused the questions of two sessions");
  assertEquals([model.count, sessions], [32, 2]);
  await client.request("ping");
});

behaviour("maxAnswers raises the limit, and a call that reaches the limit fails", async (connect, { era }) => {
  const model = toModel();
  const survey = tool({
    name: "survey",
    async run(_input, { sample }) {
      const ask = (at: number) => sample(`q${at}`, { messages: [], maxTokens: 1 });
      for (const start of [0, 17]) await Promise.all(Array.from({ length: 17 }, (_, at) => ask(start + at)));
      return "done";
    },
  });
  const { client, join, takeFaults } = await connect({ handlers: [survey] }, { onSample: model.onSample });
  const result = await client.callTool("survey").catch((error) => ({ isError: error instanceof Error }));
  // Without a session, the client answers all questions of a result or none. In a session, the call ends with the first
  // refusal.
  assertEquals(result.isError, true);
  assert(era === "modern" ? model.count === 17 : model.count >= 17 && model.count <= 32, `${model.count}`);
  const before = model.count;
  takeFaults();
  const patient = await join({ onSample: model.onSample, maxAnswers: 34 });
  assertEquals((await patient.callTool("survey")).isError, undefined);
  assertEquals(model.count, before + 34);
});

Deno.test("maxAnswers is a whole number of at least 0, or Infinity", async () => {
  for (const wrong of [-1, 1.5, NaN, "5", null]) {
    assertThrows(() => checkMaxAnswers(wrong as never), RangeError, sentence("maxAnswers", `${wrong}`));
  }
  const model = toModel();
  const options = { onSample: model.onSample, fetch: toInsatiable(1).fetch };
  await using none = await connect(url, { ...options, maxAnswers: 0 });
  await assertRejects(() => none.callTool("ask"), Error, sentence("maxAnswers"));
  assertEquals(model.count, 0);
  await using endless = await connect(url, { ...options, maxAnswers: Infinity });
  await assertRejects(() => endless.callTool("ask"), Error, sentence(64));
  assert(model.count >= 64);
});
