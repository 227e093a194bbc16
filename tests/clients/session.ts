// One conversation of an agent with the fake model, in which the agent calls the probe.
import { root } from "../support/processes.ts";
import type { Agent, Place } from "./agents/agent.ts";
import { type HttpTee, startHttpTee } from "./http_tee.ts";
import { type Recording, type ScriptCall, startModel } from "./model/model.ts";
import { type Ended, runProgram, toEnvironment } from "./programs.ts";
import { type ProbeKind, type ServedProbe, serveProbe } from "./probe/serve_probe.ts";
import type { Tools } from "./tools.ts";
import { toFacts, type WireEntry, type WireFacts } from "./wire.ts";

/** A server, and how the agent reaches it. */
export interface Connection {
  readonly probe: ProbeKind;
  readonly transport: "http" | "stdio";
}

/** What was seen in a conversation. */
export interface Observation {
  readonly connection: Connection;
  readonly recording: Recording;
  readonly wire: WireFacts;
  readonly entries: readonly WireEntry[];
  readonly ended: Ended;
  /** The folder with the logs of the conversation. */
  readonly folder: string;
}

/** Seconds after which a conversation is ended. */
const SECONDS = 240;
const PROMPT = "Call the tools of the server probe.";

const probeFile = `${root}tests/clients/probe/probe.ts`;

/** Holds a conversation. */
export async function converse(
  agent: Agent,
  { connection, script, tools }: {
    readonly connection: Connection;
    readonly script: readonly ScriptCall[];
    readonly tools: Tools;
  },
): Promise<Observation> {
  const { probe, transport } = connection;
  const folder = `${tools.work}/${agent.name}-${probe}-${transport}`;
  await Deno.mkdir(`${folder}/home/tmp`, { recursive: true });
  await Deno.mkdir(`${folder}/project`);
  await using model = await startModel(script);
  const place: Place = {
    home: `${folder}/home`,
    project: `${folder}/project`,
    model: model.url,
    packages: tools.packages[agent.name],
  };
  await agent.writeSettings?.(place);
  const env = { ...toEnvironment({ home: place.home, path: toPath(tools, folder) }), ...agent.toEnv(place) };
  await using server = transport === "http"
    ? await serveOverHttp(probe, { tools, folder })
    : openStdioLog(`${folder}/wire.jsonl`);
  await install(agent, { connection, tools, place, env, url: server.url });
  server.clear();
  const ended = await runProgram(agent.toCommand(place, PROMPT), { cwd: place.project, env, seconds: SECONDS });
  const entries = await server.entries();
  await Deno.writeTextFile(`${folder}/output.txt`, ended.output);
  await Deno.writeTextFile(
    `${folder}/model.json`,
    JSON.stringify(
      { ...model.recording, seen: [...model.recording.seen], called: [...model.recording.called] },
      null,
      1,
    ),
  );
  if (transport === "http") {
    await Deno.writeTextFile(`${folder}/wire.jsonl`, entries.map((entry) => JSON.stringify(entry) + "\n").join(""));
  }
  return { connection, recording: model.recording, wire: toFacts(entries), entries, ended, folder };
}

/** Returns the folders of programs: Node for the clients, and a `deno` that records what it passes on. */
function toPath({ node }: Tools, folder: string): readonly string[] {
  return [`${folder}/bin`, node.replace(/\/[^/]*$/, "")];
}

/** The server of a conversation, and the messages that a tee has recorded. */
interface TeedServer extends AsyncDisposable {
  /** `undefined` if the agent starts the server. */
  readonly url?: string;
  entries(): Promise<readonly WireEntry[]>;
  /** Forgets the messages of `mcp install`, which tests the server. */
  clear(): void;
}

function openStdioLog(path: string): TeedServer {
  return { entries: () => readLines(path), clear() {}, [Symbol.asyncDispose]: () => Promise.resolve() };
}

