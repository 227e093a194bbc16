// A new user: an empty folder, an empty home folder, and registries on loopback with the package.
import { assert } from "@std/assert";
import { type Finished, root, run } from "../support/processes.ts";
import { DEPENDENCIES, install } from "./npm_install.ts";
import { type NpmRegistry, serveNpmPackages } from "./npm_registry.ts";
import { type Page, readPages } from "./pages.ts";
import { serveRegistry } from "./registry.ts";

/** Packages that the package on JSR imports, and that its programs need. */
const OF_JSR = ["@opentelemetry/api", "acorn", "jsonc-parser", "smol-toml", "yaml"];

/** The registries of npm and JSR. Both have the package. */
export interface Registries {
  readonly npm: NpmRegistry;
  readonly jsr: string;
}

/** A terminal in an empty folder. */
export interface UserFolder {
  readonly path: string;
  /** The empty home folder, which all commands share. */
  readonly home: string;
  readonly env: Readonly<Record<string, string>>;
  /** Runs a command in a shell. */
  shell(command: string): Promise<Finished>;
}

/** Runs `use` in an empty folder whose programs come from the folder `programs` first. */
export async function inFolder(
  { npm, jsr }: Registries,
  programs: string,
  use: (folder: UserFolder) => Promise<void>,
): Promise<void> {
  const outside = await Deno.realPath(await Deno.makeTempDir({ prefix: "mcp-first-use-" }));
  const path = `${outside}/weather`;
  const home = `${outside}/home`;
  for (const folder of [path, home]) await Deno.mkdir(folder);
  const env = {
    HOME: home,
    XDG_CACHE_HOME: `${home}/.cache`,
    JSR_URL: jsr,
    DENO_DIR: `${home}/.cache/deno`,
    NPM_CONFIG_REGISTRY: npm.url,
    NPM_CONFIG_CACHE: npm.cache,
    NPM_CONFIG_UPDATE_NOTIFIER: "false",
    BUN_INSTALL_CACHE_DIR: `${npm.cache}/bun`,
    PATH: `${programs}:${Deno.env.get("PATH")}`,
  };
  try {
    await use({ path, home, env, shell: (command) => run(["sh", "-c", command], { cwd: path, env }) });
  } finally {
    await Deno.remove(outside, { recursive: true });
  }
}

/** Runs `use` with registries that have the package and everything that it installs. */
export async function withRegistries(use: (registries: Registries) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir({ prefix: "mcp-first-use-package-" });
  try {
    const installed = await install(folder, `${folder}/project`);
    const own = { folder: installed, tarball: `${folder}/package.tgz` };
    await using npm = await serveNpmPackages({ own, others: [...DEPENDENCIES, ...OF_JSR, "zod"] });
    await using jsr = await serveRegistry(root.replace(/\/$/, ""));
    await use({ npm, jsr: jsr.url });
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** Returns a page of the documentation. Throws if the page does not exist. */
export async function findPage(path: string): Promise<Page> {
  const page = (await readPages()).find((each) => each.path === path);
  assert(page, `${path} is missing`);
  return page;
}
