/**
 * Keeps what prints off standard output.
 *
 * @module
 */
import { bun, type BunGlobal, deno, type DenoGlobal, findProcess, type ProcessGlobal } from "../../runtime.ts";

/**
 * Has `console.log` and its like, and what writes to standard output past the console, write to standard error, until
 * the function that comes back is called. Standard output belongs to the protocol: one stray line there and the client
 * cannot read on.
 */
export function guardConsole(): () => void {
  const names = ["log", "info", "debug", "table", "dir", "group"] as const;
  const before = names.map((name) => console[name]);
  for (const name of names) console[name] = (...data: unknown[]) => console.error(...data);
  const restore = deno ? guardDeno(deno) : bun ? guardBun(bun, findProcess()) : () => {};
  return () => {
    names.forEach((name, i) => console[name] = before[i]);
    restore();
  };
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
