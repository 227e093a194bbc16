/**
 * Runs one program for a caller: makes its calls, records them, and returns what the program has returned.
 */
import { type Context, isQuestion, ToolError, type ToolResult } from "../../library.ts";
import { INTERNAL_ERROR, isMcpError, isToolError, quote, toFailedText } from "../../core/protocol/errors.ts";
import { isObject } from "../../core/kit/json.ts";
import type { Result } from "../../core/protocol/jsonrpc.ts";
import type { Call } from "../../server/call/call.ts";
import { toCall } from "../../server/call/find_call.ts";
import type { FeatureParts } from "../../server/visibility/feature_parts.ts";
import type { ShortList } from "../search/short_list.ts";
import { CallError, MediaHandles } from "./call_results.ts";
import { type Entry, type Journal, openJournal, type Outcome, toDigest } from "./journal.ts";
import type { Sandbox, SandboxLimits, SandboxResult } from "./sandbox.ts";

export interface ProgramOptions {
  readonly list: ShortList;
  readonly limits: Omit<SandboxLimits, "now" | "seed">;
  readonly isReadOnly: boolean;
  readonly findWall: (ctx: Context) => Promise<Sandbox>;
}

export async function runProgram(code: string, ctx: Context, options: ProgramOptions): Promise<ToolResult> {
  const call = toCall(ctx, "run a program");
  // The cast is safe, because every call of a server has its parts.
  const core = call.host.parts as FeatureParts;
  const wall = await options.findWall(ctx);
  const journal = await openJournal(ctx, call, core);
  const program = new Program({ call, core, ctx, journal, options });
  try {
    return await program.run(code, wall);
  } finally {
    journal.close();
  }
}

interface Parts {
  readonly call: Call;
  readonly core: FeatureParts;
  readonly ctx: Context;
  readonly journal: Journal;
  readonly options: ProgramOptions;
}

class Program {
  readonly #parts: Parts;
  readonly #media = new MediaHandles();
  readonly #stopping = new AbortController();
  // Bound: the limit on calls.
  readonly #entries = new Map<number, Entry & { readonly isSafe: boolean }>();
  // Bound: the limit on calls.
  readonly #running = new Set<Promise<unknown>>();
  /** The outcomes of earlier runs that the program has not got yet, by their order. */
  // Bound: the limit on calls.
  readonly #replayed = new Map<number, () => void>();
  readonly #isReplayed = Promise.withResolvers<void>();
  readonly #orders: number;
  #given = 0;
  #last = 0;
  #beginning: Promise<unknown> = Promise.resolve();
  /** The outcomes reach the program one after the other, each after it was recorded. */
  #delivering: Promise<unknown> = Promise.resolve();
  /** What ends the run: a question, or an error that is not for the program. */
  #end?: { readonly error: unknown };

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#orders = [...parts.journal.known.values()].filter(({ order }) => order !== undefined).length;
    if (!this.#orders) this.#isReplayed.resolve();
  }

