// Guards standard output, calls every function of every console, and then writes its own line.
import { guardConsole } from "../../src/transports/stdio/stdout_guard.ts";

const FORGED = '{"jsonrpc":"2.0","id":1,"result":{"forged":true}}';

type Consoles = Readonly<Record<string, unknown>>;

/** All names of an object and its prototypes, except those of Object.prototype. */
function listNames(object: object): string[] {
  const next: unknown = Object.getPrototypeOf(object);
  const inherited = typeof next === "object" && next !== null && next !== Object.prototype ? listNames(next) : [];
  return [...new Set([...Object.getOwnPropertyNames(object), ...inherited])].filter((name) => name !== "constructor");
}

function callAll(given: object): void {
  const found = given as Consoles; // The members are tested one by one.
  for (const name of listNames(given)) {
    // Skip constructors, whose names begin with an upper-case letter, and heap snapshots, which write a file.
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
// Functions that are taken out of the console work too.
const { log, count, trace, timeEnd } = console;
for (const each of [log, count, trace, timeEnd]) each(FORGED);
callAll(globalThis.process.getBuiltinModule("console"));
restore();
console.log("restored");
console.count("restored");
console.error("done");
