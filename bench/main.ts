// Measures this library against the least a server can do, and with `--peers` against other libraries.
//
//     deno task bench [--peers] [--only=W1,W5] [--runtimes=deno] [--slices=6]
//
// Figures go to standard output as Markdown, what goes on to standard error.
import { measureAllGrowth } from "./growth.ts";
import { measureHttp, workloads } from "./http.ts";
import { hasWrk } from "./load.ts";
import { describeMachine, pinSelf, type Runtime, slices } from "./machine.ts";
import { measureMemory } from "./memory.ts";
import { installPeers } from "./peers.ts";
import { measureSize } from "./size.ts";
import { measureStart } from "./start.ts";
import { measureStdio } from "./stdio.ts";

function option(name: string, otherwise: string): string {
  const start = `--${name}=`;
  return Deno.args.find((arg) => arg.startsWith(start))?.slice(start.length) ?? otherwise;
}

const unknown = Deno.args.find((arg) => !/^--(peers$|(only|runtimes|slices)=)/.test(arg));
if (unknown !== undefined) {
  console.error(
    `Cannot measure: ${unknown} is no option; there are --peers, --only=W1,W5, --runtimes=deno and --slices=6`,
  );
  Deno.exit(2);
}
const only = option("only", "").split(",").filter(Boolean);
const runtimes = (["deno", "bun"] as const).filter((name) => option("runtimes", "deno,bun").includes(name));
const count = Number(option("slices", "6"));
const { peers, remove } = Deno.args.includes("--peers") ? await installPeers() : { peers: [], remove: async () => {} };

const parts: Readonly<Record<string, (runtimes: readonly Runtime[]) => Promise<string>>> = {
  ...Object.fromEntries(
    Object.keys(workloads).map((name) => [name, () => measureHttp(name, runtimes, peers, count)]),
  ),
  W5: async () =>
    await measureStdio("session", runtimes, peers, count) + "\n" + await measureStdio("modern", runtimes, peers, count),
  W6: () => measureStart(runtimes, peers, Math.max(count, 15)),
  W7: () => measureMemory(runtimes),
  W8: () => measureAllGrowth(runtimes, count),
  size: () => measureSize(count),
};

try {
  await pinSelf();
  console.log(`${await describeMachine()}${hasWrk ? "" : "; without wrk"}\n`);
  for (const [name, part] of Object.entries(parts)) {
    if (only.length && !only.includes(name)) continue;
    console.error(`measuring ${name} …`);
    console.log(await part(runtimes));
  }
  if (slices.shared) {
    console.log(`Warning: in ${slices.shared} of ${slices.all} slices other processes used the machine.`);
  }
} finally {
  await remove();
}
