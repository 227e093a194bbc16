/**
 * The inner calls of one call: the calls that its handler makes with `ctx.callTool` and similar methods. Loaded when a
 * handler first makes an inner call.
 */
import { sha256 } from "../../core/kit/sha256.ts";
import type { Params } from "../../core/protocol/jsonrpc.ts";
import { CancelError } from "./cancel_error.ts";
import { JoinedProgress } from "./joined_progress.ts";
import { MAX_QUEUED_LOGS } from "./log.ts";
import { passesOn } from "./relays.ts";

/** The methods of the context that make inner calls, and the check of the handlers that an earlier run has called. */
export type InnerMethod = "callTool" | "getPrompt" | "readResource" | "list" | "complete" | "repeatReads" | "shareList";

export interface InnerUse {
  readonly name: InnerMethod;
  /** The arguments of the method. The author's code may pass any value. */
  readonly given: readonly unknown[];
}

/** All inner calls of one request: the inner calls of its handler, their inner calls, and so on. */
export interface InnerTree {
  readonly root: Pick<Caller, "ended" | "reason">;
  made: number;
  /** The inner calls that have not ended. */
  readonly running: Set<Caller & { cancel(reason: CancelError): void }>;
}

interface Caller {
  readonly params: Params;
  readonly host: {
    readonly outer?: Caller;
  };
  readonly ended: boolean;
  readonly reason?: CancelError;
  /** The last progress of the handler itself. */
  readonly reported: number;
  notify: Notify;
  inner?: InnerCalls;
}

/** Returns a promise if the client reads too slowly. */
type Notify = (method: string, params: Params) => Promise<void> | undefined;

/** The inner calls of one handler. */
export class InnerCalls {
  readonly tree: InnerTree;
  readonly #call: Caller;
  readonly #notify: Notify;
  readonly #progress: JoinedProgress;
  /** Number of equal inner calls so far, by their texts. */
  readonly #counts = new Map<string, number>();
  /** The digests that are being computed. Created on first use, because few inner calls ask questions. */
  #digests?: Set<Promise<string>>;

  constructor(call: Caller) {
    const { host: { outer }, reported } = call;
    this.#call = call;
    // What is passed on for the client has inner calls of its own, and can outlive the call that passes it on.
    const isInner = outer && !passesOn(outer);
    this.tree = isInner ? openInner(outer).tree : { root: call, made: 0, running: new Set() };
    this.#progress = new JoinedProgress(reported);
    const notify: Notify = call.notify.bind(call);
    this.#notify = outer ? notify : limitLogs(notify);
    // From now on, the progress of the handler itself is added to the progress of its inner calls.
    call.notify = this.toNotify(call);
  }

  /** Returns the function that sends notifications with the token of `call`: its own, or those of one of its inner calls. */
  toNotify({ params: { _meta } }: Caller, isInner = false): Notify {
    const { progressToken }: Params = Object(_meta);
    let place = isInner ? undefined : 0;
    return (method, params) => {
      if (method !== "notifications/progress") return this.#notify(method, params);
      // The cast is safe, because `ctx.progress` has checked these members.
      const sum = this.#progress.add(place ??= this.#progress.open(), params as Params & { progress: number });
      return sum && this.#notify(method, { ...sum, progressToken });
    };
  }

  cancel(reason: CancelError): void {
    for (const call of this.tree.running) if (call.host.outer === this.#call) call.cancel(reason);
  }

  /** Cancels the inner calls that have not ended, if the outermost call has ended, because nothing limits them then. */
  end(): void {
    const { root: { ended, reason }, running } = this.tree;
    if (!ended) return;
    const message = "Cannot continue the inner call: the outer call already has its response; await the inner call";
    for (const call of running) call.cancel(reason ?? new CancelError("ended", message));
  }

  /** For a subscription, which may last for days, and makes inner calls for each notification. */
  forget(): void {
    this.tree.made = 0;
    this.#counts.clear();
  }

  /**
   * Counts an inner call. Returns 1 for the first inner call with this text, 2 for the second, and so on. The number does
   * not depend on the order of inner calls with different texts, because another run of the handler may make them in
   * another order.
   */
  count(text: string): number {
    // Keep only a part of a long text, because the texts stay in memory until the handler ends. If two texts have the same
    // part, another run may ask their questions again.
    const key = text.length > 2 * MAX_END ? `${text.length} ${text.slice(0, MAX_END)}${text.slice(-MAX_END)}` : text;
    const count = (this.#counts.get(key) ?? 0) + 1;
    this.#counts.set(key, count);
    return count;
  }

  /**
   * Returns the digest of a text. Resolves together with the digests of other inner calls that were requested at the same
   * time, so that inner calls which ask questions at the same time send these questions together.
   */
  async digest(text: string): Promise<string> {
    const digests = this.#digests ??= new Set();
    const computing = sha256(text);
    digests.add(computing);
    try {
      return (await computing).slice(0, DIGEST_LENGTH);
    } finally {
      digests.delete(computing);
      while (digests.size) await Promise.all(digests);
    }
  }
}

/** Maximum length of the beginning and of the end of a text by which inner calls are counted, in characters. */
const MAX_END = 2048;
/** Number of characters of a digest in a key: 132 bits. The client sends each key back. */
const DIGEST_LENGTH = 22;

export function openInner(call: Caller): InnerCalls {
  return call.inner ??= new InnerCalls(call);
}

/**
 * Returns a function that drops log messages above a limit while the client reads too slowly. Each inner call limits only
 * its own messages, and together they could send more than the stream holds.
 */
function limitLogs(notify: Notify): Notify {
  let room: Promise<void> | undefined;
  let queued = 0;
  return (method, params) => {
    if (room && method === "notifications/message" && queued++ >= MAX_QUEUED_LOGS) return room;
    const more = notify(method, params);
    if (!more || room) return more;
    queued = 0;
    room = more;
    return more.finally(() => void (room = undefined));
  };
}
