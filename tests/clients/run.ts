// Runs real clients from npm against the probe, with a fake model, in a network namespace without a way out. Compares
// what they do with record.json.
//
//   deno task clients [NAME…] [--write] [--cache FOLDER] [--logs FOLDER]
//
// NAME is the name of a client in packages.json. With --write, the task writes what it has seen into record.json; then
// run deno task docs:clients. --cache is the folder for installed clients. With --logs, the task keeps the homes of the
// clients and the messages there.
import { install } from "../release/npm_install.ts";
import { findNode } from "../support/node_versions.ts";
import { findPackages } from "../support/npm_packages.ts";
import { readOptions } from "../support/options.ts";
import { root } from "../support/processes.ts";
import { findObstacle, runIsolated } from "./namespace.ts";
import { NODE, packages, toCache } from "./packages.ts";
import type { Tools } from "./tools.ts";

const OFFICIAL = "official-server";

/** Installs what the run needs. Clients that cannot be installed are printed and left out. */
async function prepare(
  names: readonly string[],
  { cache, work }: { readonly cache: string; readonly work: string },
): Promise<Tools> {
  const found = await findNode(NODE);
  if ("missing" in found) throw new Error(found.missing);
  const node = found.path;
  const installed: Record<string, string> = {};
  const missing: Record<string, string> = {};
  for (const name of [...names, OFFICIAL]) {
    const client = await findPackages(name, packages[name], { cache, node });
    if ("folder" in client) installed[name] = client.folder;
    else missing[name] = client.missing;
  }
  const npmProject = `${work}/node`;
  await install(await Deno.makeTempDir({ dir: work }), npmProject);
  await Deno.copyFile(`${root}tests/clients/probe/probe.ts`, `${npmProject}/probe.ts`);
  const officialProject = `${work}/official`;
  await Deno.mkdir(officialProject);
  if (installed[OFFICIAL]) {
    await Deno.symlink(`${installed[OFFICIAL]}/node_modules`, `${officialProject}/node_modules`);
    await Deno.copyFile(`${installed[OFFICIAL]}/package.json`, `${officialProject}/package.json`);
    await Deno.copyFile(`${root}tests/clients/probe/official.mjs`, `${officialProject}/official.mjs`);
  }
  return {
    ...{ node, deno: Deno.execPath(), bun: await findBun(), npmProject, officialProject, work, missing },
    packages: installed,
  };
}

async function findBun(): Promise<string | undefined> {
  const { success, stdout } = await new Deno.Command("bun", { args: ["-p", "process.execPath"] }).output().catch(
    () => ({
      success: false,
      stdout: new Uint8Array(),
    }),
  );
  return success ? new TextDecoder().decode(stdout).trim() : undefined;
}

const isOption = (at: number) => Deno.args[at].startsWith("--") || /^--(cache|logs)$/.test(Deno.args[at - 1] ?? "");
const named = Deno.args.filter((_, at) => !isOption(at));
const options = readOptions(Deno.args.filter((_, at) => isOption(at)), {
  values: ["--cache", "--logs"],
  flags: ["--write"],
});
const all = Object.keys(packages).filter((name) => name !== OFFICIAL);
for (const name of named) {
  if (!all.includes(name)) {
    throw new Error(`Cannot run "${name}": there is no such client; choose from ${all.join(", ")}`);
  }
}
const obstacle = await findObstacle();
if (obstacle) {
  console.log(`Skipped all clients: ${obstacle}`);
  const isRequired = Boolean(Deno.env.get("REQUIRE_ALL"));
  console.log(`0 passed, ${isRequired ? 1 : 0} failed, ${isRequired ? 0 : 1} skipped`);
  Deno.exit(isRequired ? 1 : 0);
}
const logs = options.get("--logs");
if (logs !== undefined) await Deno.mkdir(logs, { recursive: true });
const work = await Deno.realPath(await Deno.makeTempDir({ dir: logs, prefix: "mcp-clients-" }));
const names = named.length ? named : all;
const tools = await prepare(names, { cache: options.get("--cache") ?? toCache(), work });
const request = { tools, names, isWriting: options.has("--write") };
const inside = `${root}tests/clients/inside.ts`;
const code = await runIsolated([tools.deno, "run", "-A", "--no-check", inside, JSON.stringify(request)]);
if (logs !== undefined) console.error(`The homes of the clients and the messages are in ${work}`);
else await Deno.remove(work, { recursive: true });
Deno.exit(code);
