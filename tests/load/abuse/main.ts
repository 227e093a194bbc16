// `deno task load:worst`: sends the most expensive requests for every parser, schema keyword, method and transport, on
// both runtimes.
import { describeMachine } from "../../../bench/machine.ts";
import { orUsageError, readTaskOptions } from "../../../bench/options.ts";
import { readNumber } from "../../support/options.ts";
import { mib } from "../processes.ts";
import { costCases } from "./cases.ts";
import { type Cost, measureCosts, MOST } from "./cost.ts";
import { canHold, heldCases, type Holding, measureHeld, MOST_HELD } from "./held.ts";
import { fuzz } from "./fuzz.ts";
import { measurePipes } from "./pipes.ts";
import { ABUSED_RUNTIMES, type AbusedRuntime } from "./server.ts";
import { survive } from "./survive.ts";

const options = readTaskOptions(Deno.args, {
  name: "load:worst",
  summary: "Sends the worst requests there are. Prints what the server spends and holds; fails if an aim is missed.",
  values: {
    "--runtime deno|bun|node": "Run on one runtime; default: all; Node runs only the memory cases over HTTP",
    "--only PATTERN": "Run the cases whose name matches this regular expression only",
    "--minutes N": "With --fuzz: how long to search on each runtime; default: 0",
    "--seconds N": "With --survive: length of the run on each runtime; default: 60",
  },
  flags: {
    "--fuzz": "Search for requests that are worse, and print them as cases to add",
    "--survive": "Send all of them at once to a server with 512 MB",
    "--costs": "Measure processor time only",
    "--held": "Measure memory only",
  },
});
const { runtimes, only, minutes, seconds } = orUsageError(() => {
  const runtimes = ABUSED_RUNTIMES.filter((each) => each === (options.get("--runtime") ?? each));
  if (!runtimes.length) {
    throw new Error(`Cannot begin: there is no such runtime; choose from ${ABUSED_RUNTIMES.join(", ")}`);
  }
  return {
    runtimes,
    only: new RegExp(options.get("--only") ?? ""),
    minutes: readNumber(options, "--minutes", 0, { hasParts: true }),
    seconds: readNumber(options, "--seconds", 60),
  };
});
let missed = 0;

function mark(text: string, isMet: boolean): string {
  if (!isMet) missed++;
  return isMet ? text : `**${text}**`;
}

function toRow({ name, a, b, block, statuses }: Cost): string {
  const cells = [
    mark(a.toFixed(1), a <= MOST.a),
    mark(b.toFixed(3), b <= MOST.b),
    mark(block.toFixed(0), block <= MOST.block),
  ];
  return `| ${name} | ${cells.join(" | ")} | ${statuses} |`;
}

function toHeldRow({ name, count, sent, held, peak, isDead }: Holding): string {
  const text = isDead ? "**the server died**" : mark(mib(held), held <= MOST_HELD);
  if (isDead) missed++;
  return `| ${count} × ${name} | ${mib(sent)} | ${text} | ${(held / sent).toFixed(1)} | ${isDead ? "" : mib(peak)} |`;
}

async function measureAll(runtime: AbusedRuntime): Promise<void> {
  if (!options.has("--held") && runtime !== "node") {
    console.log(`\n## ${runtime}, processor time\n`);
    console.log(
      `| Request | a ≤ ${MOST.a} calls | b ≤ ${MOST.b} µs/B | block ≤ ${MOST.block} ms | status |\n|---|--:|--:|--:|---|`,
    );
    if (costCases.some(({ name }) => only.test(name))) {
      const unit = await measureCosts(runtime, only, (cost) => console.log(toRow(cost)));
      console.log(`| (a plain call: ${unit.toFixed(0)} µs) | | | | |`);
    }
    await measurePipes(runtime, only, (cost) => console.log(toRow(cost)));
  }
  if (options.has("--costs")) return;
  console.log(`\n## ${runtime}, memory\n`);
  console.log(
    `| What is held | sent, MiB | held ≤ ${
      MOST_HELD / 2 ** 20
    } MiB | held for each byte | peak, MiB |\n|---|--:|--:|--:|--:|`,
  );
  for (const each of heldCases.filter((each) => only.test(each.name) && canHold(runtime, each))) {
    console.log(toHeldRow(await measureHeld(runtime, each)));
  }
}

console.log(`${await describeMachine()}; deno task load:worst ${Deno.args.join(" ")}`);
for (const runtime of runtimes) {
  if (runtime === "node") await measureAll(runtime);
  else if (options.has("--survive")) {
    for (const { what, aim, value, holds } of await survive(runtime, seconds)) {
      console.log(`| ${runtime} | ${what} | ${aim} | ${mark(value, holds !== false)} |`);
    }
  } else if (options.has("--fuzz")) await fuzz(runtime, minutes);
  else await measureAll(runtime);
}
console.log(missed ? `\n${missed} figures miss their target; they are in bold.` : "\nAll targets are met.");
Deno.exit(missed ? 1 : 0);
