// Clients that use a server before and during the attack, and check that nothing has changed for them.
import { toCall, toGet, toListen } from "../../hostile/attack.ts";
import { ask, type Asked, initialize, toAnswer, toRead, toTalk } from "./requests.ts";
import { type Caller, send, type Site } from "./sites.ts";

/**
 * Size in bytes of the part of a body that is queued. A slow body counts 192 KiB more, and a client can use 256 KiB of
 * the reserve.
 */
const LARGE_BODY = 60_000;
/** Time in milliseconds after which a response counts as lost. It is long, because machines may be slow. */
const LATE_MS = 60_000;

/** What the clients held before the attack. */
interface Held {
  readonly session: string;
  /** The id of the first event that is stored for the session. */
  readonly event: string;
  /** The URI of the stored large result. */
  readonly kept: string;
  /** The response that contains the id of a value of a service. */
  readonly value: string;
  /** The id of the connection to another server that belongs to the session. */
  readonly connection: string;
  /** The questions of the server and of another server, which are answered after the attack. */
  readonly asked: readonly Asked[];
}

/** The other clients of one server. */
export class Others {
  /** The number of checks so far. */
  checks = 0;
  /** The losses so far. */
  readonly lost: string[] = [];
  slowestCallMs = 0;
  readonly #site: Site;
  readonly #ada: Caller;
  readonly #bob: Caller;
  readonly #cyd: Caller;
  readonly #dan: Caller;
  #held: Held = { session: "", event: "", kept: "", value: "", connection: "", asked: [] };
  #notifications = 0;
  #isSubscribed = true;
  #listening?: Promise<void>;

  constructor(site: Site) {
    this.#site = site;
    [this.#ada, this.#bob, this.#cyd, this.#dan] = ["ada", "bob", "cyd", "dan"].map((name, i) =>
      toCaller(site, name, i)
    );
  }

