// Clients that fill their share of every account, and refill the share when they have lost part of it.
import { toCall, toGet, toListen, toSlowCall } from "../../hostile/attack.ts";
import { ask, initialize, toAnswer, toAsk, toEnd, toFollow, toMessage, toTalk } from "./requests.ts";
import { type Caller, REMOTE_RESOURCES, send, type Site } from "./sites.ts";

/** How the attackers identify themselves to the servers. */
export type Origin = "one address" | "16 networks of /56" | "one token";
export const ORIGINS: readonly Origin[] = ["one address", "16 networks of /56", "one token"];

/** Number of requests per step and round. */
const TIMES = 8;
/**
 * Number of entries of each kind that are released in each round. The released places give the other clients a chance.
 */
const RELEASED = 4;

/** Number of phases after which each attacker has taken each step alone, and has taken all steps concurrently. */
export const PHASES = 24;

type Step = () => unknown;

/** All attackers of one server. */
export class Attackers {
  /** Number of steps so far. */
  steps = 0;
  /** Errors that `fetch` threw. */
  readonly errors: string[] = [];
  readonly #site: Site;
  readonly #origin: Origin;
  readonly #streams = new Set<ReadableStream<Uint8Array>>();
  readonly #bodies = new Set<() => unknown>();
  #callers = 0;
  #tenants = 0;
  #guesses = 0;

  constructor(site: Site, origin: Origin) {
    this.#site = site;
    this.#origin = origin;
  }

  /**
   * Starts steps without waiting for their responses: all steps in the first phase, and one step in each other phase.
   */
  attack(phase: number): void {
    const steps = this.#listSteps();
    const at = phase % (steps.length + 1);
    for (const step of at === 0 ? steps : [steps[at - 1]]) {
      for (let i = 0; i < TIMES; i++, this.steps++) this.#run(step);
    }
    this.#release(RELEASED);
  }

  /** Releases all held resources. */
  stop(): void {
    this.#release(Infinity);
  }

  #listSteps(): readonly Step[] {
    const { hasTenants, hasTokens } = this.#site;
    return [
      () => this.#upload(1),
      () => this.#upload(200_000),
      () => this.#post(toListen({ resourceSubscriptions: ["test://a"] })),
      () => this.#post(toCall("wait", { text: "x".repeat(20_000) })),
      () => this.#post(toCall("narrow")),
      () => this.#post(toCall("late")),
      () => this.#post(toCall("keep")),
      () => this.#post(toCall("cached", { key: crypto.randomUUID() })),
      () => this.#post(toCall("valued", { key: crypto.randomUUID() })),
      () => this.#post(toCall("search_tools", { query: crypto.randomUUID() })),
      () => this.#fillSession(),
      () => this.#useKeys(),
      () => this.#endSession(),
      // Begins a session without continuing it.
      async () => void await initialize(this.#site, this.#next()),
      () => this.#consent(),
      () => this.#post(toFollow()),
      // Comes first, because a result is kept only if its call could wait.
      () => this.#post(toAsk("all_ask_late")),
      () => this.#post(toAsk("all_ask")),
      () => this.#useConnection(),
      () => this.#post(toListen({ resourceSubscriptions: [`remote://${this.steps % REMOTE_RESOURCES}`] })),
      ...hasTenants ? this.#listTenantSteps() : [],
      ...hasTokens ? [() => this.#post(toCall("quick"), { ...this.#next(), token: "junk" }), () => this.#guess()] : [],
    ];
  }

  #listTenantSteps(): readonly Step[] {
    return ["open", "check", "make"].map((kind) => () => {
      const path = this.#site.toPath(`${kind}${this.#tenants++}`);
      return this.#post(toCall("quick"), { ...this.#next(), path });
    });
  }

  async #run(step: Step): Promise<void> {
    try {
      await step();
    } catch (error) {
      this.errors.push(`fetch threw ${error}`);
    }
  }

  /** Sends a request, and keeps the response open if it is a stream. */
  async #post(request: Request, caller: Caller = this.#next()): Promise<void> {
    const { status, headers, body } = await send(this.#site, caller, request);
    if (!body) return;
    if (status === 200 && headers.get("content-type")?.includes("event")) this.#streams.add(body);
    else await new Response(body).text().catch(() => {});
  }

  async #upload(bytes: number): Promise<void> {
    const { request, write, abort } = toSlowCall("quick");
    this.#bodies.add(abort);
    write(bytes);
    await this.#post(request);
  }

  async #fillSession(): Promise<void> {
    const caller = this.#next();
    const session = await initialize(this.#site, caller);
    await this.#post(toTalk(session, "say", { times: 20 }), caller);
    await this.#post(toMessage(session, "notifications/cancelled", { requestId: 7 }), caller);
    await this.#post(toGet(session), caller);
  }

  async #useKeys(): Promise<void> {
    const caller = this.#next();
    const session = await initialize(this.#site, caller);
    for (let i = 0; i < 4; i++) await this.#post(toTalk(session, "once", { key: `${i}` }), caller);
  }

  async #endSession(): Promise<void> {
    const caller = this.#next();
    await this.#post(toEnd(await initialize(this.#site, caller)), caller);
  }

  async #consent(): Promise<void> {
    const caller = this.#next();
    await this.#post(toAnswer(await ask(this.#site, caller, "consent")), caller);
  }

  /** Uses a connection to another server, which belongs to the session. */
  async #useConnection(): Promise<void> {
    const caller = this.#next();
    await this.#post(toTalk(await initialize(this.#site, caller), "own_session"), caller);
  }

  /** Guesses a password. Uses only a few addresses, because a client waits only after several guesses. */
  async #guess(): Promise<void> {
    const request = toCall("quick");
    request.headers.set("authorization", `Basic ${btoa(`ada:${crypto.randomUUID()}`)}`);
    await this.#post(request, this.#toCaller(this.#guesses++ % 4));
  }

  /** Releases the oldest `count` streams and bodies. */
  #release(count: number): void {
    for (const stream of [...this.#streams].slice(0, count)) {
      this.#streams.delete(stream);
      stream.cancel().catch(() => {});
    }
    for (const abort of [...this.#bodies].slice(0, count)) {
      this.#bodies.delete(abort);
      abort();
    }
  }

  #next(): Caller {
    return this.#toCaller(this.#callers++);
  }

  #toCaller(n: number): Caller {
    const { toPath, hasTokens } = this.#site;
    const path = toPath("eve");
    const token = hasTokens ? toToken(this.#origin, n) : undefined;
    const hostname = this.#origin === "16 networks of /56" ? toAddress(n) : "198.51.100.1";
    const principal = this.#origin === "one token" && !hasTokens ? { id: "eve" } : undefined;
    return { path, token, info: { remoteAddr: { hostname }, principal } };
  }
}

/**
 * Returns the token of an attacker. The token is valid only if all attackers share one token, and it is verified
 * asynchronously on each request.
 */
function toToken(origin: Origin, n: number): string {
  return origin === "one token" ? "slow-eve" : `junk-${n}`;
}

/** Returns an address in one of 16 /56 networks, and in any /64 network within it. */
function toAddress(n: number): string {
  const network = `2001:db8:${(n % 16 + 1).toString(16)}:${(0x1200 + (n >> 4) % 256).toString(16)}`;
  return `${network}::${(n % 65_535).toString(16)}`;
}
