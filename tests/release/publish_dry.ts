// Checks the package in its published form: writes the prepared copy into a temporary folder, and runs `deno publish`
// with --dry-run there.
//
//   deno task publish:dry
import { preparePackage } from "./prepare.ts";

/**
 * The npm copy of Deno's standard library, which only the tests use. It has no types, and the Deno project does not
 * maintain it.
 */
const MIRROR = "deno-std";

/** The files of a folder that name the npm copy. */
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
    console.error(`Cannot publish: ${named.join(", ")} name ${MIRROR}, which is for tests; import a package of npm`);
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
