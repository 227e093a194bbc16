// Two instances of a server that share a Redis store, and clients that use every kind of store operation.
import { createServer, extension, resource, type Server, tool } from "../../mod.ts";
import { idempotent } from "../../src/layers/layers.ts";
import { INTERNALS } from "../../src/core/internals.ts";
import { quota } from "../../src/layers/layers.ts";
import { redisStore } from "../../src/stores/redis/redis.ts";
import { customStore, type Store } from "../../src/stores/stores.ts";
import { task, tasks } from "../../src/extensions/tasks/tasks.ts";
import { z } from "zod";
import { toGet, toInitialize, toLegacy, toListen } from "../hostile/attack.ts";
import { gate, turn, until } from "../support/behaviour.ts";
import { wrapEngine } from "../support/engines.ts";
import { CLIENTS } from "../support/redis/clients.ts";
import { toRequest } from "../support/requests.ts";
import { readTo } from "../support/read_to.ts";

const SECRET = "a secret of at least thirty-two characters";
const REVISION = { "mcp-protocol-version": "2025-11-25" };
const CAPABILITIES = {
  elicitation: { form: {} },
  extensions: { "io.modelcontextprotocol/tasks": {}, "test.example/touch": {} },
};
const META = { _meta: { "io.modelcontextprotocol/clientCapabilities": CAPABILITIES } };

/** The timeout is long, because a busy machine responds late. */
const TIMEOUT_MS = 20_000;

type Json = { readonly [key: string]: unknown };

/** One of the instances. */
interface Instance {
  readonly server: Server;
  readonly store: Store;
  /** Times at which the engine confirmed a write of the lease, in milliseconds on the monotonic clock. */
  readonly renewals: readonly number[];
}

/** Two instances of a server. */
export interface Site extends AsyncDisposable {
  readonly instances: readonly [Instance, Instance];
  /** A connection to the data that does not belong to an instance. */
  readonly outside: Store;
  /** Number of runs of the handler of the task that {@linkcode Worker} starts, and of its `once` function. */
  readonly charged: { runs: number; charges: number };
  /** Ends all handlers that wait. */
  finish(): void;
}

/** Starts two instances with a store in a Redis server with this socket. */
export function startSite(socket: string, leaseMs: number): Site {
  const client = "Bun" in globalThis ? CLIENTS[CLIENTS.length - 1] : CLIENTS[0];
  const prefix = `${crypto.randomUUID()}:`;
  const { connect } = redisStore(() => client.connect(socket), { prefix })[INTERNALS];
  const charged = { runs: 0, charges: 0 };
  const { pass, open } = gate();
  const startInstance = (): Instance => {
    const renewals: number[] = [];
    const store = customStore(async (options) =>
      wrapEngine(await connect(options), ({ name, args, run }) => {
        const done = run();
        if (name === "set" && args[0] === store.lease.id) {
          Promise.resolve(done).then(() => renewals.push(performance.now()), () => {});
        }
        return done;
      }), { leaseMs, timeoutMs: TIMEOUT_MS });
    const server = createServer({
      name: "flooded",
      version: "1.0.0",
      secret: SECRET,
      store,
      handlers: listHandlers(charged, pass),
      limits: { calls: { closeMs: 100 } },
      observer: { fault() {}, store() {} },
    });
    return { server, store, renewals };
  };
  const instances = [startInstance(), startInstance()] as const;
  const outside = customStore(connect);
  return {
    instances,
    outside,
    charged,
    finish: open,
    async [Symbol.asyncDispose]() {
      open();
      await Promise.all(instances.map(({ server }) => server.close()));
      await outside.close();
    },
  };
}

