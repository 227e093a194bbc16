// The server processes large requests of several clients in rotation. `load:worst --survive` measures the effect on
// small requests.
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { createServer, tool } from "../../mod.ts";
import { readAnswer, toRequest } from "../support/requests.ts";
import { turn, until } from "../support/behaviour.ts";
import { testLimits } from "../support/limits.ts";

const COUNT = 20;

function createEcho() {
  const count = tool({ name: "count", input: { type: "object" }, run: ({ list }) => Object(list).length });
  return createServer({ name: "turns", version: "1.0.0", handlers: [count] });
}

/** Returns a request whose body consists of many small values, and has a size of `kib` KiB. */
function ask(kib: number): Request {
  const request = { name: "count", arguments: { list: Array.from({ length: kib * 341 }, () => ({})) } };
  return toRequest("tools/call", request);
}

for (const [size, kib] of [["of a known size", 60], ["that are read in pieces", 200]] as const) {
  Deno.test(`large requests ${size} of several clients are processed in rotation`, async () => {
    await using server = createEcho();
    const order: string[] = [];
    const send = async (id: string) => {
      const response = await server.fetch(ask(kib), { principal: { id } });
      assertEquals((await readAnswer(response)).result.structuredContent ?? kib * 341, kib * 341);
      order.push(id);
    };
    await send("warm");
    order.length = 0;
    await Promise.all([...Array.from({ length: COUNT }, () => send("greedy")), send("other")]);
    assertEquals(order.length, COUNT + 1, "a request got no response");
    assert(order.indexOf("other") < COUNT / 2, order.join());
  });
}

Deno.test("a queued body that is evicted is refused, and its call does not run", async () => {
  let ran = 0;
  const run = () => {
    ran++;
    // Block the event loop, so that later bodies are queued.
    for (const end = performance.now() + 20; performance.now() < end;);
  };
  const mark = tool({ name: "mark", input: { type: "object" }, run });
  const limits = testLimits({ request: { allBodiesBytes: 500_000 } });
  await using server = createServer({ name: "turns", version: "1.0.0", handlers: [mark], limits });
  const send = async () => {
    const request = toRequest("tools/call", { name: "mark", arguments: { text: "x".repeat(200_000) } });
    const response = await server.fetch(request, { principal: { id: "ada" } });
    const text = await response.text();
    if (response.status !== 200) assertStringIncludes(text, "request.allBodiesBytes");
    return response.status;
  };
  assertEquals(await send(), 200);
  const sending: Promise<number>[] = [];
  for (let i = 0; i < 12; i++) {
    sending.push(send());
    await turn();
  }
  const statuses = await Promise.all(sending);
  const served = statuses.filter((status) => status === 200).length;
  assertEquals(ran, served + 1);
  assert(served < 12, statuses.join());
});

Deno.test("queued bodies of any size are charged to their client", async () => {
  const run = () => {
    for (const end = performance.now() + 20; performance.now() < end;);
  };
  const block = tool({ name: "block", input: { type: "object" }, run });
  const limits = { memory: { bytesPerClient: 300_000 } };
  await using server = createServer({ name: "turns", version: "1.0.0", handlers: [block], limits });
  const send = async () => {
    const request = toRequest("tools/call", { name: "block", arguments: { text: "x".repeat(60_000) } });
    // A body without a Content-Length is read in pieces.
    const streamed = { method: "POST", headers: request.headers, body: request.body, duplex: "half" };
    const response = await server.fetch(new Request(request.url, streamed), { principal: { id: "ada" } });
    await response.text();
    return response.status;
  };
  assertEquals(await send(), 200);
  const sending: Promise<number>[] = [];
  for (let i = 0; i < 20; i++) {
    sending.push(send());
    await turn();
  }
  const statuses = await Promise.all(sending);
  assert(statuses.includes(503) && statuses.includes(200), statuses.join());
});

