// `deno task figures [--quick] [--only D4,D5]`: measures the project's claims about streams, sessions, bodies and
// shutdown on both runtimes, and prints a Markdown table. A full run takes about twenty minutes, ten of which are idle.
import { describeMachine } from "../../bench/machine.ts";
import { bodyLimits, fairness, stalledClients } from "./measure_bodies.ts";
import { graceful, stdio, worstCases } from "./measure_life.ts";
import { crossTalk, samePairs, sessionCost } from "./measure_sessions.ts";
import { disconnects, quietStreams, slowReaders } from "./measure_streams.ts";
import { workerThreads } from "./measure_workers.ts";
import { readTaskOptions } from "../../bench/options.ts";
import { RUNTIMES } from "./processes.ts";
import type { Figure, Measure } from "./figure.ts";

const measures: readonly (readonly [name: string, measure: Measure])[] = [
  ["D4", slowReaders],
  ["D5", disconnects],
  ["D6", quietStreams],
  ["D7", sessionCost],
  ["D8", crossTalk],
  ["D9", samePairs],
  ["D17", graceful],
  ["D18", bodyLimits],
  ["D19", stalledClients],
  ["D20", worstCases],
  ["D21", fairness],
  ["D22", stdio],
  ["D23", workerThreads],
];

const options = readTaskOptions(Deno.args, {
  name: "figures",
  summary: "Measures streams, sessions, bodies and shutdown on both runtimes. Prints a Markdown table.",
  values: { "--only D4,D5": `Measure these figures only; there are ${measures.map(([name]) => name).join(", ")}` },
  flags: { "--quick": "Measure less, in a few minutes" },
});
const isQuick = options.has("--quick");
const only = options.get("--only")?.split(",");
const stranger = only?.find((each) => !measures.some(([name]) => name === each));
if (stranger !== undefined) {
  throw new Error(
    `Cannot begin: there is no figure ${stranger}; choose from ${measures.map(([name]) => name).join(", ")}`,
  );
}

console.log(`${await describeMachine()}; deno task figures ${Deno.args.join(" ")}\n`);
console.log("| | Figure | Aim | Deno | Bun |\n|---|---|---|---|---|");
for (const [name, measure] of measures) {
  if (only && !only.includes(name)) continue;
  let sides: readonly (readonly Figure[])[];
  try {
    // Idle streams can be measured on both runtimes concurrently. All other measurements run on one runtime at a time.
    sides = measure === quietStreams
      ? await Promise.all(RUNTIMES.map((runtime) => measure(runtime, isQuick)))
      : [await measure("deno", isQuick), await measure("bun", isQuick)];
  } catch (error) {
    console.log(`| ${name} | | | ${String(error).replaceAll("\n", " ")} | |`);
    continue;
  }
  const [deno, bun] = sides;
  for (const [i, { what, aim, value, holds }] of deno.entries()) {
    const mark = (text: string, holds: boolean | undefined) => holds === false ? `**${text}**` : text;
    console.log(`| ${name} | ${what} | ${aim} | ${mark(value, holds)} | ${mark(bun[i].value, bun[i].holds)} |`);
  }
}
console.log("\nWhat misses its aim is in bold.");
Deno.exit(0);
