// The first minutes of a user with an empty folder and an empty home folder: the commands of the documentation, with the
// package from a registry.
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import config from "../../deno.json" with { type: "json" };
import { sentence } from "../support/messages.ts";
import { findNode, NODE_VERSIONS } from "../support/node_versions.ts";
import { needs, requireAll } from "../support/required.ts";
import { readRows, type Runtime, writeFiles } from "./pages.ts";
import { findPage, inFolder, type UserFolder, withRegistries } from "./user_folder.ts";

const isDeno = typeof Deno !== "undefined"; // Only Deno starts the processes of all runtimes.
/** A version of Node that is too old for the package. */
const OLD = "20.20.2";

const nodes = isDeno ? await Promise.all([...NODE_VERSIONS, OLD].map(findNode)) : [];
const missing = nodes.flatMap((node) => "missing" in node ? node.missing : [])[0];

/** The command line as the pages show it. */
const PROGRAMS: Readonly<Record<Runtime, string>> = {
  Deno: "deno run -A jsr:@x/mcp",
  Bun: "bunx --bun @x/mcp",
  Node: "npx @x/mcp",
};

/** Runs the commands of "Getting started" that create a folder, write the server, call its tool and test it. */
async function followGettingStarted({ shell, path }: UserFolder, on: Runtime): Promise<void> {
  const page = await findPage("docs/guides/getting-started.md");
  const setup = readRows(page, on).flatMap(({ commands }) => commands).join("\n");
  assert(setup.includes("@x/mcp"), setup);
  const made = await shell(`set -e\n${setup}`);
  assertEquals(made.code, 0, made.stdout + made.stderr);
  await writeFiles(page, path);
  const called = await shell(`${PROGRAMS[on]} call server.ts forecast city=Oslo`);
  assertEquals([called.code, called.stdout], [0, "Tomorrow in Oslo: snow\n"], called.stderr);
  // Node prints a warning about the type of the package unless the commands have set it. Deno prints its downloads.
  if (on !== "Deno") assertEquals(called.stderr, "");
  const [, test = ""] = new RegExp(`^(\\S.*\\S) +# ${on}$`, "m").exec(page.markdown.split("## Test the server")[1]) ??
    [];
  const tested = await shell(test);
  assertEquals(tested.code, 0, tested.stdout + tested.stderr);
}

/** Returns the indented commands after a text that a command has printed. */
function readCommands(printed: string, after: string): string {
  const [, commands = ""] = new RegExp(`${after}:\\n\\n((?: {2}\\S.*\\n)+)`).exec(printed) ?? [];
  return commands;
}