Deno.test("a small request that arrives while a large request is being parsed gets its response before the large request runs", async () => {
  const order: string[] = [];
  const note = tool({
    name: "note",
    input: { type: "object" },
    run({ as }) {
      order.push(`${as} runs`);
      return "";
    },
  });
  const send = async (as: string, list: readonly object[]) => {
    const { url, headers, body } = toRequest("tools/call", { name: "note", arguments: { as, list } });
    const text = await new Response(body).text();
    headers.set("content-length", `${new TextEncoder().encode(text).length}`);
    await (await server.fetch(new Request(url, { method: "POST", headers, body: text }))).text();
    order.push(`${as} is answered`);
  };
  let small: Promise<void> | undefined;
  let isWarm = false;
  const observer = {
    // The observer is called immediately before a message is parsed.
    message({ direction, text }: { readonly direction: string; readonly text: string }) {
      if (!isWarm || direction !== "in" || !text.includes("large")) return;
      setTimeout(() => small = send("small", []));
    },
  };
  await using server = createServer({ name: "turns", version: "1.0.0", handlers: [note], observer });
  const list = Array.from({ length: 15_000 }, (_, i) => ({ [`key ${i}`]: {} }));
  await send("small", []);
  await send("large", list);
  isWarm = true;
  order.length = 0;
  await send("large", list);
  await small;
  assertEquals(order, ["small runs", "small is answered", "large runs", "large is answered"]);
});

Deno.test("large requests of many clients all get responses, whether their processing is short, long or aborted", async () => {
  await using server = createEcho();
  const send = async (kib: number, isBroken: boolean) => {
    const { url, headers, body } = ask(kib);
    const text = await new Response(body).text();
    headers.set("content-length", `${text.length}`);
    const request = new Request(url, { method: "POST", headers, body: isBroken ? text.replaceAll("{", "[") : text });
    const response = await server.fetch(request);
    await response.text();
    return response.status;
  };
  const sizes = Array.from({ length: 60 }, (_, i) => [2, 20, 60, 17, 64][i % 5]);
  const statuses = await Promise.all(sizes.map((kib, i) => send(kib, i % 7 === 0)));
  assertEquals(statuses, sizes.map((_, i) => i % 7 === 0 ? 400 : 200));
});

Deno.test("while small bodies arrive, a large body that is not UTF-8 does not block the parsing of other bodies", async () => {
  await using server = createEcho();
  const post = (body: BodyInit, length: number) => {
    const { url, headers } = ask(1);
    headers.set("content-length", `${length}`);
    return server.fetch(new Request(url, { method: "POST", headers, body, duplex: "half" } as RequestInit));
  };
  await (await server.fetch(ask(60))).text();
  const slow: ReadableStreamDefaultController<Uint8Array>[] = [];
  const unread: Promise<Response>[] = [];
  const drip = setInterval(() => {
    unread.push(post(new ReadableStream({ start: (controller) => void slow.push(controller) }), 100));
  }, 5);
  await until(() => slow.length > 2, "small bodies arrive");
  const broken = post(new Uint8Array(60_000).fill(0xff), 60_000);
  let isAnswered = false;
  const large = Promise.all([broken, server.fetch(ask(60))]).then(async (responses) => {
    isAnswered = true;
    for (const response of responses) await response.text();
  });
  await until(() => isAnswered, "the other large request is processed while small bodies keep arriving")
    .finally(() => clearInterval(drip));
  slow.forEach((controller) => controller.close());
  await large;
  for (const response of await Promise.all(unread)) await response.text();
});

Deno.test("a large message with an understated length does not take the place of a message that waits to run", async () => {
  const big = { list: Array.from({ length: 15_000 }, (_, i) => ({ [`key ${i}`]: {} })) };
  const count = tool({ name: "count", input: { type: "object" }, run: ({ list }) => Object(list).length });
  let understated: Promise<number> | undefined;
  const send = async (length?: number) => {
    const { url, headers, body } = toRequest("tools/call", { name: "count", arguments: big });
    const text = await new Response(body).text();
    headers.set("content-length", `${length ?? text.length}`);
    const response = await server.fetch(new Request(url, { method: "POST", headers, body: text }));
    return (await readAnswer(response)).result.content[0].text;
  };
  const toStale = toRequest("tools/call", { name: "count", arguments: big });
  toStale.headers.set("content-length", "100");
  let isWarm = false;
  const observer = {
    message({ direction }: { readonly direction: string }) {
      if (direction !== "in" || !isWarm || understated) return;
      understated = server.fetch(toStale).then(async (response) => (await readAnswer(response)).result.content[0].text);
    },
  };
  await using server = createServer({ name: "turns", version: "1.0.0", handlers: [count], observer });
  await send();
  isWarm = true;
  assertEquals([await send(), await understated], ["15000", "15000"]);
});
