// Transcripts of the wire as text. Each file of tests/transcripts/ is checked from both sides: a client that follows
// the flow writes the file line by line, and a server that gets its `→` lines responds with its `←` lines.
//
// `→` marks the client's messages and `←` the server's messages; over HTTP the head of each request and response
// precedes its body. `!` is an event at the server. Values that differ between runs are replaced by a name, such as
// `<session 1>`. After an intended change, run `UPDATE_TRANSCRIPTS=1 deno test -A
// tests/transcripts/transcripts_test.ts` and read the diff.
import { assertEquals } from "@std/assert";
import { z } from "zod";
import { createServer, prompt, resource, type Server, tool } from "../../mod.ts";
import { readEvents } from "../../src/core/kit/event_stream.ts";
import { type Connection, connectTest, type ConnectTestOptions } from "../../src/testing/testing.ts";
import { Transcript } from "../../src/core/kit/transcript.ts";
import { openPipe } from "../../src/server/transports/channel.ts";
import { started, until } from "../support/behaviour.ts";
import { testLimits } from "../support/limits.ts";

const folder = new URL("./", import.meta.url);

const later = tool({ name: "later", run: () => "" });

/** Events on the server, by the words after `!`. */
const events: Readonly<Record<string, (server: Server) => void>> = {
  "a tool is added": (server) => server.handlers.add(later),
  "note://1 changes": (server) => server.resourceUpdated("note://1"),
  "the server closes": (server) => void server.close(),
};

function createShop(): Server {
  return createServer({
    name: "shop",
    version: "1.0.0",
    title: "The shop",
    instructions: "Look before you buy.",
    ttlMs: 60_000,
    // A fast call must not become a stream because the machine is slow.
    limits: testLimits({ streams: { openAfterMs: 60_000 } }),
    observer: { fault() {} },
    handlers: [
      tool({
        name: "price",
        description: "The price of an item",
        input: { type: "object", properties: { item: { type: "string", "x-mcp-header": "Item" } }, required: ["item"] },
        output: z.object({ item: z.string(), cents: z.number() }),
        run: (input) => ({ item: String(Object(input).item), cents: 250 }),
      }),
      tool({
        name: "pack",
        async run(_input, ctx) {
          await ctx.progress(1, { total: 2, message: "Wrapping" });
          await ctx.log.warning({ paper: "low" }, { logger: "packing" });
          await ctx.progress(2, { total: 2 });
          return "packed";
        },
      }),
      tool({
        name: "buy",
        async run(_input, ctx) {
          const order = await ctx.once("order", () => "order-1");
          const answer = await ctx.elicit("sure", {
            message: "Buy for $2.50?",
            schema: z.object({ yes: z.boolean() }),
          });
          return answer.action === "accept" && answer.content.yes ? `${order}: bought` : `${order}: left`;
        },
      }),
      tool({
        name: "queue",
        async run(_input, ctx) {
          await ctx.progress(1);
          await new Promise((resolve) => ctx.signal.addEventListener("abort", resolve));
          return "never told";
        },
      }),
      tool({ name: "broken", run: () => Promise.reject(new Error("The till is jammed at /srv/till.ts")) }),
      prompt({ name: "greet", input: z.object({ who: z.string() }), run: ({ who }) => `Greet ${who}.` }),
      resource({ uri: "note://1", name: "note", read: () => "Closed on Sunday" }),
    ],
  });
}

/** A flow: the participants and their actions. */
interface Flow {
  readonly options: ConnectTestOptions;
  run(client: Connection, happen: (event: string) => void): Promise<void>;
}

const http = { transport: "memory" } as const;
const pipe = { transport: "pipe" } as const;
const legacy = { era: "legacy" } as const;
const answer = () => ({ action: "accept", content: { yes: true } });

async function cancel(client: Connection): Promise<void> {
  const stop = new AbortController();
  const meta = { progressToken: "q" };
  await client.callTool("queue", {}, { signal: stop.signal, meta, onNotification: () => stop.abort("no time") }).catch(
    () => {},
  );
  await client.callTool("price", { item: "tea" });
}

async function pack(client: Connection): Promise<void> {
  await client.callTool("pack", {}, { meta: { progressToken: "p" } });
}

const flows: Readonly<Record<string, Flow>> = {
  modern_discover: {
    options: http,
    async run(client) {
      await client.request("server/discover");
      await client.request("no/such").catch(() => {});
    },
  },
  modern_call: {
    options: http,
    async run(client) {
      await client.listTools();
      await client.callTool("price", { item: "tea" });
      await client.callTool("price");
      await client.callTool("gone").catch(() => {});
      await client.callTool("broken");
      await client.getPrompt("greet", { who: "Ada" });
      await client.readResource("note://1");
    },
  },
  modern_progress: { options: { ...http, logLevel: "info" }, run: pack },
  modern_elicitation: { options: { ...http, answer }, run: async (client) => void await client.callTool("buy") },
  modern_listen: {
    options: pipe,
    async run(client, happen) {
      const filter = { toolsListChanged: true, resourceSubscriptions: ["note://1"] };
      const subscription = await client.subscribe(filter);
      happen("a tool is added");
      await subscription.take(1);
      happen("note://1 changes");
      await subscription.take(2);
      happen("the server closes");
      await subscription.ended;
    },
  },
  modern_cancel: { options: pipe, run: cancel },
  legacy_session: {
    options: { ...http, ...legacy },
    async run(client) {
      await client.request("ping");
      await client.request("tools/list");
      await client.callTool("price", { item: "tea" });
      await client.callTool("gone").catch(() => {});
      await client.close();
    },
  },
  legacy_progress: { options: { ...http, ...legacy, logLevel: "info" }, run: pack },
  legacy_elicitation: {
    options: { ...http, ...legacy, answer },
    run: async (client) => void await client.callTool("buy"),
  },
  legacy_watch: {
    options: { ...http, ...legacy },
    async run(client, happen) {
      const subscription = await client.subscribe({ toolsListChanged: true, resourceSubscriptions: ["note://1"] });
      happen("a tool is added");
      await subscription.take(1);
      happen("note://1 changes");
      await subscription.take(2);
      await subscription.close();
      await client.close();
    },
  },
  legacy_cancel: { options: { ...pipe, ...legacy }, run: cancel },
};

