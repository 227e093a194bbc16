/**
 * Runs a handler again after each question (an elicitation, sampling or roots request), like a server does for clients
 * without a session.
 *
 * @see specification/2026-07-28/basic/patterns/mrtr
 */
import { INTERNAL_ERROR, McpError } from "../core/protocol/errors.ts";
import type { Context } from "../server/call/context.ts";
import type { Question } from "../server/call/question.ts";
import { IgnoredQuestions } from "../server/call/ignored_questions.ts";
import { RerunWatch } from "../server/call/rerun_watch.ts";
import type { Call } from "../server/call/call.ts";
import { type FakeContext, type FakeContextOptions, makeContext, Rounds } from "./fake_context.ts";

/** A handler that {@linkcode replay} can run: a tool, a prompt or a resource. */
export type Replayable<Input> =
  | { readonly run: (input: Input, ctx: Context<never>) => unknown }
  | { readonly read: (input: Input, ctx: Context<never>) => unknown };

/** The outcome of {@linkcode replay}. */
export interface Replayed {
  /** Return value of the last run. */
  readonly value: unknown;
  /** The context of each run, in order. */
  readonly runs: readonly FakeContext[];
}

const MAX_RUNS = 64;

/** Connects runs in which each question ends the run, and is answered in the next run. */
class ReplayRounds extends Rounds {
  readonly repeated: string[] = [];
  override readonly reruns: RerunWatch = new RerunWatch(STILL, ({ key, work }) => {
    this.repeated.push(`before the question ${JSON.stringify(key)}, the handler ${work.join(", ")}`);
  });
  readonly #forgotten: string[] = [];
  readonly #ignored = new IgnoredQuestions<Call>((text) => this.#forgotten.push(text));
  #call?: Call;
  readonly #asked = new Map<string, string>();
  readonly #open = new Map<string, string>();

  override begin(call: Call): void {
    this.#call = call;
  }

  /** Throws if the handler did not await a question in the run that has just ended. */
  async check(): Promise<void> {
    if (this.#call) this.#ignored.report(await this.#call.questions?.listIgnored() ?? [], this.#call);
    if (this.#forgotten.length) throw new Error(this.#forgotten.join("\n"));
  }

  override ask(key: string, { method, params }: Question): void {
    const question = JSON.stringify([method, params]);
    const before = this.#asked.get(key);
    if (before === question) return;
    if (before !== undefined) {
      this.repeated.push(`the handler asks another question under the key ${JSON.stringify(key)}`);
    }
    this.#open.set(key, question);
    throw new McpError(
      INTERNAL_ERROR,
      "The question is sent to the client; the handler runs again when the client has answered",
    );
  }

  /** Marks the questions of the last run as answered. Returns whether the handler must run again. */
  next(): boolean {
    const isOpen = this.#open.size > 0;
    for (const [key, question] of this.#open) this.#asked.set(key, question);
    this.#open.clear();
    return isOpen;
  }
}

// A clock that does not advance, so that tests do not fail on slow machines.
const STILL = { now: () => 0 };

/**
 * Runs a handler up to its first question, and after each answer runs the handler again from the beginning. A server
 * runs handlers in this way for clients without a session.
 *
 * Throws if the handler repeats work that clients notice: log messages, progress, announced changes, or a question that
 * differs from run to run. To find other repeated work, count the calls to your fakes.
 *
 * ```ts
 * import { tool } from "@x/mcp";
 * import { replay } from "@x/mcp/testing";
 * import { z } from "zod";
 *
 * const removed: string[] = [];
 * const remove = tool({
 *   name: "remove",
 *   input: z.object({ path: z.string() }),
 *   run: async ({ path }, ctx) => {
 *     const sure = await ctx.elicit("sure", { message: `Remove ${path}?`, schema: z.object({ yes: z.boolean() }) });
 *     if (sure.content?.yes) removed.push(path);
 *   },
 * });
 *
 * const { runs } = await replay(remove, { path: "a.txt" }, {
 *   answers: { sure: { action: "accept", content: { yes: true } } },
 * });
 * if (runs.length !== 2 || removed.length !== 1) throw new Error("removed twice");
 * ```
 *
 * @throws {Error} if the handler repeats work, does not await a question, or still asks new questions after 64 runs.
 */
export async function replay<Input>(
  handler: Replayable<Input>,
  input: Input,
  options: FakeContextOptions = {},
): Promise<Replayed> {
  const run = "run" in handler ? handler.run : handler.read;
  const rounds = new ReplayRounds();
  const runs: FakeContext[] = [];
  while (runs.length < MAX_RUNS) {
    const ctx = makeContext(options, rounds);
    runs.push(ctx);
    const [outcome] = await Promise.allSettled([(async () => await run(input, ctx))()]);
    if (outcome.status === "fulfilled") await rounds.check();
    if (rounds.next()) continue;
    if (rounds.repeated.length) throw new Error(toReport(rounds.repeated));
    if (outcome.status === "rejected") throw outcome.reason;
    return { value: outcome.value, runs };
  }
  throw new Error(
    `Cannot replay the handler: the handler still asks new questions after ${MAX_RUNS} runs; use the same key for a question in every run`,
  );
}

function toReport(repeated: readonly string[]): string {
  const lines = repeated.map((each) => `\n- ${each}`).join("");
  return `Cannot replay the handler: the handler repeats work after an answer:${lines}\n` +
    "Do this work after the last question, or in ctx.once(key, make).";
}
