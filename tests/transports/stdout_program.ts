// Guards standard output, calls every function of every console, and then writes a line of its own.
import { guardConsole } from "../../src/server/transports/stdio/stdout_guard.ts";

const FORGED = '{"jsonrpc":"2.0","id":1,"result":{"forged":true}}';

type Consoles = Readonly<Record<string, unknown>>;

/** Returns the property names of an object and its prototypes, except the names in Object.prototype. */
function listNames(object: object): string[] {
  const next: unknown = Object.getPrototypeOf(object);
  const inherited = typeof next === "object" && next !== null && next !== Object.prototype ? listNames(next) : [];
  return [...new Set([...Object.getOwnPropertyNames(object), ...inherited])].filter((name) => name !== "constructor");
}

function callAll(given: object): void {
  const found = given as Consoles; // The cast is safe, because each member is tested before it is used.
  for (const name of listNames(given)) {
    // Skip constructors, whose names begin with an upper-case letter, and heap snapshots, which would write a file.
    if (/^[A-Z_]/.test(name) || name === "takeHeapSnapshot" || name === "screenshot") continue;
    const value = found[name];
    if (typeof value !== "function") continue;
    for (const args of [[FORGED], [FORGED, FORGED], [[FORGED]], [{ [FORGED]: FORGED }], [false, FORGED], []]) {
      try {
        value.apply(given, args);
      } catch {
        // The function expects other arguments.
      }
    }
  }
}

const restore = guardConsole();
callAll(console);
// Console functions must also work after they are destructured.
const { log, count, trace, timeEnd } = console;
for (const each of [log, count, trace, timeEnd]) each(FORGED);
callAll(globalThis.process.getBuiltinModule("console"));
restore();
console.log("restored");
console.count("restored");
console.error("done");
