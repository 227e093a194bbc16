// Clients that use every feature that spans several requests, and check the responses.
import { type Client, connect } from "../../../src/client/client.ts";

/**
 * Time in milliseconds within which each request must end, counted from its start or from the last kill of an instance.
 */
export const PATIENCE_MS = 10_000;
/** Time in milliseconds within which each request must end, however many instances are killed during the request. */
const TIMEOUT_MS = 40_000;

/** What the clients have observed. */
export interface Seen {
  /** By kind of client, the number of requests that returned a result, and that failed with an expected error. */
  readonly counts: Record<string, { results: number; errors: number }>;
  /** The number of occurrences of each error text. */
  readonly errors: Map<string, number>;
  /** Violations of the expected behaviour. */
  readonly faults: string[];
  /** The number of `initialize` handshakes. */
  handshakes: number;
  /** The longest duration of a request in milliseconds, counted from its start or from the last kill of an instance. */
  longestMs: number;
}

/** Clients that run until `stop` is called. */
export interface Crowd {
  readonly seen: Seen;
  /** Records that an instance has been killed. */
  noteKill(): void;
  /** Announces a change, and waits until every subscriber has received it. */
  checkSubscribers(): Promise<void>;
  /** Stops the clients, and checks the conditions that can be checked only at the end. */
  stop(): Promise<void>;
}

type Send = (request: Request) => Promise<Response>;
type Era = "modern" | "legacy";

const ERAS: readonly Era[] = ["modern", "legacy"];
const WATCHED = "test://watched-resource";

/** The error that promises that a call has not reached the server behind a proxy. */
const NOT_RUN = /so this request has not run/;

