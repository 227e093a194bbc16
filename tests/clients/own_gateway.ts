// `mcp gateway` in front of two probes: `program`, which the gateway starts, and `remote`, which is served over HTTP.
import { toDenoDir } from "../support/processes.ts";
import { toFile, toHttpCommand, toProgram } from "./probe/commands.ts";
import { serveProbe } from "./probe/serve_probe.ts";
import type { Tools } from "./tools.ts";

/** An option of the gateway. The lock file contains the probes before their lists change. */
export type GatewayOption = "search" | "lock";

/** A gateway that can be started. Disposing ends the probe over HTTP. */
export interface PreparedGateway extends AsyncDisposable {
  /** The command that starts the gateway over stdio. */
  readonly words: readonly string[];
}

/** Serves the probe `remote`, and writes the files of the gateway into a folder. */
export async function prepareGateway(
  options: readonly GatewayOption[],
  { tools, folder }: { readonly tools: Tools; readonly folder: string },
): Promise<PreparedGateway> {
  const probe = await serveProbe(toHttpCommand("deno", tools), { log: `${folder}/remote.txt` });
  const writeServers = async (env: Readonly<Record<string, string>>) => {
    const [command, ...args] = [...toProgram("deno", tools), toFile("deno", tools)];
    const program = { command, args, env: { DENO_DIR: toDenoDir(), ...env } };
    const mcpServers = { program, remote: { type: "http", url: `${probe.origin}/mcp` } };
    await Deno.writeTextFile(`${folder}/servers.json`, JSON.stringify({ mcpServers }, null, 2));
  };
  await writeServers({});
  const lock = `${folder}/mcp.lock.json`;
  if (options.includes("lock")) {
    await writeLock(lock, { tools, folder });
    await writeServers({ PROBE_NEW: "1" });
  }
  return {
    words: [
      ...[...toProgram("deno", tools), "gateway", `${folder}/servers.json`],
      ...options.flatMap((option) => option === "lock" ? ["--lock", lock] : [`--${option}`]),
    ],
    [Symbol.asyncDispose]: () => probe[Symbol.asyncDispose](),
  };
}

/** Writes a lock file. The first run prints what the second run accepts. */
async function writeLock(
  lock: string,
  { tools, folder }: { readonly tools: Tools; readonly folder: string },
): Promise<void> {
  const [command, ...args] = toProgram("deno", tools);
  const run = async (accepted: readonly string[]) => {
    const words = [...args, "lock", "--servers", `${folder}/servers.json`, ...accepted];
    const { stdout, stderr } = await new Deno.Command(command, { args: words, cwd: folder }).output();
    return new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr);
  };
  const review = await run([]);
  const words = [...review.matchAll(/ to accept all: (--accept) (\S+)$/gm)].flatMap((
    [, option, word],
  ) => [option, word]);
  const text = await run(words);
  if (await Deno.stat(lock).then(() => true, () => false)) return;
  throw new Error(`Cannot write ${lock}: ${text}`);
}
