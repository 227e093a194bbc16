// Probes a server that mounts probe_server.ts: seventeen behaviours that a framework or a proxy can break. Sends raw
// requests, so that the client of this library cannot hide a fault.

/** Sends a request to the server. */
export type Send = (request: Request) => Promise<Response>;

/** The behaviours, in the order of the columns in docs/project/framework-checks.md. */
export const BEHAVIOURS = [
  "call",
  "call in a session",
  "list",
  "list in a session",
  "question",
  "question in a session",
  "progress",
  "listen",
  "listen, 20 s silent",
  "GET stream",
  "cancellation",
  "disconnect",
  "DELETE",
  "1 MB argument",
  "3.9 MB argument",
  "1 MB result",
  "12 s call",
] as const;

export type Behaviour = typeof BEHAVIOURS[number];

/** What each behaviour did: `passed`, or what the client got instead. */
export type Outcome = Readonly<Record<Behaviour, string>>;

// deno-lint-ignore no-explicit-any -- any JSON value of the server
type Json = any;

const MODERN = "2026-07-28";
const LEGACY = "2025-11-25";
const META = "io.modelcontextprotocol/";
/** Milliseconds that a behaviour may take. It exceeds the longest wait of a behaviour by far. */
const PATIENCE_MS = 60_000;
/** Milliseconds within which a disconnect must cancel a call. The server's heartbeat comes after 8 seconds. */
const NOTICE_MS = 4_000;
const MB = 1_000_000;

/** A response, of which the messages are read while they arrive. */
class Reply {
  readonly status: number;
  readonly session: string;
  readonly #response: Response;
  readonly #messages: AsyncIterator<Json>;

  constructor(response: Response) {
    this.status = response.status;
    this.session = response.headers.get("mcp-session-id") ?? "";
    this.#response = response;
    this.#messages = this.#read();
  }

  /** Waits for the next message that satisfies a condition. */
  async find(condition: (message: Json) => boolean): Promise<Json> {
    for (;;) {
      const { value, done } = await this.#messages.next();
      if (done) throw new Error(`HTTP ${this.status}: the response ended too early`);
      if (value.error) throw new Error(`HTTP ${this.status}: ${value.error.message}`);
      if (condition(value)) return value;
    }
  }

  /** Waits for the result. */
  async readResult(): Promise<Json> {
    return (await this.find((message) => "result" in message)).result;
  }

  /** Waits for the text of a tool. */
  async readText(): Promise<string> {
    return (await this.readResult()).content[0].text;
  }

  /** Closes the response. */
  async close(): Promise<void> {
    await this.#messages.return?.();
  }

  async *#read(): AsyncGenerator<Json> {
    const { body, headers, status } = this.#response;
    if (!body) throw new Error(`HTTP ${status} without a body`);
    const isStream = headers.get("content-type")?.startsWith("text/event-stream");
    let text = "";
    for await (const piece of body.pipeThrough(new TextDecoderStream())) {
      text += piece;
      if (!isStream) continue;
      const events = text.split("\n\n");
      text = events.pop() ?? "";
      for (const event of events) {
        const data = event.split("\n").filter((line) => line.startsWith("data: ")).map((line) => line.slice(6)).join(
          "",
        );
        if (data) yield JSON.parse(data);
      }
    }
    if (isStream) return;
    try {
      yield JSON.parse(text);
    } catch {
      throw new Error(`HTTP ${status}: ${text.replaceAll(/\s+/g, " ").slice(0, 120) || "an empty body"}`);
    }
  }
}

/** A client that sends raw requests. */
class Prober {
  readonly #send: Send;
  readonly #url: string;
  #lastId = 0;

  constructor(send: Send, url: string) {
    this.#send = send;
    this.#url = url;
  }

  async #request(method: string, headers: Record<string, string>, message?: object): Promise<Reply> {
    const accept = method === "GET" ? "text/event-stream" : "application/json, text/event-stream";
    const body = message && JSON.stringify(message);
    const all = { accept, ...body && { "content-type": "application/json" }, ...headers };
    return new Reply(await this.#send(new Request(this.#url, { method, headers: all, body })));
  }

