// A common interface for MCP clients of other libraries (peers), and the steps that test the peer server with each
// client.
import { assert, assertEquals, assertMatch, assertObjectMatch, assertRejects } from "@std/assert";
import { until } from "../support/behaviour.ts";

/** A result that the client received. */
export type Result = Readonly<Record<string, unknown>>;

export interface CallOptions {
  readonly signal?: AbortSignal;
  readonly onprogress?: (progress: Progress) => void;
  readonly _meta?: Readonly<Record<string, unknown>>;
}

export interface Progress {
  readonly progress: number;
  readonly total?: number;
  readonly message?: string;
}

/** A notification that the client received. */
export interface Heard {
  readonly method: string;
  readonly params?: Result;
}

/** A connected client. */
export interface Peer extends AsyncDisposable {
  /** The negotiated protocol version. */
  readonly version: string;
  /** Error code that this client reports for a missing resource. */
  readonly missing: number;
  /** Name, version and instructions that the client received from the server. */
  readonly server: { readonly name?: string; readonly version?: string; readonly instructions?: string };
  /** All received notifications, in order. */
  readonly heard: Heard[];
  /** Messages of all elicitations, in order. */
  readonly asked: string[];
  /** Errors that the client has reported. */
  readonly errors: unknown[];
  callTool(name: string, args?: Result, options?: CallOptions): Promise<Result>;
  listTools(): Promise<{ readonly tools: readonly Result[] }>;
  listResources(): Promise<{ readonly resources: readonly Result[] }>;
  listResourceTemplates(): Promise<{ readonly resourceTemplates: readonly Result[] }>;
  listPrompts(): Promise<{ readonly prompts: readonly Result[] }>;
  readResource(params: { uri: string }): Promise<{ readonly contents: readonly Result[] }>;
  getPrompt(params: { name: string; arguments?: Record<string, string> }): Promise<{ readonly messages: unknown }>;
  complete(params: {
    ref: { type: "ref/prompt"; name: string } | { type: "ref/resource"; uri: string };
    argument: { name: string; value: string };
    context?: { arguments?: Record<string, string> };
  }): Promise<{ readonly completion: { values: string[] } }>;
  /**
   * Sets the minimum level of log messages. Returns the `_meta` to pass to calls, for eras in which each call sets the
   * level.
   */
  setLogLevel(level: "debug" | "warning"): Promise<Pick<CallOptions, "_meta">>;
  /** Subscribes to the list of tools and to a resource. Disposing the result ends the subscription. */
  watch(uri: string): Promise<AsyncDisposable>;
}

/** The capabilities that every client declares. */
export const CAPABILITIES = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} };

/** Returns the answer to an elicitation, which is the same for every client. */
export function answerForm(
  message: string,
): { action: "accept" | "decline"; content?: Record<string, string | number | boolean> } {
  const contents: Readonly<Record<string, Record<string, string | number | boolean>>> = {
    "Which color?": { color: "red" },
    "How many?": { count: 3 },
    "Who?": { name: "Ada" },
    "About what?": { topic: "tea" },
    "Is it Ada?": { ok: true },
    "Is it nobody?": { ok: false },
  };
  if (message === "Pay here") return { action: "accept" };
  const content = contents[message] ?? (/^Take ticket/.test(message) ? { ok: true } : undefined);
  return content ? { action: "accept", content } : { action: "decline" };
}

export const MODEL_ANSWER = {
  role: "assistant",
  model: "parrot-1",
  content: { type: "text", text: "A parrot" },
} as const;

export const ROOTS = { roots: [{ uri: "file:///home/ada" }, { uri: "file:///srv" }] };

function text(text: string): Result {
  return { content: [{ type: "text", text }] };
}

/** Reads all pages of a list, for clients that return one page at a time. */
export async function readPages<P extends { readonly nextCursor?: string }, I>(
  read: (params?: { cursor: string }) => Promise<P>,
  toItems: (page: P) => readonly I[],
): Promise<I[]> {
  const items: I[] = [];
  let page = await read();
  items.push(...toItems(page));
  while (page.nextCursor !== undefined) {
    page = await read({ cursor: page.nextCursor });
    items.push(...toItems(page));
  }
  return items;
}

