// The peer server: a server with every kind of handler, for tests with other clients.
import {
  type Context,
  createServer,
  type Handler,
  media,
  prompt,
  resource,
  resourceLink,
  type Server,
  tool,
  ToolError,
} from "../../mod.ts";
import { z } from "zod";
import { testLimits } from "../support/limits.ts";

const PIXEL = Uint8Array.of(137, 80, 78, 71);

/** What the `give` tool can return, by the value of its argument. */
const gifts: Readonly<Record<string, () => string | number | boolean | null | object>> = {
  text: () => "a text",
  number: () => 42,
  nothing: () => null,
  object: () => ({ a: [1, 2], b: "two" }),
  image: () => media(PIXEL, "image/png"),
  sound: () => media(PIXEL, "audio/wav"),
  link: () => resourceLink("note://1", { name: "first" }),
  embedded: () => ({ type: "resource", resource: { uri: "note://1", mimeType: "text/plain", text: "Buy milk" } }),
  many: () => [{ type: "text", text: "one" }, { type: "text", text: "two" }],
  refusal: () => {
    throw new ToolError("There is nothing left to give");
  },
  accident: () => {
    throw new Error("the password is swordfish");
  },
};

const notes = new Map([["1", "Buy milk"], ["2", "Call Ada"]]);
const yes = z.object({ ok: z.boolean() });

/** Waits until a call is cancelled. */
function untilAborted(signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  if (signal.aborted) resolve();
  else signal.addEventListener("abort", () => resolve(), { once: true });
  return promise;
}

