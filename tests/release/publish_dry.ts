// Checks the package as it will be published: copies the files to publish into a temporary folder, and runs `deno
// publish --dry-run` there.
//
// deno task publish:dry
import { preparePackage } from "./prepare.ts";

/**
 * The npm copy of Deno's standard library, for tests only. It has no types, and the Deno project does not maintain it.
 */
const MIRROR = "deno-std";

/** Returns the files in a folder that contain the name of the npm copy. */
async function findMirror(folder: string): Promise<readonly string[]> {
  const found: string[] = [];
  for await (const { name, isDirectory } of Deno.readDir(folder)) {
    const path = `${folder}/${name}`;
    if (isDirectory) found.push(...await findMirror(path));
    else if (/\.(ts|json)$/.test(name) && (await Deno.readTextFile(path)).includes(MIRROR)) found.push(path);
  }
  return found;
}

const folder = await Deno.makeTempDir({ prefix: "mcp-publish-" });
try {
  await preparePackage(new URL("../../", import.meta.url).pathname, `${folder}/package`);
  const named = await findMirror(`${folder}/package`);
  if (named.length) {
    console.error(
      `Cannot publish: ${named.join(", ")} name ${MIRROR}, which is only for tests; import another npm package`,
    );
    Deno.exit(1);
  }
  const { code } = await new Deno.Command("deno", {
    args: ["publish", "--quiet", "--dry-run", "--allow-dirty"],
    cwd: `${folder}/package`,
  }).spawn().status;
  if (code) Deno.exit(code);
} finally {
  await Deno.remove(folder, { recursive: true });
}