function listHandlers(charged: Site["charged"], pass: Promise<void>) {
  const key = z.object({ key: z.string() });
  const touch = extension({
    id: "test.example/touch",
    // Only an extension that starts has a store.
    start() {},
    methods: {
      "touch/one": {
        run: async (_params, ctx, server) => {
          await server?.store?.by(ctx).get(crypto.randomUUID());
          return {};
        },
      },
    },
  });
  return [
    tasks(),
    touch,
    tool({ name: "pay", input: key, use: [idempotent(({ key }) => key)], run: () => `paid ${crypto.randomUUID()}` }),
    tool({
      name: "hang",
      input: key,
      use: [idempotent(({ key }) => key)],
      run: async () => {
        await pass;
        return "hung";
      },
    }),
    tool({ name: "rated", use: [quota({ rate: { calls: 1e9, perMs: 60_000 }, shared: true })], run: () => "rated" }),
    tool({ name: "keep", use: [quota({ resultBytes: 2000, onLarge: "link" })], run: () => "line\n".repeat(1000) }),
    tool({
      name: "consent",
      run: async (_, ctx) =>
        (await ctx.elicit("sure", { message: "?", schema: z.object({ ok: z.boolean() }), singleUse: true })).action,
    }),
    tool({
      name: "say",
      run: async (_, ctx) => {
        await ctx.progress(1);
        await ctx.log.info("said");
        return "said";
      },
    }),
    tool({
      name: "tail",
      run: async (_, ctx) => {
        await ctx.progress(1);
        await Promise.race([pass, new Promise((resolve) => ctx.signal.addEventListener("abort", resolve))]);
        return "tailed";
      },
    }),
    tool({ name: "brief", use: [task()], run: () => "brief" }),
    tool({
      name: "work",
      use: [task({ resume: true })],
      run: async (_, ctx) => {
        charged.runs++;
        await ctx.once("charge", () => ++charged.charges);
        await pass;
        await ctx.once("end", () => 1);
        return "worked";
      },
    }),
    resource({ uri: "test://a", name: "a", read: () => "" }),
  ];
}

/** Sends requests as one principal. */
export class FloodClient {
  readonly #site: Site;
  readonly #info: { readonly principal: { readonly id: string } };

  constructor(site: Site, id: string) {
    this.#site = site;
    this.#info = { principal: { id } };
  }

  async send(at: 0 | 1, request: Request): Promise<Response> {
    return await this.#site.instances[at].server.fetch(request, this.#info);
  }

  /** Sends a request of the newest revision, and returns the text of the response. */
  async ask(at: 0 | 1, method: string, params: Json = {}): Promise<string> {
    const { taskId } = params;
    const headers: Record<string, string> = typeof taskId === "string" ? { "mcp-name": taskId } : {};
    return await (await this.send(at, toRequest(method, { ...META, ...params }, headers))).text();
  }

  async call(at: 0 | 1, name: string, given: Json = {}, more: Json = {}): Promise<string> {
    return await this.ask(at, "tools/call", { name, arguments: given, ...more });
  }

  /** Opens a stream and reads its first events. Returns what was read. */
  async open(at: 0 | 1, request: Request, text: string): Promise<string> {
    const { body } = await this.send(at, request);
    return await readTo(body, text);
  }

  async listen(at: 0 | 1, taskIds: readonly string[]): Promise<string> {
    return await this.open(at, toListen({ taskIds }, META._meta), "acknowledged");
  }

  /** Opens a session at the first instance. */
  async begin(): Promise<string> {
    const response = await this.send(0, toLegacy(toInitialize(), REVISION));
    await response.text();
    return response.headers.get("mcp-session-id") ?? "";
  }

  async inSession(at: 0 | 1, session: string, message: Json): Promise<Response> {
    return await this.send(at, toLegacy({ jsonrpc: "2.0", ...message }, { ...REVISION, "mcp-session-id": session }));
  }

  /** Calls a tool in a session at the first instance. Returns the id of the first event. */
  async talk(session: string, name: string): Promise<string> {
    const params = { name, arguments: {}, _meta: { progressToken: "p" } };
    const headers = { ...REVISION, "mcp-session-id": session };
    const request = toLegacy({ jsonrpc: "2.0", id: 1, method: "tools/call", params }, headers);
    const text = await this.open(0, request, `"progress":1`);
    return /(?<=^id: ).+$/m.exec(text)?.[0] ?? "";
  }

