/**
 * Redirects printed output from standard output to standard error.
 */
import {
  bun,
  type BunGlobal,
  deno,
  type DenoGlobal,
  findProcess,
  node,
  type NodeGlobal,
  type ProcessGlobal,
} from "../../../core/runtime.ts";
import { findNodeWrite } from "../../../core/node_streams.ts";

/** Methods of `console` that print nothing, or only to standard error. */
const HARMLESS: ReadonlySet<string> = new Set([
  "assert",
  "groupEnd",
  "profile",
  "profileEnd",
  "timeStamp",
  "Console",
  "context",
  "createTask",
  "takeHeapSnapshot",
  "record",
  "recordEnd",
  "screenshot",
]);

/**
 * Redirects everything that prints to standard output: the methods of `console`, and the runtime's own streams.
 * Otherwise the client would read printed lines as messages. Returns a function that ends the redirection.
 */
export function guardConsole(): () => void {
  const before = listPrinting();
  const { error } = console;
  // Print an empty text, because Bun's own method prints an empty line to standard output if it has no arguments.
  const print: Print = (...data) => error(...data.length ? data : [""]);
  const redirected = redirectConsole(print);
  for (const [name] of before) {
    const value = redirected[name] ?? print;
    Object.defineProperty(console, name, { value, configurable: true, writable: true, enumerable: true });
  }
  const restore = deno ? guardDeno(deno) : bun ? guardBun(bun, findProcess()) : node ? guardNode(node) : () => {};
  return () => {
    for (const [name, property] of before) Object.defineProperty(console, name, property);
    restore();
  };
}

/** Reads the properties of `console`, so that the list includes methods that future runtimes add. */
function listPrinting(): readonly (readonly [name: string, property: PropertyDescriptor])[] {
  // Skip harmless and non-enumerable properties such as `_stdout`, because reading such a property makes Bun load its
  // Node.js streams, which takes a quarter of the startup time.
  return Object.keys(console).filter((name) => !HARMLESS.has(name)).flatMap((name) => {
    const property = Object.getOwnPropertyDescriptor(console, name);
    return typeof property?.value === "function" ? [[name, property] as const] : [];
  });
}

type Print = (...data: readonly unknown[]) => unknown;

/** Returns replacements for the methods that do not simply print their arguments. */
function redirectConsole(print: Print): Readonly<Record<string, Print>> {
  // Bound: the labels in the author's code.
  const counts = new Map<string, number>();
  // Bound: the labels in the author's code.
  const starts = new Map<string, number>();
  const toLabel = (label: unknown) => label === undefined ? "default" : String(label);

  function printTime(given: unknown, ...data: readonly unknown[]): void {
    const label = toLabel(given);
    const start = starts.get(label);
    if (start === undefined) print(`Timer '${label}' does not exist`);
    else print(`${label}: ${Math.round(performance.now() - start)}ms`, ...data);
  }

  return {
    clear() {},
    dir: (item) => print(item),
    // Accept byte arrays too, as Bun's `console.write` does.
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
    timeLog: printTime,
    timeEnd(label) {
      printTime(label);
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

// Replaces the methods of `Deno.stdout` and not the object, because Node.js streams write through this object too.
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

// Replaces `process.stdout` without reading it, because Bun creates this stream on first access, which takes longer
// than the rest of the startup. The original stream can therefore not be restored.
function guardBun(bun: BunGlobal, process: ProcessGlobal): () => void {
  const { stdout } = bun;
  bun.stdout = bun.stderr;
  process.stdout = new Proxy({}, {
    get(_, name) {
      const value: unknown = Reflect.get(process.stderr, name);
      return typeof value === "function" ? value.bind(process.stderr) : value;
    },
  });
  // Replace these functions, because they would print to standard output, and read the client's next message as input.
  // The replacements return what Deno's functions return without a terminal.
  const { alert, confirm, prompt } = globalThis;
  Object.assign(globalThis, { alert() {}, confirm: () => false, prompt: () => null });
  return () => {
    bun.stdout = stdout;
    Object.assign(globalThis, { alert, confirm, prompt });
  };
}

// Replaces the `write` method and not the stream, because Node's console keeps a reference to the stream.
function guardNode(node: NodeGlobal): () => void {
  findNodeWrite(node);
  const { stdout, stderr } = node;
  const { write } = stdout;
  stdout.write = stderr.write.bind(stderr);
  return () => {
    stdout.write = write;
  };
}
