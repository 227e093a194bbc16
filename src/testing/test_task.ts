/**
 * Tests that a task can resume, by simulating a crash after each step of the handler.
 *
 * @see ext-tasks specification/draft/tasks
 */
import type { Context } from "../server/call/context.ts";
import { checkOptions, type KnownOptions } from "../core/known_options.ts";
import type { Question } from "../server/call/question.ts";
import { type FakeContextOptions, makeContext, Rounds } from "./fake_context.ts";

/** The options of {@linkcode testTask}. */
export interface TestTaskOptions extends Pick<FakeContextOptions, "answers" | "services" | "principal" | "client"> {
  /**
   * Service functions that the handler may call again after a crash, because they only read, such as `notes.find` for
   * `ctx.services.notes.find()`.
   */
  readonly mayRepeat?: readonly string[];
}

const OPTIONS: KnownOptions<keyof TestTaskOptions> = {
  names: { answers: true, services: true, principal: true, client: true, mayRepeat: "texts" },
};

/**
 * Tests that a handler with `task({ resume: true })` can run again after a crash. Simulates a crash of the process
 * after each `ctx.once` value, after each question, and before the result is stored. After each crash, runs the handler
 * again with the recorded values and answers.
 *
 * Throws if the handler calls a service function again outside of `ctx.once`; the error contains the line of the call.
 * Also throws if the value that the handler returns after a crash differs from the value without a crash. All calls
 * that happen while a `make` function of `ctx.once` is running count as inside of `ctx.once`. Resolves with the value
 * that the handler returns, and the number of simulated crashes.
 *
 * ```ts
 * import { tool } from "@x/mcp";
 * import { task } from "@x/mcp/tasks";
 * import { testTask } from "@x/mcp/testing";
 * import { service } from "@x/mcp";
 *
 * const bank = service("bank", () => ({ pay: (euros: number) => `receipt ${euros}` }));
 * const pay = tool({
 *   name: "pay",
 *   services: { bank },
 *   use: [task({ resume: true })],
 *   run: async (_input, ctx) => await ctx.once("receipt", () => ctx.services.bank.pay(5)),
 * });
 *
 * const { value, crashes } = await testTask(pay, {}, { services: { bank: { pay: () => "receipt 5" } } });
 * if (value !== "receipt 5" || crashes !== 2) throw new Error("paid twice");
 * ```
 *
 * @throws {Error} if the handler repeats a call to a service, or returns a different value after a crash.
 */
export async function testTask<Input>(
  tool: { readonly run: (input: Input, ctx: Context<never>) => unknown },
  input: Input,
  options: TestTaskOptions = {},
): Promise<{ readonly value: unknown; readonly crashes: number }> {
  checkOptions("test a task", options, OPTIONS);
  const whole = await runTo(Infinity, new Journal(), { tool, input, options });
  let crashes = 0;
  for (let place = 1; place <= whole.places + 1; place++) {
    const journal = new Journal();
    await runTo(place, journal, { tool, input, options });
    crashes++;
    const before = new Map(journal.calls);
    journal.calls.clear();
    const { value } = await runTo(Infinity, journal, { tool, input, options });
    refuseRepeated(before, journal.calls);
    if (toText(value) === toText(whole.value)) continue;
    throw new Error(
      `Cannot resume the handler: the handler returned ${toText(whole.value)}, but ${
        toText(value)
      } when it resumed after a crash; ` +
        "create values that differ from run to run with ctx.once(key, make)",
    );
  }
  return { value: whole.value, crashes };
}

/** The recorded `once` values of a task, and the calls to services outside of `once`. */
class Journal {
  readonly values = new Map<string, string>();
  /** The code locations of the calls to each service function, by function name. */
  readonly calls = new Map<string, string[]>();
}

interface Test<Input> {
  readonly tool: { readonly run: (input: Input, ctx: Context<never>) => unknown };
  readonly input: Input;
  readonly options: TestTaskOptions;
}

/** A run of the handler that simulates a crash by stopping at a given place: a `once` value or a question. */
class CrashingRun extends Rounds {
  /** The number of places that the run has reached. */
  places = 0;
  /** Resolves when the run has reached the place of its crash. */
  readonly crashed = Promise.withResolvers<void>();
  /** The number of `make` functions of `once` that are running. */
  making = 0;
  readonly #last: number;
  readonly #journal: Journal;

  constructor(last: number, journal: Journal) {
    super();
    this.#last = last;
    this.#journal = journal;
  }

  override async once(key: string, make: () => unknown): Promise<unknown> {
    const known = this.#journal.values.get(key);
    if (known !== undefined) return JSON.parse(known);
    this.making++;
    const json = await (async () => JSON.stringify(await make()) ?? "null")().finally(() => this.making--);
    this.#journal.values.set(key, json);
    await this.#pass();
    return JSON.parse(json);
  }

  override async ask(_key: string, _question: Question): Promise<void> {
    await this.#pass();
  }

  async #pass(): Promise<void> {
    if (++this.places < this.#last) return;
    this.crashed.resolve();
    await new Promise(() => {});
  }
}

async function runTo<Input>(last: number, journal: Journal, { tool, input, options }: Test<Input>) {
  const { mayRepeat = [], services = {}, ...rest } = options;
  const run = new CrashingRun(last, journal);
  const note = (name: string) => {
    if (run.making || mayRepeat.includes(name)) return;
    journal.calls.set(name, [...journal.calls.get(name) ?? [], toLine(new Error().stack)]);
  };
  const watched = Object.fromEntries(Object.entries(services).map(([name, fake]) => [name, watch(fake, name, note)]));
  const ctx = makeContext({ ...rest, services: watched }, run);
  const value = (async () => await tool.run(input, ctx))();
  return { value: await Promise.race([value, run.crashed.promise]), places: run.places };
}

/** Wraps a fake so that `note` is called before each call to one of its functions. */
function watch(fake: unknown, name: string, note: (name: string) => void): unknown {
  if (typeof fake === "function") {
    return new Proxy(fake, {
      apply(target, self, args) {
        note(name);
        return Reflect.apply(target, self, args);
      },
    });
  }
  if (typeof fake !== "object" || fake === null) return fake;
  return new Proxy(fake, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key);
      if (typeof value !== "function") return value;
      return watch(value.bind(target), `${name}.${String(key)}`, note);
    },
  });
}

function refuseRepeated(before: Journal["calls"], after: Journal["calls"]): void {
  for (const [name, lines] of after) {
    const [line] = lines;
    if (!before.has(name)) continue;
    throw new Error(
      `Cannot resume the handler: after a crash, the handler calls ${name} again, ${line}; call ${name} within ` +
        "ctx.once(key, make), or list the function in mayRepeat if it only reads",
    );
  }
}

/** Returns the first stack line outside of this file. */
function toLine(stack = ""): string {
  const own = new URL(import.meta.url).pathname;
  const frame = stack.split("\n").slice(1).find((line) => line.includes("/") && !line.includes(own));
  return frame?.trim() ?? "at an unknown line";
}

function toText(value: unknown): string {
  return JSON.stringify(value) ?? "nothing";
}
