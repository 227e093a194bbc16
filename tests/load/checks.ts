// `deno task checks [--slices N] [--starts N]`: the cost of all checks of a request together. The server as it is, and a
// copy of it that refuses nothing, run side by side and take turns in slices of a second; their processor time is
// compared. Both keep the parts that any response needs: the path, the accepted types, the era, and the schemas, because
// they are part of a tool. Two runs of the same program differ by one part in fifty, so both are started several times.
import { readAnswer, toAsk } from "../../bench/asks.ts";
import { load } from "../../bench/load.ts";
import {
  describeMachine,
  measure,
  type Runtime,
  slices as measured,
  startServer,
  toMedian,
  toWords,
} from "../../bench/machine.ts";
import { readTaskOptions } from "../../bench/options.ts";
import { readNumber } from "../support/options.ts";
import { EDITS, removeChecks } from "./checks_edits.ts";
import { RUNTIMES } from "./processes.ts";

const root = new URL("../../", import.meta.url).pathname;
const program = "bench/programs/ours.ts";
const AIM = 0.9;

async function copyFolder(from: string, to: string): Promise<void> {
  await Deno.mkdir(to, { recursive: true });
  for await (const { name, isDirectory, isFile } of Deno.readDir(from)) {
    if (isDirectory) await copyFolder(`${from}/${name}`, `${to}/${name}`);
    else if (isFile) await Deno.copyFile(`${from}/${name}`, `${to}/${name}`);
  }
}

/** A copy of the project, with its checks or without. Both servers run from a copy, so that nothing else differs. */
async function createCopy(isChecked: boolean): Promise<string> {
  const folder = await Deno.makeTempDir({ prefix: "checks-" });
  for (const part of ["src", "bench/programs"]) await copyFolder(root + part, `${folder}/${part}`);
  for (const part of ["mod.ts", "deno.json", "deno.lock"]) await Deno.copyFile(root + part, `${folder}/${part}`);
  await Deno.symlink(`${root}node_modules`, `${folder}/node_modules`);
  if (isChecked) return folder;
  for (const path of new Set(EDITS.map(({ path }) => path))) {
    await Deno.writeTextFile(`${folder}/${path}`, removeChecks(path, await Deno.readTextFile(root + path)));
  }
  return folder;
}

/** Requests that are refused with checks, and served without. */
const wrong: readonly { readonly title: string; readonly headers: Record<string, string>; readonly body?: string }[] = [
  { title: "another method in a header", headers: { "mcp-method": "tools/list" } },
  { title: "another version in a header", headers: { "mcp-protocol-version": "2099-01-01" } },
  { title: "a foreign origin", headers: { origin: "https://evil.example" } },
  { title: "a body that is no JSON", headers: { "content-type": "text/plain" } },
  { title: "a client that takes HTML", headers: { accept: "text/html" } },
];

async function prove(port: number, isChecked: boolean): Promise<void> {
  const { headers, body } = await toAsk(port, "add", "modern");
  for (const { title, headers: more } of wrong) {
    const init = { method: "POST", headers: { ...headers, ...more }, body };
    const response = await fetch(`http://127.0.0.1:${port}/mcp`, init);
    await response.text();
    if (response.ok === isChecked) {
      throw new Error(`Cannot compare: ${title} got ${response.status} ${isChecked ? "with" : "without"} checks`);
    }
  }
}

const manners = [["modern", "tools/call"], ["session", "tools/call in a session"]] as const;

/** Starts both servers once. Returns the microseconds per request of each slice, with checks and without. */
async function compare(runtime: Runtime, folders: readonly string[], slices: number): Promise<number[][][]> {
  const servers = [];
  try {
    for (const [i, folder] of folders.entries()) {
      const server = await startServer(toWords(runtime, `${folder}/${program}`, []));
      servers.push(server);
      await prove(server.port, i === 0);
    }
    const results = [];
    for (const [manner] of manners) {
      const asks = await Promise.all(servers.map(({ port }) => toAsk(port, "add", manner)));
      for (const [i, { port }] of servers.entries()) {
        await readAnswer(port, asks[i], "add");
        await load(port, asks[i], 32, 2); // warm up
      }
      const micros: number[][] = [[], []];
      for (let slice = 0; slice < slices; slice++) {
        // Each goes first as often as the other.
        for (const i of slice % 2 ? [1, 0] : [0, 1]) {
          const { pid, port } = servers[i];
          const { cpu, value } = await measure(pid, () => load(port, asks[i], 32));
          micros[i].push(cpu / value.requests * 1e6);
        }
      }
      results.push(micros);
    }
    return results;
  } finally {
    for (const server of servers) await server.stop();
  }
}

const options = readTaskOptions(Deno.args, {
  name: "checks",
  summary: "Compares the server with a copy that refuses nothing. Shows what all checks of a request cost.",
  values: { "--slices N": "Slices of a second per start", "--starts N": "How often both servers are started" },
});
const slices = readNumber(options, "--slices", 9);
const starts = readNumber(options, "--starts", 5);
const folders = await Promise.all([true, false].map(createCopy));
try {
  console.log(`${await describeMachine()}; deno task checks ${Deno.args.join(" ")}\n`);
  console.log("| | Runtime | With checks to without | Aim | µs of processor with | µs without |");
  console.log("|---|---|---|---|---|---|");
  for (const runtime of RUNTIMES) {
    const runs: number[][][][] = [];
    for (let start = 0; start < starts; start++) runs.push(await compare(runtime, folders, slices));
    for (const [i, [, title]] of manners.entries()) {
      const [checked, bare] = [0, 1].map((server) => toMedian(runs.map((run) => toMedian(run[i][server]))));
      const ratio = toMedian(runs.map((run) => toMedian(run[i][1].map((micros, slice) => micros / run[i][0][slice]))));
      const figure = ratio >= AIM ? ratio.toFixed(3) : `**${ratio.toFixed(3)}**`;
      console.log(`| ${title} | ${runtime} | ${figure} | ≥ ${AIM} | ${checked.toFixed(1)} | ${bare.toFixed(1)} |`);
    }
  }
  const shared = measured.shared
    ? `; other processes used the machine in ${measured.shared} of ${measured.all} slices`
    : "";
  console.log(
    `\nMedians of ${slices} slices in each of ${starts} starts${shared}. Figures that miss the aim are in bold.`,
  );
} finally {
  for (const folder of folders) await Deno.remove(folder, { recursive: true });
}
