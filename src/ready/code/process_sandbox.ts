/**
 * Runs each program in QuickJS, in a child process of its own without permissions. Loaded when a program first runs.
 */
import { deadline } from "../../core/kit/deadline.ts";
import { shorten } from "../../core/kit/shorten.ts";
import { startResponseTimer } from "../../core/kit/timer.ts";
import { parseJson } from "../../core/kit/json.ts";
import { LineSplitter } from "../../core/line_splitter.ts";
import { deno, findProcess, node, readVariable, startBackgroundTimer } from "../../core/runtime.ts";
import { type Child, startChild } from "../../client/child_process.ts";
import type { Account } from "../../server/capacity/account.ts";
import { Slots } from "../../server/capacity/slots.ts";
import { type FromChild, MAX_INPUT, MAX_LINE, QUICKJS, readFromChild, type ToChild } from "./child_messages.ts";
import { describeError, toTooSlow } from "./program_error.ts";
import type { Sandbox, SandboxCall, SandboxLimits, SandboxResult } from "./sandbox.ts";

/** Milliseconds in which a process must be ready. */
const START_MS = 15_000;
/** Milliseconds after which a process that waits for its first program ends. */
const IDLE_MS = 60_000;
/** Milliseconds that a process may take to end after SIGKILL. */
const END_MS = 2000;

/**
 * A process ends after this many times the limit, because a single function of the interpreter, such as a search in a long
 * text, ignores the limit. A busy machine needs some time more than the CPU time of a program.
 */
const NATIVE = 3;

/** The processes of a server. */
export class ProcessSandbox {
  /** The number of programs that can compute at the same time. The server itself needs a core. */
  readonly #places: number = Math.max(1, (globalThis.navigator?.hardwareConcurrency || 2) - 1);
  /** The processes that have not ended. */
  // Bound: the programs that run or wait.
  readonly #running = new Set<ProgramProcess>();
  #spare?: { readonly wall: ProgramProcess; readonly stopTimer: () => void };
  #slots?: Slots;
  #isClosed = false;

  /** Returns the sandbox for the programs of one client. */
  by(account: Account): Sandbox {
    return { run: (code, call, limits, signal) => this.#run({ code, call, limits, signal, account }) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    this.#spare?.stopTimer();
    await Promise.all([...this.#running].map((wall) => this.#end(wall)));
  }

  async #run({ code, call, limits, signal, account }: Job): Promise<SandboxResult> {
    const slots = this.#slots ??= toSlots(account, this.#places);
    const answers = new Answers(call);
    let wall: ProgramProcess | undefined;
    let next = toLine({ kind: "run", code, ...limits });
    try {
      while (true) {
        const give = await takePlace(slots, account, signal);
        let message;
        try {
          wall ??= this.#take();
          message = await wall.compute(next, { answers, limits, signal });
        } finally {
          give();
        }
        const { logs } = wall;
        if (message.kind === "value") return { logs, ...toResult(message.text, limits) };
        if (message.kind === "error") {
          return { logs, error: shorten(describeError(message.text, code, limits), MAX_MESSAGE) };
        }
        if (message.kind === "slow") return { logs, error: toTooSlow(limits.cpuMs) };
        next = await deadline(answers.next(), { signal });
      }
    } finally {
      if (wall) {
        void this.#end(wall);
        this.#prepare();
      }
    }
  }

  /** Returns a process that no program has used, because a program could have changed it. */
  #take(): ProgramProcess {
    if (this.#isClosed) throw new Error("Cannot run a program: the server is closing");
    const spare = this.#spare;
    this.#spare = undefined;
    spare?.stopTimer();
    return spare?.wall.isAlive ? spare.wall : this.#start();
  }

  #start(): ProgramProcess {
    const wall = new ProgramProcess();
    this.#running.add(wall);
    return wall;
  }

  async #end(wall: ProgramProcess): Promise<void> {
    await wall.end();
    this.#running.delete(wall);
  }

