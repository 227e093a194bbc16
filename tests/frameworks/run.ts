// Builds and starts an app of each framework with the packed library, and probes it. If no names are given, writes the
// outcomes into record.json and into the page with the table.
//
// deno task frameworks [NAME…]
import config from "../../deno.json" with { type: "json" };
import { buildNpmPackage } from "../release/npm_package.ts";
import { runInLanes } from "../support/lanes.ts";
import { findNode } from "../support/node_versions.ts";
import { findPackages, type FoundPackages } from "../support/npm_packages.ts";
import { findFreePort, root, run } from "../support/processes.ts";
import { createHostFetch } from "./host_fetch.ts";
import { BEHAVIOURS, type Outcome, probe } from "./probe.ts";
import { ENV, NODE, type Project, projects, withoutSettings, writeProject } from "./projects.ts";
import { startApp } from "./start_app.ts";
import { type Entry, readRecord, toNotes, toVersions, writeRecord } from "./record.ts";

const HOST = "mcp.example.com";
const BUILD_MS = 600_000;

interface Paths {
  readonly node: string;
  /** The folder with the npm package of the library. */
  readonly library: string;
}

const all: Readonly<Record<string, Project>> = { ...projects, ...withoutSettings };

/** The installed packages, by their names and versions. Apps with the same packages share a folder. */
const installs = new Map<string, Promise<FoundPackages>>();

/** Builds an app, starts it, and probes it. */
async function probeProject(project: Project, { node, library }: Paths): Promise<Outcome> {
  const key = project.packages.join();
  const install = installs.get(key) ?? findPackages("framework", project.packages);
  installs.set(key, install);
  const found = await install;
  if ("missing" in found) throw new Error(found.missing);
  const folder = await Deno.makeTempDir({ dir: found.folder, prefix: "site-" });
  try {
    const server = await Deno.readTextFile(`${root}tests/frameworks/probe_server.ts`);
    await writeProject(project, { folder, server, library });
    const port = findFreePort();
    const toWords = (words: readonly string[]) =>
      words.map((word) => word.replace("PACKAGES", `${found.folder}/node_modules`).replace("PORT", `${port}`));
    if (project.build) {
      const built = await run([node, ...toWords(project.build)], { cwd: folder, env: ENV, timeoutMs: BUILD_MS });
      if (built.code) throw new Error(`The build failed:\n${built.stdout}${built.stderr}`);
    }
    const words = [project.runtime ?? node, ...toWords(project.start)];
    await using _running = await startApp(words, { cwd: folder, port, env: project.env });
    return await probe(`http://${HOST}/mcp`, createHostFetch(port, HOST));
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** Returns the behaviours that differ from the expectation, each with what happened. */
function findSurprises({ faults = {} }: Project, outcome: Outcome): readonly string[] {
  return BEHAVIOURS.flatMap((behaviour) => {
    const expected = faults[behaviour] ?? "passed";
    return outcome[behaviour].includes(expected) ? [] : [`${behaviour}: ${outcome[behaviour]}`];
  });
}

function toEntry(project: Project): Entry {
  const runtime = project.runtime === "bun" ? `Bun ${readBunVersion()}` : `Node ${NODE}`;
  return {
    versions: toVersions(project),
    runtime,
    date: new Date().toISOString().slice(0, 10),
    notes: toNotes(project),
  };
}

function readBunVersion(): string {
  const { stdout } = new Deno.Command("bun", { args: ["--version"] }).outputSync();
  return new TextDecoder().decode(stdout).trim();
}

async function main(): Promise<void> {
  const names = Deno.args.length ? Deno.args : Object.keys(all);
  for (const name of names) {
    if (name in all) continue;
    throw new Error(`Cannot probe "${name}": there is no such app; choose from ${Object.keys(all).join(", ")}`);
  }
  const node = await findNode(NODE);
  if ("missing" in node) throw new Error(node.missing);
  const folder = await Deno.makeTempDir({ prefix: "mcp-frameworks-" });
  const entries = new Map(Object.entries(await readRecord()));
  let failed = 0;
  try {
    const library = `${folder}/${config.name}`;
    await buildNpmPackage(root, library);
    await runInLanes(names, async (name) => {
      const begin = performance.now();
      const outcome = probeProject(all[name], { node: node.path, library });
      const surprises = await outcome.then(
        (outcome) => findSurprises(all[name], outcome),
        (error) => [error instanceof Error ? error.message : String(error)],
      );
      const seconds = ((performance.now() - begin) / 1000).toFixed(0);
      console.log([`${surprises.length ? "FAILED" : "ok"} ${name} (${seconds} s)`, ...surprises].join("\n  "));
      if (surprises.length) failed++;
      else if (name in projects) entries.set(name, toEntry(all[name]));
    });
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
  if (!Deno.args.length) {
    await writeRecord(Object.fromEntries(
      Object.keys(projects).flatMap((name) => {
        const entry = entries.get(name);
        return entry ? [[name, entry]] : [];
      }),
    ));
  }
  console.log(`${names.length - failed} passed, ${failed} failed`);
  Deno.exit(failed ? 1 : 0);
}

if (import.meta.main) await main();