  /** Sends a request of 2026-07-28. */
  async modern(method: string, params: Json = {}): Promise<Reply> {
    const _meta = {
      [`${META}protocolVersion`]: MODERN,
      [`${META}clientInfo`]: { name: "probe", version: "1.0.0" },
      [`${META}clientCapabilities`]: { elicitation: { form: {} } },
      ...params._meta,
    };
    const headers = {
      "mcp-protocol-version": MODERN,
      "mcp-method": method,
      ...params.name && { "mcp-name": params.name },
    };
    const id = ++this.#lastId;
    return await this.#request("POST", headers, { jsonrpc: "2.0", id, method, params: { ...params, _meta } });
  }

  /** Calls a tool in 2026-07-28, and returns its text. */
  async callTool(name: string, args: object = {}): Promise<string> {
    return await (await this.modern("tools/call", { name, arguments: args })).readText();
  }

  /** Starts a session. */
  async initialize(): Promise<Session> {
    const params = {
      protocolVersion: LEGACY,
      capabilities: { elicitation: { form: {} } },
      clientInfo: { name: "probe", version: "1.0.0" },
    };
    const reply = await this.#request("POST", {}, { jsonrpc: "2.0", id: 0, method: "initialize", params });
    await reply.readResult();
    const headers = { "mcp-session-id": reply.session, "mcp-protocol-version": LEGACY };
    const session: Session = {
      request: (method, params = {}, id = ++this.#lastId) =>
        this.#request("POST", headers, { jsonrpc: "2.0", id, method, params }),
      post: async (message) => {
        const { status } = await this.#request("POST", headers, { jsonrpc: "2.0", ...message });
        equal(status, 202);
      },
      send: (method) => this.#request(method, headers),
    };
    await session.post({ method: "notifications/initialized" });
    return session;
  }
}

interface Session {
  request(method: string, params?: Json, id?: number): Promise<Reply>;
  /** Sends a notification or an answer. */
  post(message: object): Promise<void>;
  send(method: "GET" | "DELETE"): Promise<Reply>;
}

function equal(actual: unknown, expected: unknown): void {
  if (actual === expected) return;
  throw new Error(`got ${JSON.stringify(actual)} instead of ${JSON.stringify(expected)}`);
}

/** Waits `ms` milliseconds. The behaviours about silence and about slow calls need time to pass. */
async function pass(ms: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  await promise;
  clearTimeout(timer);
}

const hasMethod = (method: string) => (message: Json) => message.method === method;
const isUpdate = hasMethod("notifications/resources/updated");
const isProgress = hasMethod("notifications/progress");

const ADD = { name: "add", arguments: { a: 2, b: 3 } };

/** Returns the URI of a resource that only one behaviour watches, so that no other behaviour changes it. */
const toUri = () => `probe://${crypto.randomUUID()}`;

async function listen(client: Prober, uri: string): Promise<Reply> {
  const stream = await client.modern("subscriptions/listen", { notifications: { resourceSubscriptions: [uri] } });
  await stream.find(hasMethod("notifications/subscriptions/acknowledged"));
  return stream;
}

/** Changes a resource, and waits until the notification has arrived on a stream. */
async function change(client: Prober, stream: Reply, uri: string): Promise<void> {
  equal(await client.callTool("change", { uri }), "changed");
  equal((await stream.find(isUpdate)).params.uri, uri);
  await stream.close();
}

/** Waits until a call of `hang` was cancelled. Throws with the time that passed. */
async function waitForCancellation(client: Prober, key: string): Promise<void> {
  const begin = performance.now();
  const toMs = () => performance.now() - begin;
  while (await client.callTool("is_cancelled", { key }) !== "true") {
    if (toMs() > PATIENCE_MS / 2) throw new Error("the call was not cancelled");
    await pass(50);
  }
  if (toMs() > NOTICE_MS) throw new Error(`the call was cancelled after ${Math.round(toMs() / 1000)} s`);
}

const checks: Readonly<Record<Behaviour, (client: Prober) => Promise<void>>> = {
  async "call"(client) {
    equal(await client.callTool("add", { a: 2, b: 3 }), "5");
  },
  async "call in a session"(client) {
    const session = await client.initialize();
    equal(await (await session.request("tools/call", ADD)).readText(), "5");
  },
  async "list"(client) {
    equal((await (await client.modern("tools/list")).readResult()).tools[0].name, "add");
  },
  async "list in a session"(client) {
    const session = await client.initialize();
    equal((await (await session.request("tools/list")).readResult()).tools[0].name, "add");
  },
  async "question"(client) {
    const call = { name: "ask", arguments: {} };
    const { inputRequests, requestState } = await (await client.modern("tools/call", call)).readResult();
    const inputResponses = { [Object.keys(inputRequests)[0]]: { action: "accept", content: { name: "Ada" } } };
    equal(await (await client.modern("tools/call", { ...call, inputResponses, requestState })).readText(), "Ada");
  },
  async "question in a session"(client) {
    const session = await client.initialize();
    const reply = await session.request("tools/call", { name: "ask", arguments: {} });
    const { id } = await reply.find(hasMethod("elicitation/create"));
    await session.post({ id, result: { action: "accept", content: { name: "Ada" } } });
    equal(await reply.readText(), "Ada");
  },
  async "progress"(client) {
    const reply = await client.modern("tools/call", { ...ADD, _meta: { progressToken: 1 } });
    equal((await reply.find(isProgress)).params.progress, 1);
    equal(await reply.readText(), "5");
  },
  async "listen"(client) {
    const uri = toUri();
    await change(client, await listen(client, uri), uri);
  },
  async "listen, 20 s silent"(client) {
    const uri = toUri();
    const stream = await listen(client, uri);
    await pass(20_000);
    await change(client, stream, uri);
  },
  async "GET stream"(client) {
    const session = await client.initialize();
    const stream = await session.send("GET");
    equal(`HTTP ${stream.status}`, "HTTP 200");
    const uri = toUri();
    await (await session.request("resources/subscribe", { uri })).readResult();
    await change(client, stream, uri);
  },
  async "cancellation"(client) {
    const session = await client.initialize();
    const key = crypto.randomUUID();
    const params = { name: "hang", arguments: { key }, _meta: { progressToken: 1 } };
    const reply = await session.request("tools/call", params, 77);
    await reply.find(isProgress);
    await session.post({ method: "notifications/cancelled", params: { requestId: 77 } });
    await waitForCancellation(client, key);
    await reply.close();
  },
  async "disconnect"(client) {
    const key = crypto.randomUUID();
    const params = { name: "hang", arguments: { key }, _meta: { progressToken: 1 } };
    const reply = await client.modern("tools/call", params);
    await reply.find(isProgress);
    await reply.close();
    await waitForCancellation(client, key);
  },
  async "DELETE"(client) {
    const session = await client.initialize();
    const { status } = await session.send("DELETE");
    equal(`HTTP ${status}`, "HTTP 204");
    // If instances share a store, the others learn of the end a few milliseconds later, or up to a second later.
    const begin = performance.now();
    const ask = async () => {
      const after = await session.request("tools/list");
      await after.close();
      return after.status;
    };
    let last = await ask();
    while (last === 200 && performance.now() - begin < NOTICE_MS) {
      await pass(50);
      last = await ask();
    }
    equal(`HTTP ${last}`, "HTTP 404");
  },
  async "1 MB argument"(client) {
    equal(await client.callTool("measure", { text: "x".repeat(MB) }), `${MB}`);
  },
  async "3.9 MB argument"(client) {
    equal(await client.callTool("measure", { text: "x".repeat(3.9 * MB) }), `${3.9 * MB}`);
  },
  async "1 MB result"(client) {
    equal((await client.callTool("repeat", { length: MB })).length, MB);
  },
  async "12 s call"(client) {
    equal(await client.callTool("wait", { ms: 12_000 }), "waited");
  },
};

/** Returns "passed", or the state that made a check fail. */
async function tell(check: Promise<void>): Promise<string> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error(`no response within ${PATIENCE_MS / 1000} s`)), PATIENCE_MS);
  try {
    await Promise.race([check, late.promise]);
    return "passed";
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  } finally {
    clearTimeout(timer);
  }
}

/** The behaviours that wait, which run at the same time as the other behaviours. */
const WAITING: readonly Behaviour[] = ["listen, 20 s silent", "12 s call", "cancellation", "disconnect"];

/** Probes the server at a URL. `send` connects to it. */
export async function probe(url: string, send: Send = fetch): Promise<Outcome> {
  const outcome = new Map<Behaviour, string>();
  const run = async (behaviour: Behaviour) => {
    outcome.set(behaviour, await tell(checks[behaviour](new Prober(send, url))));
  };
  const waiting = WAITING.map(run);
  for (const behaviour of BEHAVIOURS.filter((each) => !WAITING.includes(each))) await run(behaviour);
  await Promise.all(waiting);
  // The cast is safe, because each behaviour has run.
  return Object.fromEntries(BEHAVIOURS.map((behaviour) => [behaviour, outcome.get(behaviour)])) as Outcome;
}
