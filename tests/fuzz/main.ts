// Sends damaged messages to a server, and reports wrong responses. The same seed sends the same inputs. A failure is
// printed with the seed that creates its input again.
//
//   deno task fuzz [--seed N] [--in-process N] [--sockets N] [--lines N]
//   bun tests/fuzz/main.ts …
//
// A full run: --in-process 1000000 --sockets 100000 --lines 200000
import { fuzzFetch, fuzzLines, fuzzSockets, type Run, type Tally } from "./drive.ts";
import { readNumber, readOptions } from "../support/options.ts";

// Deno type-checks this file, but has no types for Bun.
const { Bun: bun } = globalThis as unknown as { readonly Bun?: { readonly argv: readonly string[] } };
const options = readOptions(bun ? bun.argv.slice(2) : Deno.args, {
  values: ["--seed", "--in-process", "--sockets", "--lines"],
});
const seed = readNumber(options, "--seed", Date.now() % 2 ** 31);
const parts: readonly (readonly [name: string, count: number, run: (run: Run) => Promise<Tally>])[] = [
  ["in-process", readNumber(options, "--in-process", 20_000), fuzzFetch],
  ["sockets", readNumber(options, "--sockets", 2000), fuzzSockets],
  ["lines", readNumber(options, "--lines", 4000), fuzzLines],
];

console.log(`seed ${seed} on ${bun ? "Bun" : "Deno"}`);
let passed = 0;
let failed = 0;
for (const [name, count, run] of parts) {
  if (!count) continue;
  const start = performance.now();
  const { answers, failures } = await run({ seed, count });
  const seconds = (performance.now() - start) / 1000;
  const list = [...answers].sort(([a], [b]) => a < b ? -1 : 1).map(([answer, times]) => `${answer} × ${times}`);
  console.log(`${name}: ${count} in ${seconds.toFixed(1)} s, ${failures.length} failures; ${list.join(", ")}`);
  for (const { reason, seed, input } of failures) {
    console.error(`FAILED ${reason}\n  again: --seed ${seed} --${name} ${name === "lines" ? 200 : 1}\n  ${input}`);
  }
  if (failures.length) failed++;
  else passed++;
}
console.log(`${passed} passed, ${failed} failed`);
if (failed) throw new Error(`Wrong responses, as listed above, in ${failed} of ${passed + failed} parts`);