  /** Resumes a stream of the first instance at the second instance. Returns the HTTP status. */
  async resume(session: string, event: string): Promise<number> {
    const { status, body } = await this.send(1, toGet(session, event));
    await body?.cancel();
    return status;
  }

  async consent(asked: 0 | 1, answered: 0 | 1): Promise<string> {
    const requestState = /"requestState":"([^"]+)"/.exec(await this.call(asked, "consent"))?.[1];
    const inputResponses = { sure: { action: "accept", content: { ok: true } } };
    return await this.call(answered, "consent", {}, { requestState, inputResponses });
  }
}

/** Returns an id that no task has. */
export function toUnknownTask(): string {
  return crypto.randomUUID().replaceAll("-", "").slice(0, 32);
}

/** A kind of request that uses the store. Sends one request, or a few. */
type Kind = (client: FloodClient, at: 0 | 1) => Promise<unknown>;

const ping = { id: 2, method: "ping" };
const setLevel = { id: 3, method: "logging/setLevel", params: { level: "error" } };

/** Every kind of request that uses the store. */
export const KINDS: Readonly<Record<string, Kind>> = {
  "tasks/get": (client, at) => client.ask(at, "tasks/get", { taskId: toUnknownTask() }),
  "subscriptions to 100 tasks": (client, at) => client.listen(at, Array.from({ length: 100 }, toUnknownTask)),
  "tasks/cancel": (client, at) => client.ask(at, "tasks/cancel", { taskId: toUnknownTask() }),
  "tasks/update": (client, at) => client.ask(at, "tasks/update", { taskId: toUnknownTask(), inputResponses: {} }),
  "new tasks": (client, at) => client.call(at, "brief"),
  "idempotency keys": (client, at) => client.call(at, "pay", { key: crypto.randomUUID() }),
  "an idempotency key in use": async (client, at) => {
    // The response becomes a stream while the call waits for the first call with the key.
    const { body } = await client.send(at, toRequest("tools/call", { name: "hang", arguments: { key: "one" } }));
    await body?.cancel();
  },
  "shared rates": (client, at) => client.call(at, "rated"),
  "large results": (client, at) => client.call(at, "keep"),
  "unknown large results": (client, at) =>
    client.ask(at, "resources/read", { uri: `result://keep/${crypto.randomUUID()}-100/1` }),
  "answers that can be used once": (client, at) => client.consent(at, at),
  sessions: async (client) => await (await client.inSession(1, await client.begin(), ping)).text(),
  "log levels of sessions": async (client) => await (await client.inSession(1, await client.begin(), setLevel)).text(),
  "ends of sessions": async (client) => {
    const request = new Request(toGet(await client.begin()), { method: "DELETE" });
    await (await client.send(1, request)).text();
  },
  "cancellations in sessions": async (client) => {
    const message = { method: "notifications/cancelled", params: { requestId: 7 } };
    await (await client.inSession(1, await client.begin(), message)).text();
  },
  "resumed streams": async (client) => {
    const session = await client.begin();
    await client.resume(session, await client.talk(session, "say"));
  },
  "followed streams": async (client) => {
    const session = await client.begin();
    await client.resume(session, await client.talk(session, "tail"));
    const message = { method: "notifications/cancelled", params: { requestId: 1 } };
    await (await client.inSession(0, session, message)).text();
  },
  "operations of extensions": (client, at) => client.ask(at, "touch/one"),
};

/** A client that works while other clients flood the instances. */
export class Worker {
  /** What the client has lost. */
  readonly lost: string[] = [];
  readonly #client: FloodClient;
  #task = "";

  constructor(site: Site) {
    this.#client = new FloodClient(site, "ada");
  }

  /** Starts a task on the first instance, whose handler runs until the site is finished. */
  async start(): Promise<void> {
    this.#task = /"taskId":"([^"]+)"/.exec(await this.#client.call(0, "work"))?.[1] ?? "no task";
  }