  /** Opens a subscription, a session with events and a connection, stores a large result, and lets tools ask. */
  async start(): Promise<void> {
    const subscription = await send(this.#site, this.#ada, toListen({ resourceSubscriptions: ["test://a"] }));
    this.#listening = this.#listen(subscription.body);
    const session = await initialize(this.#site, this.#bob);
    const said = await this.#read(this.#bob, toTalk(session, "say", { times: 5 }));
    const [event = ""] = /(?<=^id: ).+$/m.exec(said) ?? [];
    const [kept = ""] = /result:\/\/keep\/[^"\\ :]+/.exec(await this.#read(this.#cyd, toCall("keep"))) ?? [];
    const value = await this.#readValue();
    const connection = await this.#readConnection(session);
    const asked = [await ask(this.#site, this.#cyd, "consent"), await ask(this.#site, this.#cyd, "all_ask")];
    this.#held = { session, event, kept, value, connection, asked };
  }

  /** Checks that the clients still have everything that `start` opened and stored. */
  async check(): Promise<void> {
    const { session, event, kept, value, connection } = this.#held;
    this.checks++;
    for (const caller of [this.#ada, this.#dan]) await this.#checkCall(caller);
    await this.#expect("the call of a handler that few may run", this.#read(this.#dan, toCall("narrow")), /"narrow"/);
    await this.#expect("the call with a large body", this.#upload(this.#dan), /"quick"/);
    await this.#expect("the session", this.#read(this.#bob, toTalk(session, "quick")), /"quick"/);
    await this.#expect("the replay", this.#readUntil(this.#bob, toGet(session, event), "said"), /said/);
    await this.#expect("the kept result", this.#read(this.#cyd, toRead(kept)), /xxxx/);
    await this.#expect("the value of a service", this.#readValue(), new RegExp(value));
    await this.#expect("the connection to another server", this.#readConnection(session), new RegExp(connection));
    await this.#expect("the subscription", this.#untilNotified(), /notified/);
  }

  /**
   * Answers the questions, and a new one. Must be called after the last check, because the attack delays the encryption
   * of each question. The questions of the attackers still wait.
   */
  async finish(): Promise<void> {
    await this.#expect("a new question of another server", this.#answer(this.#dan), /"accept"/);
    for (const asked of this.#held.asked) {
      await this.#expect(`the question of ${asked.name}`, this.#read(this.#cyd, toAnswer(asked)), /"accept"/);
    }
  }

  /** Waits until the server has ended the subscription. */
  async end(): Promise<void> {
    await this.#listening;
  }

  async #checkCall(caller: Caller): Promise<void> {
    const since = performance.now();
    await this.#expect(`a call at ${caller.path}`, this.#read(caller, toCall("quick")), /"quick"/);
    this.slowestCallMs = Math.max(this.slowestCallMs, performance.now() - since);
  }

  async #expect(what: string, answer: Promise<string>, wanted: RegExp): Promise<void> {
    let timer;
    const late = new Promise<string>((resolve) => timer = setTimeout(resolve, LATE_MS, "no answer"));
    const text = await Promise.race([answer, late]).catch(String);
    clearTimeout(timer);
    if (!wanted.test(text)) this.lost.push(`${what}: ${text.slice(0, 300)}`);
  }

  async #read(caller: Caller, request: Request): Promise<string> {
    return await (await send(this.#site, caller, request)).text();
  }

  /** Returns the id of the client's value. */
  async #readValue(): Promise<string> {
    const text = await this.#read(this.#cyd, toCall("valued", { key: "cyd" }));
    return /[\da-f]{8}-[-\da-f]{27}/.exec(text)?.[0] ?? text;
  }

  /** Returns the id of the connection to another server that belongs to the session. */
  async #readConnection(session: string): Promise<string> {
    const text = await this.#read(this.#bob, toTalk(session, "own_session"));
    return /"text":"([-\w]{99,})"/.exec(text)?.[1] ?? text;
  }

  /** Answers a new question of another server. */
  async #answer(caller: Caller): Promise<string> {
    return await this.#read(caller, toAnswer(await ask(this.#site, caller, "all_ask")));
  }

  async #readUntil(caller: Caller, request: Request, end: string): Promise<string> {
    const { body } = await send(this.#site, caller, request);
    const decoder = new TextDecoder();
    let text = "";
    // Leaving the loop cancels the stream.
    for await (const piece of body ?? []) {
      text += decoder.decode(piece, { stream: true });
      if (text.includes(end)) break;
    }
    return text;
  }

  /** Makes a call whose body arrives in two parts, and returns its result. */
  async #upload(caller: Caller): Promise<string> {
    const { request, write, finish } = toLargeCall();
    const answer = this.#read(caller, request);
    await write();
    await new Promise((resolve) => setTimeout(resolve));
    await finish();
    return await answer;
  }

  async #listen(body: ReadableStream<Uint8Array> | null): Promise<void> {
    try {
      for await (const piece of body ?? []) {
        if (new TextDecoder().decode(piece).includes("resources/updated")) this.#notifications++;
      }
    } catch {
      // Closing the server may end the stream with an error.
    }
    this.#isSubscribed = false;
  }

  async #untilNotified(): Promise<string> {
    const before = this.#notifications;
    this.#site.server.resourceUpdated("test://a");
    const end = performance.now() + LATE_MS;
    while (this.#notifications === before && this.#isSubscribed && performance.now() < end) {
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    if (!this.#isSubscribed) return "it has ended";
    return this.#notifications > before ? "notified" : "it got no notification";
  }
}

function toCaller({ toPath, hasTokens }: Site, name: string, index: number): Caller {
  // The last client's token is verified asynchronously.
  const token = hasTokens ? `${name === "dan" ? "slow" : "known"}-${name}` : undefined;
  return { path: toPath(name), token, info: { remoteAddr: { hostname: `192.0.2.${77 + index}` } } };
}

/** Creates a call with a large body. `finish` sends the second half of the body. */
function toLargeCall() {
  const small = toCall("quick", { text: "x".repeat(LARGE_BODY) });
  const { readable, writable } = new TransformStream<Uint8Array>();
  const writer = writable.getWriter();
  const bytes = small.arrayBuffer().then((buffer) => new Uint8Array(buffer));
  const init: RequestInit & { readonly duplex: "half" } = {
    method: "POST",
    headers: small.headers,
    body: readable,
    duplex: "half",
  };
  return {
    request: new Request(small.url, init),
    // A write fails if the server refuses the body and stops reading.
    write: async () => await writer.write((await bytes).subarray(0, LARGE_BODY / 2)).catch(() => {}),
    finish: async () => {
      await writer.write((await bytes).subarray(LARGE_BODY / 2)).catch(() => {});
      await writer.close().catch(() => {});
    },
  };
}
