// One conversation of an agent with the fake model, in which the agent calls the probe.
import { toDenoDir } from "../support/processes.ts";
import type { Agent, Place } from "./agents/agent.ts";
import { toEvidence } from "./evidence.ts";
import { type Recording, startModel } from "./model/model.ts";
import type { Observation } from "./observation.ts";
import { toFile, toProgram } from "./probe/commands.ts";
import { type Ended, runProgram, toEnvironment } from "./programs.ts";
import { script } from "./script.ts";
import { toGatewayScript } from "./gateway_script.ts";
import { type Connection, openServer, type TeedServer, toName } from "./teed_server.ts";
import type { Tools } from "./tools.ts";
import { toFacts } from "./wire.ts";

/** Seconds after which a conversation is ended. */
const SECONDS = 240;
/** The prompt of every conversation. */
export const PROMPT = "Call the tools of the server probe.";

/** What a client needs for one of several attempts. */
export interface Attempt {
  readonly tools: Tools;
  /** The number of the attempt, from 1. Each attempt has a folder of its own. */
  readonly attempt: number;
}

/** Holds a conversation. `mcp install` configures the agent. */
export async function converse(
  agent: Agent,
  connection: Connection,
  { tools, attempt }: Attempt,
): Promise<Observation> {
  const folder = `${tools.work}/${agent.name}-${toName(connection)}-${attempt}`;
  const place = await createPlace(agent, { tools, folder });
  await using model = await startModel(connection.gateway ? toGatewayScript(connection.gateway) : script);
  await using server = await openServer(connection, { tools, folder });
  const env = await configure(agent, { connection, server, tools, place: { ...place, model: model.url } });
  const words = agent.toCommand({ ...place, model: model.url }, PROMPT);
  const ended = await runProgram(words, { cwd: place.project, env, seconds: SECONDS });
  const entries = await server.entries();
  await writeLogs(folder, ended, model.recording);
  return {
    ...{ evidence: toEvidence(model.recording, toFacts(entries)), entries, output: ended.output },
    unfinished: toUnfinished(model.recording, ended),
  };
}

/** Creates the home and the working directory of an agent. */
export async function createPlace(
  { name }: Pick<Agent, "name">,
  { tools, folder }: { readonly tools: Tools; readonly folder: string },
): Promise<Omit<Place, "model">> {
  const place = { home: `${folder}/home`, project: `${folder}/project`, packages: tools.packages[name] };
  await Deno.mkdir(`${place.home}/tmp`, { recursive: true });
  await Deno.mkdir(place.project);
  return place;
}

/** Configures the model and the server of an agent. Returns the environment in which the agent runs. */
export async function configure(
  agent: Agent,
  { connection: { probe }, server, tools, place }: {
    readonly connection: Connection;
    readonly server: TeedServer;
    readonly tools: Tools;
    readonly place: Place;
  },
): Promise<Readonly<Record<string, string>>> {
  await agent.writeSettings?.(place);
  // A file that other users share contains only the name of the runtime, which is found in the first folder.
  const tee = server.runtime?.replace(/\/[^/]*$/, "");
  const path = [tee, tools.node.replace(/\/[^/]*$/, "")].flatMap((folder) => folder === undefined ? [] : [folder]);
  const env = { ...toEnvironment({ home: place.home, path }), ...agent.toEnv(place) };
  // The program of this library also writes the URL of the official server.
  const [command, ...args] = toProgram(probe === "official" ? "deno" : probe, tools);
  const target = server.url ?? toFile(probe, tools);
  const permissions = server.url === undefined && probe === "deno" ? ["-A"] : [];
  const { success, stdout, stderr } = await new Deno.Command(command, {
    args: [...args, "install", target, "--client", agent.installName, "--name", "probe", ...permissions],
    cwd: place.project,
    clearEnv: true,
    env: { ...env, PATH: toInstallPath(probe, tools), DENO_DIR: toDenoDir() },
  }).output();
  const text = new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr);
  if (!success) throw new Error(`Cannot install the probe for ${agent.title}: ${text}`);
  if (server.runtime !== undefined) {
    const [, file] = /(?:in|to) (\S+\.(?:json|toml|yaml))/.exec(text) ?? [];
    if (!file) throw new Error(`Cannot find the configuration of ${agent.title}: mcp install printed ${text}`);
    await Deno.writeTextFile(file, (await Deno.readTextFile(file)).replaceAll(command, server.runtime));
  }
  server.clear();
  return env;
}

/** Returns a PATH with the runtimes themselves, because `mcp install` starts the server to test it. */
function toInstallPath(probe: string, { node }: Tools): string {
  const path = Deno.env.get("PATH") ?? "";
  return probe === "node" ? `${node.replace(/\/[^/]*$/, "")}:${path}` : path;
}

/** Returns the reason why a client did not end by itself. */
export function toUnfinished({ isDone, turns, unknown }: Recording, { code, isLate }: Ended): string | undefined {
  if (isDone && !isLate) return;
  return `${isLate ? "killed" : `exit code ${code}`} after ${turns.length} requests to the model` +
    (unknown.length ? `, and requests for ${[...new Set(unknown)].join(", ")}` : "");
}

/** Writes the output of a client, and what the model has seen. */
export async function writeLogs(folder: string, { output }: Ended, recording: Recording): Promise<void> {
  const { seen, called } = recording;
  const text = JSON.stringify({ ...recording, seen: [...seen], called: [...called] }, null, 1);
  await Deno.writeTextFile(`${folder}/output.txt`, output);
  await Deno.writeTextFile(`${folder}/model.json`, text);
}