  async run(code: string, wall: Sandbox): Promise<ToolResult> {
    const { ctx, journal: { now, seed }, options: { limits } } = this.#parts;
    const signal = AbortSignal.any([ctx.signal, this.#stopping.signal]);
    let ended: SandboxResult | undefined;
    try {
      ended = checkResult(
        await wall.run(code, (name, input) => this.#call(name, input), { ...limits, now, seed }, signal),
      );
    } catch (error) {
      if (!this.#end) throw error;
    }
    // A question of a tool that has ignored it goes out too.
    if (this.#end || this.#parts.call.isAsking) await this.#pause();
    this.#stopping.abort();
    if (this.#end) throw this.#end.error;
    return this.#media.toContent(ended ?? { logs: [] });
  }

  /** Records everything, because the client gets a question, with whose answer the program runs again. */
  async #pause(): Promise<void> {
    while (this.#running.size) await Promise.allSettled(this.#running);
    await this.#delivering;
    await this.#parts.journal.pause(this.#entries);
  }

  #stop(error: unknown): never {
    this.#end ??= { error };
    this.#stopping.abort(error);
    throw error;
  }

  #call(name: string, input: unknown): Promise<unknown> {
    const calling = this.#make(++this.#last, name, input);
    this.#running.add(calling);
    const remove = () => void this.#running.delete(calling);
    calling.then(remove, remove);
    return calling;
  }

  async #make(number: number, name: unknown, input: unknown): Promise<unknown> {
    const { limits } = this.#parts.options;
    // The sandbox of an author may check nothing.
    const problem = number > limits.calls
      ? `a program makes at most ${limits.calls} calls`
      : typeof name !== "string" || !isObject(input)
      ? "Cannot call a tool: pass an object as its input"
      : undefined;
    const wanted = { name: String(name), input: isObject(input) ? input : {}, problem };
    // Calls begin in the order of their numbers, so that the journal has no call without the calls before it.
    const beginning = this.#beginning.then(() => this.#begin(number, wanted));
    this.#beginning = beginning.catch(() => {});
    const begun = await beginning;
    const { known } = begun;
    if (known?.order !== undefined && known.outcome && !("isLost" in known.outcome)) {
      await this.#untilTurn(known.order);
      this.#entries.set(number, { ...known, isSafe: false });
      return this.#toValue(known.outcome);
    }
    const made = await this.#try(number, wanted, begun);
    const delivering = this.#delivering.then(() => this.#deliver(number, made, begun));
    this.#delivering = delivering.catch(() => {});
    await delivering;
    return this.#toValue(made.outcome);
  }

  async #begin(number: number, { name, input }: Wanted): Promise<Begun> {
    const { journal } = this.#parts;
    const digest = await toDigest(name, input);
    const known = journal.known.get(number);
    if (this.#stopping.signal.aborted) {
      this.#entries.set(number, known ? { ...known, isSafe: false } : { digest, isOpen: true, isSafe: true });
      throw this.#stopping.signal.reason;
    }
    if (known && known.digest !== digest) {
      this.#stop(
        new ToolError(
          `Cannot continue the program: its call ${number}, of ${
            quote(name)
          }, differs from the call that an earlier run of ` +
            "this program has made; read what changes before you call what has effects, or run the program again",
        ),
      );
    }
    if (known && !known.isOpen) return { digest, known, isUnknown: !known.outcome };
    return { digest, known, isUnknown: !await this.#record(() => journal.begin(number, { digest })) };
  }

  async #deliver(number: number, { outcome, isSafe }: Made, { digest, known }: Begun): Promise<void> {
    if (known?.order !== undefined) await this.#untilTurn(known.order);
    else await this.#isReplayed.promise;
    const entry = { digest, order: known?.order ?? ++this.#given, outcome };
    this.#entries.set(number, { ...entry, isSafe });
    if (known?.order === undefined) await this.#record(() => this.#parts.journal.end(number, entry));
  }

  /** Makes a call, unless another run may have made it. A question ends the run. */
  async #try(number: number, { name, input, problem }: Wanted, { digest, isUnknown }: Begun): Promise<Made> {
    const { call, ctx, options: { list, isReadOnly } } = this.#parts;
    let isSafe = problem !== undefined;
    try {
      if (problem !== undefined) throw new ToolError(problem);
      const found = await list.find(name, ctx, isReadOnly);
      isSafe = found.seen?.isRepeatable ?? false;
      if (isUnknown && !isSafe) return { outcome: { error: toMaybe(name) }, isSafe };
      const result = await list.call(found, input, ctx, `program ${number}`);
      return { outcome: { result }, isSafe };
    } catch (error) {
      if (isQuestion(error)) {
        this.#entries.set(number, { digest, isOpen: true, isSafe: true });
        // The calls that the program has already made begin too, so that all of their questions go out together.
        await this.#beginning;
      }
      if (isQuestion(error) || call.ended) this.#stop(error);
      return { outcome: toOutcome(error, this.#parts), isSafe };
    }
  }

  /** Ends the run if the journal fails, because nothing may happen that is not recorded. */
  async #record<T>(write: () => Promise<T>): Promise<T> {
    try {
      return await write();
    } catch (error) {
      return this.#stop(error);
    }
  }

  /** Waits until the program has got the outcomes before this one, as in the earlier run. */
  async #untilTurn(order: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#replayed.set(order, resolve);
    for (let next; (next = this.#replayed.get(this.#given + 1));) {
      this.#given++;
      next();
    }
    if (this.#given >= this.#orders) this.#isReplayed.resolve();
    await promise;
  }

  #toValue(outcome: Outcome): unknown {
    if ("result" in outcome) return this.#media.toValue(outcome.result);
    throw new CallError(
      "error" in outcome ? outcome.error : "the result is lost",
      "code" in outcome ? outcome.code : undefined,
    );
  }
}

interface Wanted {
  readonly name: string;
  readonly input: object;
  /** What is wrong with the call, if anything. */
  readonly problem?: string;
}

interface Begun {
  readonly digest: string;
  /** The call in an earlier run. */
  readonly known?: Entry;
  /** Whether another run has begun the call, and its outcome is not known. */
  readonly isUnknown: boolean;
}

interface Made {
  readonly outcome: { readonly result: Result } | { readonly error: string; readonly code?: number };
  readonly isSafe: boolean;
}

function toMaybe(name: string): string {
  return `${name} may have run: an earlier run of this program has begun the call, and ended before its result was known; ` +
    "check what it has done before you call it again";
}

function toOutcome(error: unknown, { core, call }: Pick<Parts, "core" | "call">): Made["outcome"] {
  if (isToolError(error)) {
    const texts = error.content.flatMap((block) => block.type === "text" ? block.text : []);
    return { error: texts.join("\n") || error.message };
  }
  // The program gets what a client would get.
  const shown = isMcpError(error) ? error : core.report(error, call);
  const isReported = shown.code === INTERNAL_ERROR && Object(shown.data).errorId !== undefined;
  return { error: isReported ? toFailedText(shown) : shown.message, code: shown.code };
}

/** Checks what the sandbox of an author returns. */
function checkResult(ended: unknown): SandboxResult {
  const { logs, error } = Object(ended);
  const isValid = Array.isArray(logs) && logs.every((log) => typeof log === "string") &&
    (error === undefined || typeof error === "string");
  if (isValid) return Object(ended);
  throw new TypeError(
    "Cannot use the result of the sandbox: return { value?, error?, logs } with a list of texts as logs",
  );
}
