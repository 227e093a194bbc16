// The other libraries to measure. Each run installs the libraries into a temporary folder.
import type { Manner } from "./asks.ts";

export interface Peer {
  readonly name: string;
  readonly file: string;
  readonly package: string;
  /** The mode of requests that the library accepts without a session. */
  readonly manner: Manner;
  /** The program argument that makes the library serve sessions. */
  readonly session: string;
  readonly stdio: boolean;
}

const known = [
  {
    name: "TS SDK",
    file: "sdk.ts",
    package: "@modelcontextprotocol/server",
    manner: "modern",
    session: "session",
    stdio: true,
  },
  { name: "tmcp", file: "tmcp.ts", package: "tmcp", manner: "modern", session: "call", stdio: true },
  { name: "mcp-lite", file: "mcp_lite.ts", package: "mcp-lite", manner: "plain", session: "session", stdio: false },
] as const;

/** Installs the other libraries, and returns each library with the path of its program. */
export async function installPeers(): Promise<{ readonly peers: readonly Peer[]; remove(): Promise<void> }> {
  const here = new URL(".", import.meta.url).pathname;
  const folder = await Deno.makeTempDir({ prefix: "mcp-bench-" });
  for (const part of ["peers", "programs"]) {
    await Deno.mkdir(`${folder}/${part}`);
    for (const { name } of Deno.readDirSync(here + part)) {
      await Deno.copyFile(`${here}${part}/${name}`, `${folder}/${part}/${name}`);
    }
  }
  await Deno.rename(`${folder}/peers/package.json`, `${folder}/package.json`);
  const { success, stderr } = await new Deno.Command(Deno.execPath(), { args: ["install", "--quiet"], cwd: folder })
    .output();
  if (!success) throw new Error(`Cannot install the peers: ${new TextDecoder().decode(stderr)}`);
  const peers = known.map((peer) => {
    const { version } = JSON.parse(Deno.readTextFileSync(`${folder}/node_modules/${peer.package}/package.json`));
    return { ...peer, name: `${peer.name} ${version}`, file: `${folder}/peers/${peer.file}` };
  });
  return { peers, remove: () => Deno.remove(folder, { recursive: true }) };
}
