/**
 * Tests a task by running its handler again after a crash at every place where the task can be resumed.
 *
 * @see ext-tasks specification/draft/tasks
 * @module
 */
import type { Context } from "../core/call/context.ts";
import { checkOptions, type KnownOptions } from "../core/call/known_options.ts";
import type { Question } from "../core/call/question.ts";
import { type FakeContextOptions, makeContext, Rounds } from "./fake_context.ts";

/** The options of {@linkcode testTask}. */
export interface TestTaskOptions extends Pick<FakeContextOptions, "answers" | "services" | "principal" | "client"> {
  /**
   * Functions of services that the handler may call again, because they only read, such as `notes.find` for
   * `ctx.services.notes.find()`.
   */
  readonly mayRepeat?: readonly string[];
}

const OPTIONS: KnownOptions<keyof TestTaskOptions> = {
  names: { answers: true, services: true, principal: true, client: true, mayRepeat: "texts" },
};

/**
 * Tests that a handler with `task({ resume: true })` can run again. Simulates a crash of the process after each value
 * of `ctx.once`, after each question, and before the result is stored. After each crash, the handler runs again with
 * the recorded values and answers.
 *
 * Throws if a function of a service is called again outside of `ctx.once`, with the line of the call, or if the handler
 * returns another value than without a crash. Calls that are made while a function of `ctx.once` is running count as
 * calls of that function. Resolves with the value that the handler returns, and the number of crashes.
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
 *   extensions: [task({ resume: true })],
 *   run: async (_input, ctx) => await ctx.once("receipt", () => ctx.services.bank.pay(5)),
 * });
 *
 * const { value, crashes } = await testTask(pay, {}, { services: { bank: { pay: () => "receipt 5" } } });
 * if (value !== "receipt 5" || crashes !== 2) throw new Error("paid twice");
 * ```
 *
 * @throws {Error} if the handler repeats a call of a service, or returns another value after a crash.
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
      `Cannot resume the handler: it returned ${toText(whole.value)}, and after a crash ${toText(value)}; ` +
        "keep what differs from run to run with ctx.once(key, make)",
    );
  }
  return { value: whole.value, crashes };
}

/** The recorded values of a task, and the calls of services outside of `once`. */
class Journal {
  readonly values = new Map<string, string>();
  /** The locations in the code that called each function of a service. */
  readonly calls = new Map<string, string[]>();
}

interface Test<Input> {
  readonly tool: { readonly run: (input: Input, ctx: Context<never>) => unknown };
  readonly input: Input;
  readonly options: TestTaskOptions;
}

/** A run of the handler that ends at its last place, as it would in a crash. */
class CrashingRun extends Rounds {
  /** The number of values and questions so far. */
  places = 0;
  /** Settles when the run has reached its last place. */
  readonly crashed = Promise.withResolvers<void>();
  /** The number of functions of `once` that are running. */
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

/** Wraps a fake so that `note` is called before each call of its functions. */
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
      `Cannot resume the handler: it calls ${name} again when it runs again after a crash, ${line}; call it within ` +
        "ctx.once(key, make), or list it in mayRepeat if it only reads",
    );
  }
}

/** Returns the first line of a stack that is outside of this file. */
function toLine(stack = ""): string {
  const own = new URL(import.meta.url).pathname;
  const frame = stack.split("\n").slice(1).find((line) => line.includes("/") && !line.includes(own));
  return frame?.trim() ?? "at an unknown line";
}

function toText(value: unknown): string {
  return JSON.stringify(value) ?? "nothing";
}