  /**
   * Makes a request of each kind, each together with a call of `meanwhile`. Adds each request without success to
   * {@linkcode lost}.
   */
  async work(meanwhile: () => Promise<void> = () => Promise.resolve()): Promise<void> {
    for (const request of this.#listRequests()) await Promise.all([request(), meanwhile()]);
  }

  #listRequests(): readonly (() => Promise<void>)[] {
    const client = this.#client;
    const key = crypto.randomUUID();
    let paid = "";
    let session = "";
    return [
      async () => {
        paid = /"paid [^"]+"/.exec(await client.call(0, "pay", { key }))?.[0] ?? "no payment";
        this.#expect("a repeated key", await client.call(1, "pay", { key }), paid);
      },
      async () => this.#expect("the task", await client.ask(1, "tasks/get", { taskId: this.#task }), `"working"`),
      async () => this.#expect("the subscription", await client.listen(1, [this.#task]), this.#task),
      async () => this.#expect("a rate", await client.call(1, "rated"), `"rated"`),
      async () => {
        const uri = /result:\/\/keep\/[^"\\ :]+/.exec(await client.call(0, "keep"))?.[0] ?? "";
        this.#expect("a large result", await client.ask(1, "resources/read", { uri }), "line");
      },
      async () => this.#expect("an answer", await client.consent(0, 1), `"accept"`),
      async () => this.#expect("a new task", await client.call(1, "brief"), `"taskId"`),
      async () => this.#expect("an extension", await client.ask(0, "touch/one"), `"result"`),
      async () => {
        session = await client.begin();
        this.#expect("a session", await (await client.inSession(1, session, ping)).text(), `"result":{}`);
      },
      async () =>
        this.#expect("a log level", await (await client.inSession(0, session, setLevel)).text(), `"result":{}`),
      async () => {
        const event = await client.talk(session, "say");
        // The second instance finds the stream soon after its first event.
        await until(async () => await client.resume(session, event) === 200, "a stream");
      },
      async () => {
        const { status } = await client.send(1, new Request(toGet(session), { method: "DELETE" }));
        this.#expect("the end of a session", `${status}`, "204");
      },
    ];
  }

  #expect(what: string, text: string, part: string): void {
    if (!text.includes(part)) this.lost.push(`${what}: ${text.slice(0, 300)}`);
  }

  /** Waits for the result of the task. */
  async finish(): Promise<string> {
    let text = "";
    await until(async () => {
      text = await this.#client.ask(1, "tasks/get", { taskId: this.#task });
      return text.includes(`"status":"completed"`);
    }, "the result of the task");
    return text;
  }
}

/** Clients that together send many requests at once. */
export class Flood {
  readonly #clients: readonly FloodClient[];
  readonly #kinds: readonly Kind[];

  constructor(site: Site, kinds: readonly Kind[], clients: number) {
    this.#clients = Array.from({ length: clients }, (_, at) => new FloodClient(site, `eve${at}`));
    this.#kinds = kinds;
  }

  /** Always has `count` requests in progress, until the returned function is called. */
  start(count: number): () => Promise<void> {
    let isOver = false;
    const repeat = async (at: number) => {
      while (!isOver) {
        await this.#kinds[at % this.#kinds.length](this.#clients[at % this.#clients.length], at >> 1 & 1 ? 1 : 0);
        await turn();
      }
    };
    const running = Promise.all(Array.from({ length: count }, (_, at) => repeat(at)));
    return async () => {
      isOver = true;
      await running;
    };
  }

  /** Sends `count` requests at once, and waits for all responses. */
  async send(count: number): Promise<void> {
    const clients = this.#clients;
    await Promise.all(Array.from({ length: count }, (_, at) => {
      const kind = this.#kinds[at % this.#kinds.length];
      return kind(clients[at % clients.length], at >> 1 & 1 ? 1 : 0);
    }));
  }
}