async function record({ options, run }: Flow): Promise<string[]> {
  const server = createShop();
  await using client = await connectTest(server, options);
  const marks: { readonly at: number; readonly event: string }[] = [];
  await run(client, (event) => {
    marks.push({ at: client.transcript.length, event });
    events[event](server);
  });
  const lines = [...client.transcript];
  for (const { at, event } of marks.toReversed()) lines.splice(at, 0, `! ${event}`);
  await server.close();
  return lines;
}

/** Plays the client's part of a transcript to a server. Returns the resulting transcript. */
async function replay(lines: readonly string[], { transport }: ConnectTestOptions): Promise<string[]> {
  const server = createShop();
  const transcript = new Transcript();
  const heard: string[] = [];
  const take = (text: string) => void heard.push(`← ${transcript.toText(JSON.parse(text))}`);
  const end = new AbortController();

  async function exchange(head: string, body: string | undefined): Promise<void> {
    const [method, ...fields] = head.split(" | ");
    const headers = new Headers({ accept: "application/json, text/event-stream" });
    if (body !== undefined) headers.set("content-type", "application/json");
    for (const field of fields) headers.set(...split(transcript.reveal(field)));
    const response = await server.fetch(new Request("http://localhost/mcp", { method, headers, body }));
    transcript.response(response);
    heard.push(transcript.lines.at(-1) ?? "");
    if (!response.headers.get("content-type")?.startsWith("text/event-stream")) {
      const text = await response.text();
      if (text) take(text);
      return;
    }
    for await (const { data } of readEvents(response, end.signal)) if (data) take(data);
  }

  const channel = transport === "pipe" ? openPipe(server, { write: (text) => void take(text) }) : undefined;
  // The comparison of the transcripts shows a missing message.
  const waitFor = (count: number) => until(() => heard.length >= count, "an answer").catch(() => {});
  let head = "";
  for (const [at, line] of lines.entries()) {
    if (isHeard(line)) continue;
    await waitFor(lines.slice(0, at).filter(isHeard).length);
    const text = line.slice(2);
    if (line.startsWith("!")) events[text](server);
    else if (text.startsWith("{")) {
      const message = transcript.reveal(text);
      if (channel) channel.receive(message);
      else started(exchange(head, message));
    } else {
      head = text;
      if (!lines[at + 1]?.startsWith("→ {")) started(exchange(head, undefined));
    }
  }
  await waitFor(lines.filter(isHeard).length);
  // Superfluous messages would arrive now.
  // Fixed wait: the absence of a message cannot be observed as a state.
  await new Promise((resolve) => setTimeout(resolve, 20));
  end.abort();
  await server.close();
  return merge(lines, heard);
}

const isHeard = (line: string) => line.startsWith("←");

function split(field: string): [name: string, value: string] {
  const at = field.indexOf(": ");
  return [field.slice(0, at), field.slice(at + 2)];
}

/** The transcript in which the received messages replace the expected messages. */
function merge(lines: readonly string[], heard: readonly string[]): string[] {
  const rest = [...heard];
  const merged = lines.flatMap((line) => isHeard(line) ? rest.splice(0, 1) : [line]);
  return [...merged, ...rest];
}

/** Messages between two requests may arrive in any order, if they are on several streams. */
function sortHeard(lines: readonly string[]): string[] {
  const sorted: string[] = [];
  let group: string[] = [];
  for (const line of [...lines, ""]) {
    if (isHeard(line)) group.push(line);
    else {
      sorted.push(...group.sort(), line);
      group = [];
    }
  }
  return sorted;
}

function readLines(text: string): string[] {
  return text.split("\n").filter((line) => line && !line.startsWith("#"));
}

// Files are read with the API of the runtime, because there is no web standard for it.
interface Files {
  readonly Deno?: {
    readTextFile(path: URL): Promise<string>;
    writeTextFile(path: URL, text: string): Promise<void>;
    readonly env: { get(name: string): string | undefined };
  };
  readonly Bun?: { file(path: URL): { text(): Promise<string> } };
}
const { Deno: deno, Bun: bun } = globalThis as Files;
const isUpdate = deno?.env.get("UPDATE_TRANSCRIPTS") === "1";

async function read(name: string): Promise<string> {
  const path = new URL(`${name}.txt`, folder);
  return await deno?.readTextFile(path) ?? await bun?.file(path).text() ?? "";
}

for (const [name, flow] of Object.entries(flows)) {
  Deno.test(`the client writes the transcript ${name}`, async () => {
    const lines = await record(flow);
    if (isUpdate) {
      const title = (await read(name).catch(() => "")).split("\n").filter((line) => line.startsWith("#"));
      await deno?.writeTextFile(new URL(`${name}.txt`, folder), [...title, ...lines, ""].join("\n"));
    }
    assertEquals(sortHeard(lines), sortHeard(readLines(await read(name))));
  });

  Deno.test(`the server responds according to the transcript ${name}`, async () => {
    const lines = readLines(await read(name));
    assertEquals(sortHeard(await replay(lines, flow.options)), sortHeard(lines));
  });
}
