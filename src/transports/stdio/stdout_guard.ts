/**
 * Keeps what prints off standard output.
 *
 * @module
 */
import { bun, type BunGlobal, deno, type DenoGlobal, findProcess, type ProcessGlobal } from "../../runtime.ts";

/** Functions of `console` that print nothing, or to standard error whatever they are given. */
const HARMLESS: ReadonlySet<string> = new Set([
  ...["assert", "groupEnd", "profile", "profileEnd", "timeStamp"],
  ...["Console", "context", "createTask", "takeHeapSnapshot", "record", "recordEnd", "screenshot"],
]);

/**
 * Leads everything that prints to standard output to standard error, until the returned function is called: the
 * functions of `console`, and the runtime's own ways to write. Standard output belongs to the protocol: one stray line
 * there can forge a message.
 */
export function guardConsole(): () => void {
  const before = listPrinting();
  const { error } = console;
  // Without an argument, Bun's own prints an empty line to standard output.
  const print: Print = (...data) => error(...data.length ? data : [""]);
  const redirected = redirectConsole(print);
  for (const [name] of before) {
    const value = redirected[name] ?? print;
    Object.defineProperty(console, name, { value, configurable: true, writable: true, enumerable: true });
  }
  const restore = deno ? guardDeno(deno) : bun ? guardBun(bun, findProcess()) : () => {};
  return () => {
    for (const [name, property] of before) Object.defineProperty(console, name, property);
    restore();
  };
}

/**
 * The functions of `console` that may print. By the console's own list, so that a function that a later runtime adds is
 * led away too.
 */
function listPrinting(): readonly (readonly [name: string, property: PropertyDescriptor])[] {
  // Neither the harmless ones nor what is not enumerable, such as `_stdout`, is looked at: for them Bun loads its modules
  // for the streams of Node.js, which takes a quarter of a start.
  return Object.keys(console).filter((name) => !HARMLESS.has(name)).flatMap((name) => {
    const property = Object.getOwnPropertyDescriptor(console, name);
    return typeof property?.value === "function" ? [[name, property] as const] : [];
  });
}

type Print = (...data: readonly unknown[]) => unknown;

/** The functions that print something other than their arguments. */
function redirectConsole(print: Print): Readonly<Record<string, Print>> {
  const counts = new Map<string, number>();
  const starts = new Map<string, number>();
  const toLabel = (label: unknown) => label === undefined ? "default" : String(label);

  function tellTime(given: unknown, ...data: readonly unknown[]): void {
    const label = toLabel(given);
    const start = starts.get(label);
    if (start === undefined) print(`Timer '${label}' does not exist`);
    else print(`${label}: ${Math.round(performance.now() - start)}ms`, ...data);
  }

  return {
    clear() {},
    dir: (item) => print(item),
    // Also the bytes that Bun writes as they are.
    write(...data) {
      const texts = data.map((each) => typeof each === "string" ? each : new TextDecoder().decode(toBytes(each)));
      print(texts.join("").replace(/\n$/, ""));
      return texts.reduce((sum, text) => sum + new TextEncoder().encode(text).length, 0);
    },
    count(given) {
      const label = toLabel(given);
      counts.set(label, (counts.get(label) ?? 0) + 1);
      print(`${label}: ${counts.get(label)}`);
    },
    countReset: (label) => void counts.delete(toLabel(label)),
    time: (label) => void starts.set(toLabel(label), performance.now()),
    timeLog: tellTime,
    timeEnd(label) {
      tellTime(label);
      starts.delete(toLabel(label));
    },
    trace(...data) {
      const stack = new Error().stack?.replace(/^Error.*\n/, "").replace(/^.*\n/, "") ?? "";
      print("Trace:", ...data, `\n${stack}`);
    },
  };
}

function toBytes(data: unknown): Uint8Array<ArrayBuffer> {
  if (data instanceof ArrayBuffer) return new Uint8Array(data);
  if (!ArrayBuffer.isView(data)) return new TextEncoder().encode(String(data));
  return new Uint8Array(new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
}

// The object stays, with other methods: what is written in the way of Node.js goes through it too.
function guardDeno({ stdout, stderr }: DenoGlobal): () => void {
  const { write, writeSync } = stdout;
  stdout.write = (bytes) => stderr.write(bytes);
  stdout.writeSync = (bytes) => stderr.writeSync(bytes);
  const before = Object.getOwnPropertyDescriptor(stdout, "writable");
  Object.defineProperty(stdout, "writable", { configurable: true, get: () => stderr.writable });
  return () => {
    Object.assign(stdout, { write, writeSync });
    Reflect.deleteProperty(stdout, "writable");
    if (before) Object.defineProperty(stdout, "writable", before);
  };
}

// What Bun keeps in the way of Node.js is only made when it is read, which takes longer than the rest of a start. So it
// is not read here, and cannot be put back.
function guardBun(bun: BunGlobal, process: ProcessGlobal): () => void {
  const { stdout } = bun;
  bun.stdout = bun.stderr;
  process.stdout = new Proxy({}, {
    get(_, name) {
      const value: unknown = Reflect.get(process.stderr, name);
      return typeof value === "function" ? value.bind(process.stderr) : value;
    },
  });
  // They would print, and read the client's next line. Deno answers like this where there is no terminal.
  const { alert, confirm, prompt } = globalThis;
  Object.assign(globalThis, { alert() {}, confirm: () => false, prompt: () => null });
  return () => {
    bun.stdout = stdout;
    Object.assign(globalThis, { alert, confirm, prompt });
  };
}