/** Starts clients of every kind. `effects` is the path of the file with the keys of calls that have run. */
export async function startCrowd(send: Send, effects: string): Promise<Crowd> {
  const seen: Seen = { counts: {}, errors: new Map(), faults: [], handshakes: 0, longestMs: 0 };
  let isOver = false;
  let killedAt = 0;
  const clients: Client[] = [];
  const count = async (request: Request) => {
    if (request.method === "POST" && (await request.clone().text()).includes('"method":"initialize"')) {
      seen.handshakes++;
    }
    return await send(request);
  };
  const open = async (era: Era): Promise<Client> => {
    const client = await connect("http://cluster/mcp", {
      era,
      fetch: count,
      timeoutMs: TIMEOUT_MS,
      onElicit: () => ({ action: "accept", content: { username: "ada", email: "ada@example.com" } }),
      onWarning: () => {},
    });
    clients.push(client);
    return client;
  };

  /** Runs one request. Returns `undefined` if the request failed with an expected error. */
  const attempt = async <T>(kind: string, run: () => Promise<T>): Promise<T | undefined> => {
    const counts = seen.counts[kind] ??= { results: 0, errors: 0 };
    const began = performance.now();
    try {
      const result = await run();
      counts.results++;
      return result;
    } catch (error) {
      counts.errors++;
      const text = `${kind}: ${error instanceof Error ? error.message : error}`.replace(/[\w-]{16,}/g, "…")
        .replace(/for url.*|from 127.*/s, "");
      seen.errors.set(text, (seen.errors.get(text) ?? 0) + 1);
    } finally {
      const ms = performance.now() - Math.max(began, killedAt);
      seen.longestMs = Math.max(seen.longestMs, ms);
      if (ms > PATIENCE_MS) seen.faults.push(`${kind}: ended after ${Math.round(ms)} ms`);
    }
  };
  /**
   * Repeats a request until it returns a result, which must arrive within 10 s. The time starts again after each attempt
   * during which an instance was killed, because several attempts in a row can be lost.
   */
  const insist = async <T>(kind: string, run: () => Promise<T>): Promise<T | undefined> => {
    let deadline = performance.now() + PATIENCE_MS;
    while (performance.now() < deadline) {
      const began = performance.now();
      const result = await attempt(kind, run);
      if (result !== undefined) return result;
      if (killedAt > began) deadline = performance.now() + PATIENCE_MS;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    seen.faults.push(`${kind}: no result in ${PATIENCE_MS / 1000} s after the last kill during an attempt`);
  };
  const repeat = async (turn: () => Promise<unknown>): Promise<void> => {
    while (!isOver) {
      await turn();
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  };
  const expect = (kind: string, actual: string | undefined, expected: string) => {
    if (actual !== undefined && actual !== expected) seen.faults.push(`${kind}: ${actual} instead of ${expected}`);
  };

  const loops: Promise<void>[] = [];
  for (const era of ERAS) {
    const caller = await open(era);
    loops.push(repeat(async () => {
      const text = await attempt(`call ${era}`, async () => toText(await caller.callTool("test_simple_text")));
      expect("call", text, "This is a simple text response for testing.");
    }));
    // Run several requests concurrently, because a request whose instance was killed waits until the instance's lease
    // expires.
    const streamer = await open(era);
    const stream = () =>
      repeat(async () => {
        const steps: number[] = [];
        const text = await attempt(
          `stream ${era}`,
          async () =>
            toText(await streamer.callTool("steps", {}, { onProgress: ({ progress }) => void steps.push(progress) })),
        );
        expect("stream", text, "done");
        if (steps.some((step, i) => i > 0 && step <= steps[i - 1])) seen.faults.push(`stream: steps ${steps}`);
      });
    loops.push(...Array.from({ length: 4 }, stream));
    const asked = await open(era);
    loops.push(repeat(async () => {
      const text = await attempt(
        `question ${era}`,
        async () => toText(await asked.callTool("test_elicitation", { message: "Who?" })),
      );
      expect("question", text?.replace(/.*"username":"(\w+)".*/, "$1"), "ada");
    }));
    const reader = await open(era);
    loops.push(repeat(async () => {
      const seed = crypto.randomUUID().slice(0, 8);
      const link = await attempt(`kept ${era}`, async () => toLink(await reader.callTool("big", { seed })));
      if (!link) return;
      // A link that a client has received must work on any instance.
      const text = await insist(`link ${era}`, () => readPages(reader, link));
      expect("link", text, seed.repeat(1000));
    }));
  }

  // Each key increments the counter once, whatever happens to the calls.
  const values = new Map<string, string>();
  for (const era of ERAS) {
    const counter = await open(era);
    loops.push(repeat(async () => {
      const key = crypto.randomUUID();
      const add = async () => toText(await counter.callTool("cluster_count", { key }));
      const value = await insist(`count ${era}`, add);
      if (value === undefined) return;
      values.set(key, value);
      expect("count again", await attempt(`count again ${era}`, add), value);
    }));
  }

  // A call has its effect at most once, and never if the client reads that the call has not run.
  const runs = new Map<string, "once" | "never" | "unknown">();
  for (const era of ERAS) {
    for (const asks of [false, true]) {
      const actor = await open(era);
      loops.push(repeat(async () => {
        const kind = `effect ${era}${asks ? " asked" : ""}`;
        const key = `${kind} ${crypto.randomUUID()}`;
        let outcome: "never" | "unknown" = "unknown";
        const text = await attempt(kind, async () => {
          try {
            return toText(await actor.callTool("effect", { key, asks }));
          } catch (error) {
            if (NOT_RUN.test(String(error))) outcome = "never";
            throw error;
          }
        });
        runs.set(key, text === undefined ? outcome : "once");
        expect(kind, text, key);
      }));
    }
  }

  const changes = new Map<string, number>();
  const subscriptions: Promise<void>[] = [];
  for (const era of ERAS) {
    const subscriber = await open(era);
    const subscribe = () => subscriber.subscribe({ resourceSubscriptions: [WATCHED] });
    let subscription = await subscribe();
    changes.set(era, 0);
    subscriptions.push((async () => {
      try {
        while (!isOver) {
          for await (const _ of subscription) changes.set(era, (changes.get(era) ?? 0) + 1);
          // A server that closes ends its subscriptions, so subscribe again.
          if (!isOver) subscription = await subscribe();
        }
      } catch (error) {
        if (!isOver) seen.faults.push(`subscription ${era}: ended: ${error}`);
      }
    })());
  }
  const toucher = await open("modern");

  return {
    seen,
    noteKill: () => void (killedAt = performance.now()),
    async checkSubscribers() {
      const before = new Map(changes);
      await insist("touch", () => toucher.callTool("cluster_touch"));
      const deadline = performance.now() + PATIENCE_MS;
      while ([...changes].some(([era, each]) => each === before.get(era))) {
        if (performance.now() > deadline) {
          const deaf = [...changes].filter(([era, each]) => each === before.get(era)).map(([era]) => era);
          return void seen.faults.push(`subscription: no change in 10 s: ${deaf}`);
        }
        await new Promise((resolve) => setTimeout(resolve, 50));
        // A change is lost if a subscriber is reconnecting, so announce another change.
        if (Math.random() < 0.1) await attempt("touch", () => toucher.callTool("cluster_touch"));
      }
    },
    async stop() {
      isOver = true;
      await Promise.all(loops);
      for (const client of clients) await client.close().catch(() => {});
      await Promise.all(subscriptions);
      const keys = (await Deno.readTextFile(effects)).trim().split("\n");
      for (const [key, outcome] of runs) {
        const times = keys.filter((each) => each === key).length;
        const isWrong = times > 1 || outcome === "once" && !times || outcome === "never" && times;
        if (isWrong) seen.faults.push(`${key}: ran ${times} times, but the client knows: ${outcome}`);
      }
      // Each key must have a different value, and no number may be missing. This shows that no call was lost or
      // doubled.
      const numbers = new Set(values.values());
      if (numbers.size !== values.size) seen.faults.push(`count: ${values.size} keys have ${numbers.size} values`);
      const highest = Math.max(0, ...[...numbers].map(Number));
      if (highest !== values.size) seen.faults.push(`count: ${values.size} keys, and the last value is ${highest}`);
    },
  };
}

function toText({ content, isError }: { readonly content: readonly object[]; readonly isError?: boolean }): string {
  const [first] = content;
  if (!first || !("text" in first)) throw new Error(`no text: ${JSON.stringify(content)}`);
  if (isError) throw new Error(String(first.text));
  return String(first.text);
}

function toLink({ content }: { readonly content: readonly object[] }): string {
  const link = content.find((block) => "uri" in block);
  if (!link || !("uri" in link)) throw new Error(`no link: ${JSON.stringify(content)}`);
  return String(link.uri);
}

/** Reads all pages of a large result, and joins their texts. */
async function readPages(client: Client, link: string): Promise<string> {
  let text = "";
  for (let uri: string | undefined = link; uri !== undefined;) {
    const { contents } = await client.readResource(uri);
    const [page, next] = contents as readonly { readonly text?: string; readonly uri: string }[];
    text += page.text ?? "";
    uri = next?.uri;
  }
  return text;
}