  /** Starts a process for the next program, because models run several programs one after the other. */
  #prepare(): void {
    if (this.#isClosed || this.#spare) return;
    const wall = this.#start();
    wall.abandon();
    const stopTimer = startBackgroundTimer(() => {
      if (this.#spare?.wall === wall) this.#spare = undefined;
      void this.#end(wall);
    }, IDLE_MS);
    this.#spare = { wall, stopTimer };
  }
}

interface Job {
  readonly code: string;
  readonly call: SandboxCall;
  readonly limits: SandboxLimits;
  readonly signal: AbortSignal;
  readonly account: Account;
}

function toSlots(account: Account, total: number): Slots {
  const share = total < 4 ? total : Math.ceil(total * 0.75);
  const slots = account.pot({ name: "code.running", total, share });
  return new Slots({ slots, waiting: slots });
}

/** Waits for the right to compute. Returns a function that gives it to the next program. */
async function takePlace(slots: Slots, account: Account, signal: AbortSignal): Promise<() => void> {
  if (slots.isFree(account)) slots.acquire(account);
  else {
    const waiting = slots.wait(account, false);
    try {
      await deadline(waiting, { signal });
    } catch (error) {
      waiting?.then(() => slots.give(account));
      throw error;
    }
  }
  return () => slots.give(account);
}

/** Checks the length of a value again, because a program may have changed the code that checks it first. */
function toResult(text: string, { outputCharacters }: SandboxLimits): Omit<SandboxResult, "logs"> {
  if (text.length > outputCharacters) {
    return { error: `the returned value has more than ${outputCharacters} characters` };
  }
  return text ? { value: JSON.parse(text) } : {};
}

function toLine(message: ToChild): Uint8Array {
  return new TextEncoder().encode(`${JSON.stringify(message)}\n`);
}

/** Characters of a log for the words that it is cut. */
const CUT = 100;

/** Maximum length of the message of an error in characters. */
const MAX_MESSAGE = 10_000;

/** The answers to the calls of one program, in the order in which the calls settled. */
class Answers {
  readonly #call: SandboxCall;
  // Bound: the limit on calls.
  readonly #ready: Uint8Array[] = [];
  #wake = Promise.withResolvers<void>();
  count = 0;

  constructor(call: SandboxCall) {
    this.#call = call;
  }

  begin({ id, name, input }: FromChild & { readonly kind: "call" }): void {
    this.count++;
    const add = (text: string, isError: boolean) => {
      const line = toLine({ kind: "answer", id, isError, text });
      if (line.length > MAX_LINE) {
        throw new RangeError(`Cannot return the result of ${name} to the program: it is too long`);
      }
      this.#ready.push(line);
      this.#wake.resolve();
    };
    const refuse = (error: unknown) => {
      const { message, code } = Object(error);
      add(JSON.stringify({ message: shorten(`${message}`, MAX_MESSAGE), code }), true);
    };
    // A program that has taken over its process could send anything.
    const given = input.length <= MAX_INPUT ? parseJson(input) : undefined;
    this.#call(name, given).then((value) => add(JSON.stringify(value) ?? "", false)).catch(refuse);
  }

  async next(): Promise<Uint8Array> {
    while (true) {
      const first = this.#ready.shift();
      if (first) return first;
      await this.#wake.promise;
      this.#wake = Promise.withResolvers();
    }
  }
}

type Message = Exclude<FromChild, { readonly kind: "log" | "call" | "ready" }> | { readonly kind: "slow" };

interface Computing {
  readonly answers: Answers;
  readonly limits: SandboxLimits;
  readonly signal: AbortSignal;
}

/** The end of a program that sends too much, such as a call of a tool with a very long name. */
const TOO_LONG: FromChild = {
  kind: "error",
  text: JSON.stringify({ message: `a call or an output has more than ${MAX_LINE} bytes` }),
};

/** A process for one program. */
class ProgramProcess {
  // Bound: the limit on output.
  readonly logs: string[] = [];
  isAlive = true;
  readonly #child: Child = startChild(toTarget(), { readsErrors: true });
  readonly #reader: ReadableStreamDefaultReader<Uint8Array> = this.#child.output.getReader();
  readonly #lines = new LineSplitter(MAX_LINE);
  readonly #errors: Promise<string> = readStart(this.#child.errors);
  // Bound: what one read returns.
  #messages: FromChild[] = [];
  #isReady = false;
  #length = 0;

  constructor() {
    this.#child.exited.then(() => void (this.isAlive = false));
  }

  abandon(): void {
    this.#child.abandon();
  }

