// Installs the packed npm package into an empty project.
import { assertEquals } from "@std/assert";
import config from "../../deno.json" with { type: "json" };
import { root, run } from "../support/processes.ts";
import { buildNpmPackage, INSTALLED } from "./npm_package.ts";
import { serveNpmPackages } from "./npm_registry.ts";

/** Runs a program that must succeed without output on standard error. Returns its standard output. */
export async function runAll(words: readonly string[], cwd: string): Promise<string> {
  const { code, stdout, stderr } = await run(words, { cwd, timeoutMs: 60_000 });
  assertEquals([code, stderr], [0, ""], `${words.join(" ")} printed ${stdout}`);
  return stdout;
}

/** The packages that are installed with the package, and their own dependencies. */
export const DEPENDENCIES: readonly string[] = [
  ...INSTALLED,
  ...["@scalar/helpers", "@scalar/openapi-types"],
];

/** Installs the packed package and its dependencies into an empty project. Returns the installed package's folder. */
export async function install(folder: string, project: string): Promise<string> {
  await buildNpmPackage(root, `${folder}/package`);
  await runAll(["bun", "pm", "pack", "--quiet", "--filename", `${folder}/package.tgz`], `${folder}/package`);
  await Deno.mkdir(project);
  await Deno.writeTextFile(`${project}/package.json`, '{ "type": "module" }');
  await using registry = await serveNpmPackages({ others: DEPENDENCIES });
  const env = { NPM_CONFIG_REGISTRY: registry.url };
  const added = await run(["bun", "add", `${folder}/package.tgz`], { cwd: project, env });
  assertEquals(added.code, 0, added.stderr);
  await Deno.mkdir(`${project}/node_modules/@opentelemetry`);
  for (const name of ["zod", "@opentelemetry/api"]) {
    await Deno.symlink(`${root}node_modules/${name}`, `${project}/node_modules/${name}`);
  }
  return `${project}/node_modules/${config.name}`;
}
