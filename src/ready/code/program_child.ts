/**
 * The program of a child process: runs one program of a model in QuickJS, without access to anything of this process.
 * The process gets messages on standard input and sends messages on standard output, as lines of JSON.
 */
import { LineSplitter } from "../../core/line_splitter.ts";
import { readNodeStream } from "../../core/node_streams.ts";
import { bun, deno, findProcess, node } from "../../core/runtime.ts";
import { type FromChild, MAX_INPUT, MAX_LINE, QUICKJS, type RunMessage, type ToChild } from "./child_messages.ts";
import { PRELUDE } from "./prelude.ts";

/** The part of the package that this file uses. It is imported by a computed name, because it is optional. */
interface Interpreter {
  readonly QuickJS: {
    create(options: {
      readonly wasm: WebAssembly.Module;
      readonly memoryLimit: number;
      readonly maxStackSize: number;
      readonly timezoneOffset: number;
      readonly interruptHandler: () => boolean;
      readonly wasi: (
        memory: WebAssembly.Memory,
      ) => { clock_time_get(id: number, precision: bigint, at: number): number };
    }): Promise<Vm>;
  };
}

interface Vm {
  readonly undefined: Value;
  evalCode(code: string, file: string): Value;
  newFunction(name: string, run: (...given: readonly Value[]) => Value): Value;
  newString(text: string): Value;
  newNumber(value: number): Value;
  callFunction(run: Value, self: Value, ...given: readonly Value[]): Value;
  executePendingJobs(): number;
}

interface Value {
  getProp(name: string): Value;
  toString(): string;
  toNumber(): number;
  dispose(): void;
}

/** Bytes of the stack of the interpreter. Half of the stack of WebAssembly, so that the interpreter reports an overflow. */
const STACK_BYTES = 256 * 1024;

class Program {
  readonly #vm: Vm;
  readonly #prelude: Value;
  #isOver = false;

  constructor(vm: Vm, { outputCharacters, calls }: RunMessage) {
    this.#vm = vm;
    const bind = (name: string, run: (...given: readonly Value[]) => void) =>
      vm.newFunction(name, (...given) => {
        run(...given);
        return vm.undefined;
      });
    const call = bind("call", (id, name, input) => {
      send({ kind: "call", id: id.toNumber(), name: name.toString(), input: input.toString() });
    });
    const log = bind("log", (text) => send({ kind: "log", text: text.toString() }));
    const end = bind("end", (isValue, text) => this.#end(isValue.toNumber() === 1, text.toString()));
    const numbers = [outputCharacters, MAX_INPUT, calls].map((each) => vm.newNumber(each));
    this.#prelude = vm.callFunction(vm.evalCode(PRELUDE, "prelude"), vm.undefined, call, log, end, ...numbers);
  }

  run(code: string): void {
    this.#work(() => this.#use("run", compile(this.#vm, code)));
  }

  answer({ id, isError, text }: ToChild & { readonly kind: "answer" }): void {
    const vm = this.#vm;
    this.#work(() => this.#use("answer", vm.newNumber(id), vm.newNumber(isError ? 1 : 0), vm.newString(text)));
  }

  #use(name: string, ...given: readonly Value[]): Value {
    return this.#vm.callFunction(this.#prelude.getProp(name), this.#prelude, ...given);
  }

  /** Runs code of the program until the program ends, or waits for an answer. */
  #work(run: () => Value): void {
    try {
      run();
      this.#vm.executePendingJobs();
      if (this.#isOver) return;
      if (this.#use("count").toNumber()) return send({ kind: "waiting" });
      this.#end(false, JSON.stringify({ message: "the program waits for something that never happens" }));
    } catch (error) {
      // What the program cannot catch comes here: a syntax error, too much memory, and the interrupt.
      const { name = "Error", message = "", stack = "" } = Object(error);
      this.#end(false, JSON.stringify({ name: `${name}`, message: `${message}`, stack: `${stack}` }));
    }
  }

  #end(isValue: boolean, text: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    send({ kind: isValue ? "value" : "error", text });
  }
}

/** Returns the function of a program: its only arrow function, or a function with the code as its body. */
function compile(vm: Vm, code: string): Value {
  if (/^\s*(async\s*)?\(\s*\)\s*=>/.test(code)) {
    try {
      return vm.evalCode(`(${code.replace(/;\s*$/, "")}\n)`, "program");
    } catch {
      // More code follows the function.
    }
  }
  return vm.evalCode(`(async () => {${code}\n})`, "program");
}

/** Writes synchronously, so that the messages before an endless loop arrive. */
function send(message: FromChild): void {
  let bytes = new TextEncoder().encode(`${JSON.stringify(message)}\n`);
  while (bytes.length) {
    const written = deno ? deno.stdout.writeSync(bytes) : findProcess().getBuiltinModule("fs").writeSync(1, bytes);
    bytes = bytes.subarray(written);
  }
}

async function load(): Promise<{ readonly interpreter: Interpreter; readonly wasm: WebAssembly.Module }> {
  const name: string = deno ? `npm:${QUICKJS}` : QUICKJS.split("@")[0];
  // The cast is safe, because the version of the package is fixed.
  const interpreter = await import(name) as Interpreter;
  // Deno imports the file, so that this process needs no permission to read it.
  const file: string = `${name}/quickjs.wasm`;
  const bytes = deno
    ? (await import(file, { with: { type: "bytes" } })).default
    : findProcess().getBuiltinModule("fs").readFileSync(new URL(import.meta.resolve(file)));
  return { interpreter, wasm: await WebAssembly.compile(bytes) };
}

async function start({ interpreter, wasm }: Awaited<ReturnType<typeof load>>, message: RunMessage): Promise<Program> {
  const { now, seed, memoryBytes } = message;
  const vm = await interpreter.QuickJS.create({
    wasm,
    memoryLimit: memoryBytes,
    maxStackSize: STACK_BYTES,
    timezoneOffset: 0,
    interruptHandler: () => performance.now() > until && toCpuMs() > cpuUntil,
    // The clock stands still. The interpreter seeds `Math.random` with it.
    wasi: (memory) => ({
      clock_time_get(_id, _precision, at) {
        new DataView(memory.buffer).setBigUint64(at, BigInt(now) * 1_000_000n + BigInt(seed), true);
        return 0;
      },
    }),
  });
  return new Program(vm, message);
}

/**
 * When the interpreter stops: at this time, but not before this process has used this much CPU time, both in milliseconds.
 * On a busy machine, a process can wait for a long time until it may compute.
 */
let until = Infinity;
let cpuUntil = Infinity;

function toCpuMs(): number {
  const { user, system } = findProcess().cpuUsage();
  return (user + system) / 1000;
}

async function main(): Promise<void> {
  const input = deno?.stdin.readable ?? (node ? readNodeStream(node.stdin) : bun?.stdin.stream());
  if (!input) return;
  let loaded;
  try {
    loaded = await load();
  } catch (error) {
    return send({ kind: "missing", text: error instanceof Error ? error.message : String(error) });
  }
  send({ kind: "ready" });
  const lines = new LineSplitter(MAX_LINE);
  let cpuMs = 0;
  let program: Program | undefined;
  for await (const bytes of input) {
    for (const line of lines.push(bytes)) {
      if ("problem" in line) return;
      const message: ToChild = JSON.parse(line.text);
      if (message.kind === "run") {
        cpuMs = message.cpuMs;
        program = await start(loaded, message);
      }
      until = performance.now() + cpuMs;
      cpuUntil = toCpuMs() + cpuMs;
      if (message.kind === "run") program?.run(message.code);
      else program?.answer(message);
    }
  }
}

await main();