/** Creates a server with its own counts and state. */
export function createPeerServer(): Server {
  const seen = { waiting: 0, aborted: 0, made: 0 };
  const held: (() => void)[] = [];

  const giving: readonly Handler[] = [
    tool({
      name: "give",
      title: "Give",
      description: "Gives what it is asked for",
      input: z.object({ what: z.enum(Object.keys(gifts)) }),
      annotations: { readOnlyHint: true },
      run: ({ what }) => gifts[what](),
    }),
    tool({
      name: "measure",
      description: "Gives what its output schema promises",
      input: z.object({ feet: z.number().min(0) }),
      output: z.object({ meters: z.number(), exact: z.boolean() }),
      run: ({ feet }) => ({ meters: feet * 0.3048, exact: true }),
    }),
    tool({
      name: "forecast",
      description: "Takes an argument that clients repeat in a header",
      input: z.object({ place: z.string().meta({ "x-mcp-header": "Place" }), days: z.int().optional() }),
      run: ({ place, days = 1 }) => `${place}: ${days} days of rain`,
    }),
    tool({
      name: "echo",
      description: "Gives back its input, however large",
      input: z.object({ text: z.string() }),
      run: ({ text }) => text,
    }),
  ];

  const telling: readonly Handler[] = [
    tool({
      name: "count",
      description: "Tells how far it is, and ends when `go` is called",
      input: z.object({ to: z.int() }),
      run: async ({ to }, ctx) => {
        // Start waiting for `go` before reporting the last value, because the client calls `go` when this value
        // arrives.
        const going = new Promise<void>((resolve) => held.push(resolve));
        for (let at = 1; at <= to; at++) await ctx.progress(at, { total: to, message: `at ${at}` });
        await going;
        return `counted to ${to}`;
      },
    }),
    tool({
      name: "go",
      description: "Ends calls of `count`",
      run: () => `let ${held.splice(0).map((go) => go()).length} go`,
    }),
    tool({
      name: "talk",
      description: "Logs",
      run: async (_, ctx) => {
        await ctx.log.debug("quiet", { logger: "talker" });
        await ctx.log.warning({ loud: true }, { logger: "talker" });
        await ctx.log.error("loudest", { logger: "talker" });
        return "said";
      },
    }),
    tool({
      name: "wait",
      description: "Waits until it is cancelled",
      run: async (_, ctx) => {
        seen.waiting++;
        await ctx.progress(1);
        await untilAborted(ctx.signal);
        seen.aborted++;
        return "cancelled";
      },
    }),
    tool({ name: "seen", description: "Tells how many calls waited", run: () => ({ ...seen }) }),
  ];

  const asking: readonly Handler[] = [
    tool({
      name: "ask_both",
      description: "Asks two things at once",
      run: async (_, ctx) => {
        const [color, count] = await Promise.all([
          ctx.elicit("color", { message: "Which color?", schema: z.object({ color: z.enum(["red", "blue"]) }) }),
          ctx.elicit("count", { message: "How many?", schema: z.object({ count: z.int() }) }),
        ]);
        return `${count.content?.count} ${color.content?.color}`;
      },
    }),
    tool({
      name: "ask_caught",
      description: "Asks one thing after another, and swallows what is thrown",
      run: async (_, ctx) => {
        let name = "nobody";
        try {
          const answer = await ctx.elicit("name", { message: "Who?", schema: z.object({ name: z.string() }) });
          name = answer.content?.name ?? name;
        } catch { /* a handler written without regard to being run again */ }
        let sure = false;
        try {
          sure = (await ctx.elicit("sure", { message: `Is it ${name}?`, schema: yes })).content?.ok ?? false;
        } catch { /* as above */ }
        return `${name} ${sure}`;
      },
    }),
    tool({
      name: "ask_once",
      description: "Makes a value before the question and keeps it",
      run: async (_, ctx) => {
        const ticket = await ctx.once("ticket", () => `ticket ${++seen.made}`);
        const { action } = await ctx.elicit("take", { message: `Take ${ticket}?`, schema: yes });
        return `${action} ${ticket}`;
      },
    }),
    tool({
      name: "ask_refused",
      description: "Asks what the user declines",
      run: async (_, ctx) => (await ctx.elicit("soul", { message: "Sell your soul?", schema: yes })).action,
    }),
    tool({
      name: "ask_visit",
      description: "Sends the user to a page",
      run: async (_, ctx) =>
        (await ctx.elicitUrl("pay", { message: "Pay here", url: "https://example.com/pay" })).action,
    }),
    tool({
      name: "ask_model",
      description: "Asks the client's model",
      run: async (_, ctx) => {
        const messages = [{ role: "user", content: { type: "text", text: "Who are you?" } }] as const;
        const { model, content } = await ctx.sample("who", { messages, maxTokens: 10 });
        return `${model}: ${"text" in content ? content.text : ""}`;
      },
    }),
    tool({
      name: "ask_roots",
      description: "Asks for the client's roots",
      run: async (_, ctx) => (await ctx.roots()).map(({ uri }) => uri).join(" "),
    }),
    prompt({ name: "ask_prompt", description: "Asks before it speaks", run: (_, ctx) => askTopic(ctx) }),
    resource({ uri: "asked://topic", name: "asked", read: (_, ctx) => askTopic(ctx) }),
  ];

  const reading: readonly Handler[] = [
    resource({ uri: "config://app", name: "config", title: "Configuration", read: () => ({ theme: "dark" }) }),
    resource({
      uri: "pixel://1",
      name: "pixel",
      mimeType: "image/png",
      read: () => PIXEL,
    }),
    resource({
      uri: "note://{id}",
      name: "note",
      mimeType: "text/plain",
      complete: { id: (value) => [...notes.keys()].filter((id) => id.startsWith(value)) },
      list: () => [...notes.keys()].map((id) => ({ uri: `note://${id}`, name: `note ${id}` })),
      read: ({ id }) => notes.get(id),
    }),
    prompt({
      name: "greet",
      description: "Greets someone",
      input: z.object({ name: z.string().describe("Whom"), style: z.string().optional() }),
      complete: { style: (value, { name }) => [`like ${name}`, "loud"].filter((style) => style.startsWith(value)) },
      run: ({ name, style = "plain" }) => `Greet ${name}, ${style}.`,
    }),
  ];

  const extra = tool({ name: "extra", description: "Comes and goes", run: () => "here" });
  const changing: readonly Handler[] = [
    tool({
      name: "grow",
      description: "Adds the tool extra",
      run: () => {
        server.handlers.add(extra);
        return "grown";
      },
    }),
    tool({
      name: "shrink",
      description: "Takes the tool extra away",
      run: () => {
        server.handlers.remove(extra);
        return "shrunk";
      },
    }),
    tool({
      name: "touch",
      description: "Says that a resource has changed",
      input: z.object({ uri: z.string() }),
      run: ({ uri }) => {
        server.resourceUpdated(uri);
        return "touched";
      },
    }),
  ];

  const server = createServer({
    name: "peers",
    version: "1.2.3",
    title: "For peers",
    instructions: "Try everything.",
    // With this page size, all lists except the shortest list have several pages.
    limits: testLimits({ calls: { pageItems: 3 } }),
    handlers: [...giving, ...telling, ...asking, ...reading, ...changing],
    // Do not print faults, because tests cause handler errors on purpose.
    observer: { fault() {} },
  });
  return server;
}

async function askTopic(ctx: Context): Promise<string> {
  const { content } = await ctx.elicit("topic", { message: "About what?", schema: z.object({ topic: z.string() }) });
  return `About ${content?.topic}.`;
}

export default createPeerServer();