  /** Sends a message, and resolves when the program waits or has ended. Ends a program that computes for too long. */
  async compute(line: Uint8Array, { answers, limits, signal }: Computing): Promise<Message> {
    const stop = () => this.#child.kill();
    signal.addEventListener("abort", stop);
    let isSlow = false;
    let stopTimer = () => {};
    try {
      signal.throwIfAborted();
      if (!this.#isReady) await this.#start(signal);
      stopTimer = startResponseTimer(NATIVE * limits.cpuMs, () => {
        isSlow = true;
        stop();
      });
      // If the process has ended, reading from it says so.
      await this.#child.write(line).catch(() => {});
      while (true) {
        const next = await this.#next();
        if (next?.kind === "log") this.#log(next.text, limits);
        else if (next?.kind === "call" && answers.count < limits.calls) answers.begin(next);
        else if (next?.kind === "waiting" || next?.kind === "value" || next?.kind === "error") return next;
        else if (isSlow) return { kind: "slow" };
        else {
          signal.throwIfAborted();
          throw new Error(`Cannot run a program: its process ended unexpectedly: ${await this.#toEnd()}`);
        }
      }
    } finally {
      stopTimer();
      signal.removeEventListener("abort", stop);
    }
  }

  /** Ignores what exceeds the limit, because a program may have changed the code that cuts its output. */
  #log(text: string, { outputCharacters }: SandboxLimits): void {
    this.#length += text.length + 1;
    if (this.#length <= outputCharacters + CUT) this.logs.push(text);
  }

  async end(): Promise<void> {
    this.isAlive = false;
    this.#child.kill();
    await deadline(this.#child.exited, { ms: END_MS, onTimeout: () => {} });
    await this.#errors;
    await this.#reader.cancel().catch(() => {});
    await this.#child.closeInput().catch(() => {});
  }

  async #start(signal: AbortSignal): Promise<void> {
    const first = await deadline(this.#next(), { ms: START_MS, onTimeout: () => undefined });
    signal.throwIfAborted();
    if (first?.kind === "missing") throw toMissing(first.text);
    if (first?.kind !== "ready") {
      throw new Error(`Cannot run a program: its process does not start: ${await this.#toEnd()}`);
    }
    this.#isReady = true;
  }

  /** Returns `undefined` if the process has ended, or has sent anything else than messages. */
  async #next(): Promise<FromChild | undefined> {
    while (!this.#messages.length) {
      const { done, value } = await this.#reader.read();
      if (done) return;
      for (const line of this.#lines.push(value)) {
        const message = "text" in line ? readFromChild(parseJson(line.text)) : TOO_LONG;
        if (!message) return;
        this.#messages.push(message);
      }
    }
    return this.#messages.shift();
  }

  async #toEnd(): Promise<string> {
    this.#child.kill();
    return await this.#errors || "it has written nothing";
  }
}

/** Maximum length of what a process writes to standard error, in bytes. The rest is ignored. */
const MAX_ERRORS = 4096;

async function readStart(stream: ReadableStream<Uint8Array> | undefined): Promise<string> {
  let text = "";
  const decoder = new TextDecoder();
  try {
    for await (const bytes of stream ?? []) {
      if (text.length < MAX_ERRORS) text += decoder.decode(bytes, { stream: true });
    }
  } catch {
    // The process has ended.
  }
  return text.slice(0, MAX_ERRORS).trim();
}

function toMissing(state: string): Error {
  const [name] = QUICKJS.split("@");
  const remedy = `install the package ${name} in the version ${QUICKJS.split("@")[1]}, or pass a sandbox to codeMode()`;
  return new Error(`Cannot run a program: the interpreter cannot be loaded (${state}); ${remedy}`);
}

/** Environment variables with which Deno finds packages. The program in the process cannot read them. */
const NEEDED = [
  ...["DENO_DIR", "DENO_CERT", "DENO_TLS_CA_STORE", "NODE_EXTRA_CA_CERTS"],
  ...["NPM_CONFIG_REGISTRY", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"],
];

/** Returns the command that starts a process, with as few permissions as the runtime can give it. */
function toTarget() {
  const [suffix = ".js"] = /\.[jt]s$/.exec(import.meta.url) ?? [];
  const url = new URL(`./program_child${suffix}`, import.meta.url);
  // Node and Bun read the package from files.
  if (!deno && !findProcess().getBuiltinModule("fs").existsSync(url)) {
    throw new Error(
      "Cannot run a program: the file of its process is missing, because @x/mcp was bundled with the server; leave @x/mcp " +
        "out of the bundle, or pass a sandbox to codeMode()",
    );
  }
  const known = NEEDED.flatMap((name) => {
    const value = deno ? readVariable(name) : undefined;
    return value === undefined ? [] : [[name, value]];
  });
  const env = { ...Object.fromEntries(known), NODE_NO_WARNINGS: "1", DENO_NO_UPDATE_CHECK: "1", NO_COLOR: "1" };
  if (deno) {
    const command = deno.execPath();
    // Check the permission first, because Deno would otherwise prompt.
    if ((deno.permissions?.querySync({ name: "run", command }).state ?? "granted") !== "granted") {
      throw new Error(
        `Cannot run a program: Deno does not permit this server to start processes; run it with --allow-run=${command}, or ` +
          "pass a sandbox to codeMode()",
      );
    }
    // Deno imports the interpreter, and imports need no permission. The configuration of another project could add some.
    const flags = ["--no-prompt", "--no-config", "--no-lock", "--unstable-raw-imports"];
    return { command, env, args: ["run", ...flags, url.href] };
  }
  const { execPath: command } = findProcess();
  return { command, env, args: [...node ? toPermissions() : [], toPath(url)] };
}

/** Returns the flags with which Node may only read this package and the interpreter. */
function toPermissions(): readonly string[] {
  let interpreter;
  try {
    interpreter = new URL(".", import.meta.resolve(`${QUICKJS.split("@")[0]}/package.json`));
  } catch (error) {
    throw toMissing(error instanceof Error ? error.message : String(error));
  }
  const own = new URL("../../../", import.meta.url);
  return ["--permission", ...[own, interpreter].map((url) => `--allow-fs-read=${toPath(url)}`)];
}

function toPath(url: URL): string {
  return decodeURIComponent(url.pathname).replace(/^\/(?=[A-Za-z]:)/, "");
}
