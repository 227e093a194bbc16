// `deno task load:shares`: attackers take as much of every shared limit ("pot") as the server allows, while other
// clients use the shares that they already have. On Bun, run `bun tests/load/shares/main.ts --seconds 60`.
import process from "node:process";
import { readNumber, readOptions } from "../../support/options.ts";
import { attack, type Shares } from "./attack.ts";
import { type Origin, ORIGINS } from "./attackers.ts";

const USAGE = `Takes as much of every pot as the server allows, while other clients use what they had before.
The exit code is 1 if they lose something.

  deno task load:shares [options]

  --seconds N  Length of the attack from one address, from 16 networks, and with one token each; default: 60
  --help       Print this help`;

function print(origin: Origin, { steps, checks, lost, slowestCallMs, fullest }: Shares): void {
  const slowest = `slowest call of another client ${slowestCallMs.toFixed(0)} ms`;
  console.log(`${origin}: ${steps} steps, ${checks} checks, ${lost.length} lost, ${slowest}`);
  console.log(`  ${[...fullest].map(([name, percent]) => `${name} ${percent}`).join(", ")}`);
  for (const each of lost) console.log(`  ${each}`);
}

const options = readOptions(process.argv.slice(2), { values: ["--seconds"], flags: ["--help"] });
if (options.has("--help")) {
  console.log(USAGE);
  process.exit(0);
}
let lost = 0;
for (const origin of ORIGINS) {
  const shares = await attack(origin, { seconds: readNumber(options, "--seconds", 60) });
  print(origin, shares);
  lost += shares.lost.length;
}
process.exit(lost ? 1 : 0);