Deno.test(
  isDeno
    ? needs("a user with an empty folder on Deno, Bun and Node can follow the documentation", missing)
    : { name: "a user with an empty folder on Deno, Bun and Node can follow the documentation", ignore: true },
  async (t) => {
    requireAll(missing);
    const paths = nodes.map((node) => "path" in node ? node.path.replace(/\/[^/]+$/, "") : "");
    const readme = await findPage("README.md");
    await withRegistries(async (registries) => {
      for (const [at, version] of NODE_VERSIONS.entries()) {
        const inEmpty = (use: (folder: UserFolder) => Promise<void>) => inFolder(registries, paths[at], use);
        await t.step(
          `Node ${version}: getting started`,
          () => inEmpty((folder) => followGettingStarted(folder, "Node")),
        );
        await t.step(
          `Node ${version}: README in a folder without package.json`,
          () =>
            inEmpty(async ({ shell, path: folder }) => {
              assertEquals((await shell(`npm install ${config.name} zod`)).code, 0);
              await writeFiles(readme, folder);
              const { code, stdout, stderr } = await shell("npx @x/mcp call server.ts add a=2 b=3");
              assertEquals([code, stdout], [0, "5\n"], stderr);
              assertEquals((await shell("node --test")).code, 0);
            }),
        );
        await t.step(
          `Node ${version}: the error for a folder by npm init names package.json and the remedy`,
          () =>
            inEmpty(async ({ shell, path: folder }) => {
              assertEquals((await shell(`npm init -y && npm install ${config.name} zod`)).code, 0);
              await writeFiles(readme, folder);
              // The file is invalid for the package, also if another file imports it.
              await Deno.writeTextFile(`${folder}/list.ts`, 'export { default } from "./server.ts";\n');
              await Deno.writeTextFile(`${folder}/main.mts`, 'export { default } from "./server.ts";\n');
              await Deno.mkdir(`${folder}/deep/er`, { recursive: true });
              await Deno.writeTextFile(`${folder}/deep/er/await.ts`, "export default await Promise.resolve([]);\n");
              for (const file of ["server.ts", "list.ts", "main.mts", "deep/er/await.ts"]) {
                const { code, stderr } = await shell(`npx @x/mcp call ${file} add a=2 b=3`);
                assertEquals(code, 2, stderr);
                const [last = ""] = stderr.trim().split("\n").slice(-1);
                assertEquals(last, sentence(`${folder}/package.json`, "npm pkg set type=module"));
                assertEquals(stderr.includes("Fix the file"), false);
              }
              await Deno.writeTextFile(
                `${folder}/old.cts`,
                "import process from 'node:process';\nexport default [process];\n",
              );
              const old = await shell("npx @x/mcp check old.cts");
              assertStringIncludes(old.stderr, sentence("old.ts"));
              const { code, stdout, stderr } = await shell(
                "npm pkg set type=module && npx @x/mcp call server.ts add a=2 b=3",
              );
              assertEquals([code, stdout], [0, "5\n"], stderr);
              // A file with another error is at fault.
              await Deno.writeTextFile(`${folder}/broken.ts`, "export default [;\n");
              const broken = await shell("npx @x/mcp check broken.ts");
              assertEquals(broken.stderr.trim().split("\n").at(-1), "Fix the file.");
            }),
        );
        await t.step(`Node ${version}: the commands that new prints work`, () =>
          inEmpty(async ({ shell }) => {
            assertEquals((await shell("npm init -y")).code, 0);
            const made = await shell("npx --yes @x/mcp new fresh");
            assertEquals(made.code, 0, made.stderr);
            const setup = readCommands(made.stderr, "Set up the folder");
            assert(setup.includes("npm install"), made.stderr);
            assertEquals((await shell(`set -e\n${setup}`)).code, 0);
            const tested = await shell(readCommands(made.stderr, "Run the test"));
            assertEquals(tested.code, 0, tested.stdout + tested.stderr);
            const again = await shell("npx @x/mcp new other --auth");
            assertEquals(readCommands(again.stderr, "Set up the folder"), "");
            assertEquals((await shell(readCommands(again.stderr, "Run the test"))).code, 0);
          }));
      }
      await t.step("install starts a Node from npx's cache with npx, at its exact version", async () => {
        const [, version] = NODE_VERSIONS;
        await inFolder(registries, paths[1], async ({ shell, path, home }) => {
          assertEquals((await shell(`npm install ${config.name}`)).code, 0);
          await Deno.writeTextFile(`${path}/server.ts`, "export default [];\n");
          // A copy, because Node resolves a symbolic link to its own path.
          await Deno.mkdir(`${home}/_npx`);
          await Deno.copyFile(`${paths[1]}/node`, `${home}/_npx/node`);
          const command = `${home}/_npx/node node_modules/@x/mcp/bin.js`;
          const { stdout, stderr } = await shell(
            `${command} install server.ts --client claude-desktop --dry-run --no-check`,
          );
          assert(stdout, stderr);
          const [entry] = Object.values<{ command: string; args: string[] }>(JSON.parse(stdout).mcpServers);
          assertEquals([entry.command, ...entry.args.slice(0, 2)], ["npx", "-y", `node@${version}`]);
        });
      });
      await t.step(
        "Deno: getting started",
        () => inFolder(registries, paths[0], (folder) => followGettingStarted(folder, "Deno")),
      );
      await t.step("Bun: getting started, and the commands that new prints", async () => {
        await inFolder(registries, paths[0], (folder) => followGettingStarted(folder, "Bun"));
        await inFolder(registries, paths[0], async ({ shell }) => {
          const made = await shell("bunx --bun @x/mcp new fresh");
          assertEquals(made.code, 0, made.stderr);
          assertEquals((await shell(`set -e\n${readCommands(made.stderr, "Set up the folder")}`)).code, 0);
          const tested = await shell(readCommands(made.stderr, "Run the test"));
          assertEquals(tested.code, 0, tested.stdout + tested.stderr);
        });
      });
      await t.step(`an older version of Node is refused before anything else`, async () => {
        await inFolder(registries, paths[2], async ({ shell }) => {
          assertEquals((await shell(`npm install ${config.name}`)).code, 0);
          for (const command of ["--help", "call server.ts", "login https://mcp.example.com/mcp"]) {
            const { code, stdout, stderr } = await shell(`npx @x/mcp ${command}`);
            assertEquals([code, stdout, stderr.trim()], [2, "", sentence(OLD, "22.18")]);
          }
          assertEquals((await shell("bunx --bun @x/mcp --version")).stdout, `${config.version}\n`);
        });
      });
    });
  },
);