async function serveOverHttp(
  probe: ProbeKind,
  { tools, folder, env }: {
    readonly tools: Tools;
    readonly folder: string;
    readonly env?: Readonly<Record<string, string>>;
  },
): Promise<TeedServer> {
  const stack = new AsyncDisposableStack();
  const served: ServedProbe = stack.use(
    await serveProbe(toHttpCommand(probe, tools), { env, log: `${folder}/server.txt` }),
  );
  const tee: HttpTee = stack.use(await startHttpTee(() => served.origin));
  return {
    url: `${tee.origin}/mcp`,
    entries: () => Promise.resolve(tee.entries),
    clear: () => void (tee.entries.length = 0),
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

/** Returns the command that serves a probe over HTTP on the port `PORT`. */
export function toHttpCommand(probe: ProbeKind, tools: Tools): readonly string[] {
  const words = toFileCommand(probe, tools);
  return probe === "official" ? [...words, "PORT"] : [...words, "--http", "--port", "PORT"];
}

/** Returns the command that runs the server file on a runtime. Without options, it serves over stdio. */
export function toFileCommand(
  probe: ProbeKind,
  { deno, bun, node, nodeProject, officialProject }: Tools,
): readonly string[] {
  switch (probe) {
    case "deno":
      return [deno, "run", "-A", `${root}mod.ts`, probeFile];
    case "bun":
      return [bun ?? "bun", `${root}mod.ts`, probeFile];
    case "node":
      return [node, `${nodeProject}/node_modules/@x/mcp/bin.js`, `${nodeProject}/probe.ts`];
    case "official":
      return [deno, "run", "-A", "--quiet", "--node-modules-dir=manual", `${officialProject}/official.mjs`];
  }
}

/** Configures the agent with `mcp install`. For stdio, the entry starts the tee, which starts the runtime. */
async function install(
  agent: Agent,
  { connection: { probe, transport }, tools, place, env, url }: {
    readonly connection: Connection;
    readonly tools: Tools;
    readonly place: Place;
    readonly env: Readonly<Record<string, string>>;
    readonly url?: string;
  },
): Promise<void> {
  const target = url ?? (probe === "node" ? `${tools.nodeProject}/probe.ts` : probeFile);
  const isDeno = probe !== "bun" && probe !== "node";
  // The official server has no command to install it; its entry is a URL, which the program of this library writes.
  const [command, ...args] = toFileCommand(probe === "official" ? "deno" : probe, tools).slice(0, -1);
  const words = [...args, "install", target, "--client", agent.installName, "--name", "probe"];
  const path = Deno.env.get("PATH") ?? "";
  const { success, stdout, stderr } = await new Deno.Command(command, {
    args: [...words, ...url === undefined && isDeno ? ["-A"] : []],
    ...{ cwd: place.project, clearEnv: true, env: { ...env, PATH: path, DENO_DIR: toDenoDir() } },
  }).output();
  const text = new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr);
  const [, file] = /(?:in|to) (\S+\.(?:json|toml|yaml))/.exec(text) ?? [];
  if (!success) throw new Error(`Cannot install the probe for ${agent.title}: ${text}`);
  if (transport === "http") return;
  const folder = place.home.replace(/\/home$/, "");
  // The entry contains the path of the runtime. A file that other users share contains only its name.
  const tee = await writeTee(`${folder}/bin/${probe}`, { folder, command, tools });
  if (!file) throw new Error(`Cannot find the configuration of ${agent.title}: mcp install printed ${text}`);
  const content = await Deno.readTextFile(file);
  await Deno.writeTextFile(file, content.replaceAll(command, tee));
}

/** Writes a program that starts the runtime behind the tee. Returns the path of the program. */
async function writeTee(
  path: string,
  { folder, command, tools: { deno } }: { readonly folder: string; readonly command: string; readonly tools: Tools },
): Promise<string> {
  await Deno.mkdir(`${folder}/bin`, { recursive: true });
  const tee = `${root}tests/clients/stdio_tee.ts`;
  const text = `#!/bin/sh\nexport DENO_DIR='${toDenoDir()}'\n` +
    `exec '${deno}' run -A --no-check '${tee}' '${folder}/wire.jsonl' '${command}' "$@"\n`;
  await Deno.writeTextFile(path, text, { mode: 0o755 });
  return path;
}

/** Returns the folder in which Deno keeps packages, because a new home has none. */
export function toDenoDir(): string {
  return Deno.env.get("DENO_DIR") ?? `${Deno.env.get("XDG_CACHE_HOME") ?? `${Deno.env.get("HOME")}/.cache`}/deno`;
}

async function readLines(path: string): Promise<readonly WireEntry[]> {
  const text = await Deno.readTextFile(path).catch(() => "");
  return text.split("\n").flatMap((line) => line ? [JSON.parse(line)] : []);
}