/** Returns the fields of a result that the handler sets, without the fields that eras and clients add. */
function toGiven({ content, structuredContent, isError }: Result): Result {
  return JSON.parse(JSON.stringify({ content, structuredContent, isError }));
}

/** Calls the `seen` tool, which returns the counts that the server has recorded. */
async function readSeen(peer: Peer): Promise<{ made: number; aborted: number; waiting: number }> {
  const { content } = await peer.callTool("seen");
  return JSON.parse((content as readonly { text: string }[])[0].text);
}

function namesOf(items: readonly Result[]): unknown[] {
  return items.map(({ name }) => name);
}

/** Test steps for every client, in every revision and over every transport. */
export const behaviours: readonly { readonly name: string; run(peer: Peer): Promise<void> }[] = [
  {
    name: "the server introduces itself",
    run(peer) {
      assertEquals(peer.server, { name: "peers", version: "1.2.3", instructions: "Try everything." });
      return Promise.resolve();
    },
  },
  {
    name: "the client lists tools, resources, templates and prompts",
    async run(peer) {
      const { tools } = await peer.listTools();
      assertEquals(namesOf(tools).slice(0, 4), ["give", "measure", "forecast", "echo"]);
      assertEquals(namesOf(tools).at(-1), "touch");
      assertObjectMatch(tools[0], {
        title: "Give",
        description: "Gives what it is asked for",
        annotations: { readOnlyHint: true },
        inputSchema: { type: "object", required: ["what"] },
      });
      if (peer.version >= "2025-06-18") assertObjectMatch(tools[1], { outputSchema: { type: "object" } });
      const { resources } = await peer.listResources();
      assertEquals(resources.map(({ uri }) => uri), [
        "asked://topic",
        "config://app",
        "pixel://1",
        "note://1",
        "note://2",
      ]);
      const { resourceTemplates } = await peer.listResourceTemplates();
      assertEquals(resourceTemplates.map(({ uriTemplate }) => uriTemplate), ["note://{id}"]);
      const { prompts } = await peer.listPrompts();
      assertEquals(namesOf(prompts), ["ask_prompt", "greet"]);
      assertObjectMatch(prompts[1], {
        arguments: [{ name: "name", description: "Whom", required: true }, { name: "style" }],
      });
    },
  },
  {
    name: "the client receives every kind of content",
    async run(peer) {
      const give = async (what: string) => toGiven(await peer.callTool("give", { what }));
      assertEquals(await give("text"), text("a text"));
      assertEquals(await give("number"), text("42"));
      assertEquals(await give("nothing"), text("null"));
      assertObjectMatch(await give("object"), text('{"a":[1,2],"b":"two"}'));
      assertEquals(await give("image"), { content: [{ type: "image", data: "iVBORw==", mimeType: "image/png" }] });
      assertEquals(await give("many"), { content: [{ type: "text", text: "one" }, { type: "text", text: "two" }] });
      assertEquals(await give("embedded"), {
        content: [{ type: "resource", resource: { uri: "note://1", mimeType: "text/plain", text: "Buy milk" } }],
      });
      assertEquals(await give("refusal"), { ...text("There is nothing left to give"), isError: true });
      if (peer.version < "2025-03-26") return;
      assertEquals(await give("sound"), { content: [{ type: "audio", data: "iVBORw==", mimeType: "audio/wav" }] });
      if (peer.version < "2025-06-18") return;
      assertEquals(await give("link"), { content: [{ type: "resource_link", uri: "note://1", name: "first" }] });
      assertEquals((await give("object")).structuredContent, { a: [1, 2], b: "two" });
      assertEquals((await peer.callTool("measure", { feet: 10 })).structuredContent, { meters: 3.048, exact: true });
    },
  },
  {
    name: "arguments that clients repeat in headers arrive",
    async run(peer) {
      await peer.listTools();
      const { content } = await peer.callTool("forecast", { place: "Zürich\n", days: 3 });
      assertEquals(content, [{ type: "text", text: "Zürich\n: 3 days of rain" }]);
      const plain = await peer.callTool("forecast", { place: "Bern" });
      assertEquals(plain.content, [{ type: "text", text: "Bern: 1 days of rain" }]);
    },
  },
  {
    name: "the client receives the error of a call",
    async run(peer) {
      const wrong = await peer.callTool("measure", { feet: "ten" });
      assertEquals(wrong.isError, true);
      assertMatch(JSON.stringify(wrong.content), /feet/);
      const accident = await peer.callTool("give", { what: "accident" });
      assertEquals(accident.isError, true);
      assertMatch(JSON.stringify(accident.content), /\([0-9a-f]{8}\)/); // the error's id
      assert(!JSON.stringify(accident).includes("swordfish"), "the text of an unexpected error reached the client");
      const unknown = await assertRejects(() => peer.callTool("nonsense"));
      assertObjectMatch(unknown as object, { code: -32602 });
      const missing = await assertRejects(() => peer.readResource({ uri: "note://9" }));
      assertObjectMatch(missing as object, { code: peer.missing });
    },
  },
  {
    name: "large and non-ASCII text arrives unchanged",
    async run(peer) {
      const large = 'Grüße, 世界 \u2028 \u{1f600} \r\n\t\\" '.repeat(20_000);
      const { content } = await peer.callTool("echo", { text: large });
      assert(JSON.stringify(content) === JSON.stringify(text(large).content), "the text was changed in transit");
    },
  },
  {
    name: "the client reads resources",
    async run(peer) {
      const read = async (uri: string) => JSON.parse(JSON.stringify((await peer.readResource({ uri })).contents));
      const json = [{ uri: "config://app", mimeType: "application/json", text: '{"theme":"dark"}' }];
      assertEquals(await read("config://app"), json);
      assertEquals(await read("note://2"), [{ uri: "note://2", mimeType: "text/plain", text: "Call Ada" }]);
      assertEquals(await read("pixel://1"), [{ uri: "pixel://1", mimeType: "image/png", blob: "iVBORw==" }]);
    },
  },
  {
    name: "the client gets prompts and completes their arguments",
    async run(peer) {
      const { messages } = await peer.getPrompt({ name: "greet", arguments: { name: "Ada" } });
      assertEquals(messages, [{ role: "user", content: { type: "text", text: "Greet Ada, plain." } }]);
      const style = await peer.complete({
        ref: { type: "ref/prompt", name: "greet" },
        argument: { name: "style", value: "l" },
        context: { arguments: { name: "Bob" } },
      });
      assertEquals(style.completion.values, ["like Bob", "loud"]);
      const id = await peer.complete({
        ref: { type: "ref/resource", uri: "note://{id}" },
        argument: { name: "id", value: "2" },
      });
      assertEquals(id.completion.values, ["2"]);
    },
  },
  {
    name: "the client receives progress before the result",
    async run(peer) {
      const seen: Progress[] = [];
      // The clients drop progress that arrives in the same chunk as the result, so call `go` only after the last value
      // has arrived.
      let going: Promise<Result> | undefined;
      const onprogress = (progress: Progress) => {
        if (seen.push(progress) === 3) going = peer.callTool("go");
      };
      const { content } = await peer.callTool("count", { to: 3 }, { onprogress });
      assertEquals((await going)?.content, [{ type: "text", text: "let 1 go" }]);
      assertEquals(content, [{ type: "text", text: "counted to 3" }]);
      const expected = [1, 2, 3].map((at) => ({ progress: at, total: 3, message: `at ${at}` }));
      assertEquals(seen.map(({ progress, total, message }) => ({ progress, total, message })), expected);
    },
  },
  {
    name: "the client receives log messages from the level that it requested",
    async run(peer) {
      const collectLogs = async (options: CallOptions) => {
        peer.heard.length = 0;
        await peer.callTool("talk", {}, options);
        await until(() => peer.heard.at(-1)?.params?.data === "loudest", "the last message");
        return peer.heard.map(({ method, params }) => [method, params?.level, params?.logger, params?.data]);
      };
      const loud = [
        ["notifications/message", "warning", "talker", { loud: true }],
        ["notifications/message", "error", "talker", "loudest"],
      ];
      assertEquals(await collectLogs(await peer.setLogLevel("warning")), loud);
      const all = [["notifications/message", "debug", "talker", "quiet"], ...loud];
      assertEquals(await collectLogs(await peer.setLogLevel("debug")), all);
    },
  },
  {
    name: "the client is notified of changed lists and resources",
    async run(peer) {
      {
        await using _watching = await peer.watch("note://1");
        peer.heard.length = 0;
        await peer.callTool("grow");
        await until(() => peer.heard.length > 0, "the tools have changed");
        assertEquals(namesOf((await peer.listTools()).tools).at(-1), "extra");
        assertEquals((await peer.callTool("extra")).content, [{ type: "text", text: "here" }]);
        await peer.callTool("touch", { uri: "note://2" });
        await peer.callTool("touch", { uri: "note://1" });
        await until(() => peer.heard.length > 1, "the resource has changed");
        assertEquals(peer.heard.map(({ method, params }) => [method, params?.uri]), [
          ["notifications/tools/list_changed", undefined],
          ["notifications/resources/updated", "note://1"],
        ]);
      }
      peer.heard.length = 0;
      await peer.callTool("shrink");
      await peer.callTool("touch", { uri: "note://1" });
      // Wait for twice the time during which the server batches changes, plus a round trip.
      // Fixed wait: a client of another library does not report which messages it has not received.
      await new Promise((resolve) => setTimeout(resolve, 30));
      assert(!namesOf((await peer.listTools()).tools).includes("extra"), "the tool is still there");
      assertEquals(peer.heard.filter(({ method }) => method === "notifications/resources/updated"), []);
    },
  },
  {
    name: "a handler asks two questions concurrently",
    async run(peer) {
      peer.asked.length = 0;
      assertEquals(toGiven(await peer.callTool("ask_both")), text("3 red"));
      assertEquals(peer.asked.sort(), ["How many?", "Which color?"]);
    },
  },
  {
    name: "a handler that swallows errors asks two questions one after another",
    async run(peer) {
      peer.asked.length = 0;
      assertEquals(toGiven(await peer.callTool("ask_caught")), text("Ada true"));
      assert(peer.asked.includes("Is it Ada?"), `the user was asked ${peer.asked}`);
    },
  },
  {
    name: "a handler keeps a value across a question",
    async run(peer) {
      const { made: before } = await readSeen(peer);
      peer.asked.length = 0;
      const result = toGiven(await peer.callTool("ask_once"));
      const ticket = `ticket ${before + 1}`;
      assertEquals(peer.asked, [`Take ${ticket}?`]);
      assertEquals(result, text(`accept ${ticket}`));
    },
  },
  {
    name: "the user declines a question",
    async run(peer) {
      assertEquals(toGiven(await peer.callTool("ask_refused")), text("decline"));
    },
  },
  {
    name: "a handler requests URL elicitation",
    async run(peer) {
      if (peer.version >= "2025-11-25") assertEquals(toGiven(await peer.callTool("ask_visit")), text("accept"));
    },
  },
  {
    name: "a handler requests sampling and roots",
    async run(peer) {
      assertEquals(toGiven(await peer.callTool("ask_model")), text("parrot-1: A parrot"));
      assertEquals(toGiven(await peer.callTool("ask_roots")), text("file:///home/ada file:///srv"));
    },
  },
  {
    name: "a prompt and a resource ask a question before they return",
    async run(peer) {
      const { messages } = await peer.getPrompt({ name: "ask_prompt" });
      assertEquals(messages, [{ role: "user", content: { type: "text", text: "About tea." } }]);
      const { contents } = await peer.readResource({ uri: "asked://topic" });
      assertEquals(contents.map(({ text }) => text), ["About tea."]);
    },
  },
  {
    name: "the client cancels a call",
    async run(peer) {
      const before = await readSeen(peer);
      const cancel = new AbortController();
      const begun = Promise.withResolvers<void>();
      const options = { signal: cancel.signal, onprogress: () => begun.resolve() };
      const refused = assertRejects(() => peer.callTool("wait", {}, options));
      await begun.promise;
      cancel.abort(new Error("enough"));
      await refused;
      await until(async () => (await readSeen(peer)).aborted > before.aborted, "the call is cancelled on the server");
      assertEquals((await readSeen(peer)).aborted, before.aborted + 1);
    },
  },
];
