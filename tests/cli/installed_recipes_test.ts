// The recipes as users get them: `mcp new --from`, the commands of the README, and the commands of the Dockerfile in an
// empty folder. The library comes from a registry on this machine, other packages from npm.
import { assert, assertEquals } from "@std/assert";
import { recipes } from "../../src/cli/recipes_bundle.ts";
import { type Client, connect } from "../../src/client/client.ts";
import { TestIssuer } from "../support/issuer.ts";
import { findNode, NODE_VERSIONS } from "../support/node_versions.ts";
import { missingPostgres, startPostgres } from "../support/postgres/server.ts";
import { findFreePort, root, run, start } from "../support/processes.ts";
import { missingRedis, startRedis } from "../support/redis/server.ts";
import { needs, requireAll } from "../support/required.ts";
import { until } from "../support/behaviour.ts";
import { withRegistries } from "../release/user_folder.ts";

const isDeno = typeof Deno !== "undefined"; // Only Deno starts the processes.
const node = isDeno ? await findNode(NODE_VERSIONS[1]) : { missing: "Deno" };
const missing = "missing" in node ? node.missing : missingPostgres ?? missingRedis;

const KEY = "ada-2f6c1e0b9d4a7853";
const SECRET = "a secret of at least thirty-two characters";

/** What a recipe needs to start, and a call that shows that it works. */
interface Trial {
  readonly env?: Readonly<Record<string, string>>;
  /** The port in the Dockerfile. Missing for a server over stdio. */
  readonly port?: number;
  readonly headers?: Readonly<Record<string, string>>;
  check(client: Client): Promise<void>;
}

interface Services {
  readonly redis: number;
  readonly database: string;
  readonly issuer: TestIssuer;
}

/** Returns the trials, by recipe. A port in a command of a Dockerfile is replaced by `port`. */
async function listTrials({ redis, database, issuer }: Services, port: number): Promise<Record<string, Trial>> {
  const headers = { authorization: `Bearer ${KEY}` };
  const resource = `http://127.0.0.1:${port}/mcp`;
  const token = await issuer.sign({ claims: { aud: resource, scope: "notes:read notes:write" } });
  return {
    "deno-file": {
      port: 8000,
      env: { NOTES: "notes.json" },
      async check(client) {
        await client.callTool("write_note", { title: "todo", text: "Buy milk" });
        assertEquals((await client.callTool("read_note", { title: "todo" })).content, [{
          type: "text",
          text: "Buy milk",
        }]);
      },
    },
    "desktop-bundle": {
      env: { NOTES: "." },
      async check(client) {
        assertEquals((await client.callTool("search_notes", { text: "x" })).structuredContent, { names: [] });
      },
    },
    "openapi-user-keys": {
      port: 8000,
      env: { USERS: JSON.stringify({ ada: { key: KEY, apiKey: "key" } }) },
      headers,
      check: async (client) =>
        assertEquals((await client.listTools()).map(({ name }) => name), ["list_tickets", "open_ticket"]),
    },
    "express-redis": {
      port: 8000,
      env: {
        KEYS: JSON.stringify({ ada: KEY }),
        MCP_SECRET: SECRET,
        REDIS_URL: `redis://127.0.0.1:${redis}`,
        PORT: `${port}`,
      },
      headers,
      check: async (client) =>
        assertEquals((await client.listTools()).map(({ name }) => name), ["remember", "list_facts"]),
    },
    "next-oauth-postgres": {
      port: 3000,
      env: { DATABASE_URL: database, MCP_ISSUER: issuer.name, MCP_RESOURCE: resource, MCP_SECRET: SECRET },
      headers: { authorization: `Bearer ${token}` },
      async check(client) {
        await client.callTool("add_note", { text: "Buy milk" });
        assertEquals((await client.callTool("list_notes")).structuredContent, { notes: ["Buy milk"] });
      },
    },
  };
}

/** Returns the commands in the first code block of a README, without comments, and without commands that serve. */
function readCommands(markdown: string): string {
  const [, block = ""] = /```sh\n([^]*?)```/.exec(markdown) ?? [];
  return block.split("\n").filter((line) => !/^(?:npm (?:start|run dev)|deno task start|echo)/.test(line)).join("\n");
}

Deno.test({
  ...isDeno
    ? needs("the recipes work as their READMEs and Dockerfiles say", missing)
    : { name: "the recipes work as their READMEs and Dockerfiles say", ignore: true },
  async fn(t) {
    requireAll(missing);
    if ("missing" in node) return;
    await using issuer = await TestIssuer.start();
    const redis = findFreePort();
    await using _redis = startRedis("--port", `${redis}`);
    await using postgres = startPostgres();
    const database = `postgres://postgres@localhost/postgres?host=${postgres.folder}`;
    await withRegistries(async ({ npm, jsr }) => {
      const home = await Deno.makeTempDir({ prefix: "mcp-recipes-" });
      await Deno.writeTextFile(`${home}/.npmrc`, `@x:registry=${npm.url}\n`);
      const env = {
        NPM_CONFIG_USERCONFIG: `${home}/.npmrc`,
        NPM_CONFIG_CACHE: `${home}/npm`,
        NPM_CONFIG_UPDATE_NOTIFIER: "false",
        DENO_DIR: `${home}/deno`,
        JSR_URL: jsr,
        PATH: `${node.path.replace(/\/[^/]+$/, "")}:${Deno.env.get("PATH")}`,
        DATABASE_URL: database,
      };
      try {
        for (const [recipe, files] of Object.entries(recipes)) {
          const project = `${home}/my-${recipe}`;
          await t.step(`${recipe}: the commands of the README`, async () => {
            const words = ["deno", "run", "-A", `${root}mod.ts`, "new", `my-${recipe}`, "--from", recipe];
            assertEquals((await run(words, { cwd: home })).code, 0);
            const shell = ["sh", "-ec", readCommands(files["README.md"])];
            const { code, stdout, stderr } = await run(shell, { cwd: project, env, timeoutMs: 300_000 });
            assertEquals(code, 0, stdout + stderr);
          });
          if (!("Dockerfile" in files)) continue;
          await t.step(`${recipe}: the commands of the Dockerfile`, async () => {
            const image = `${home}/image-${recipe}`;
            await Deno.mkdir(image);
            let command: readonly string[] = [];
            for (const line of files.Dockerfile.trim().split("\n")) {
              const [, word, rest] = /^(\w+) (.*)$/.exec(line) ?? [];
              if (word === "COPY") {
                const [to = "", ...from] = rest.split(" ").reverse();
                for (const file of from) {
                  const target = to === "./" ? `${image}/` : `${image}/${to}`;
                  assertEquals((await run(["cp", "-r", `${project}/${file}`, target], {})).code, 0, line);
                }
              } else if (word === "RUN") {
                const { code, stdout, stderr } = await run(["sh", "-c", rest], { cwd: image, env, timeoutMs: 600_000 });
                assertEquals(code, 0, `${line}\n${stdout}${stderr}`);
              } else if (word === "CMD") command = JSON.parse(rest);
            }
            await serve({ recipe, command, image, env, services: { redis, database, issuer } });
          });
        }
      } finally {
        await Deno.remove(home, { recursive: true });
      }
    });
  },
});

interface Image {
  readonly recipe: string;
  readonly command: readonly string[];
  readonly image: string;
  readonly env: Readonly<Record<string, string>>;
  readonly services: Services;
}

/** Starts the command of a Dockerfile, and calls the server. */
async function serve({ recipe, command, image, env, services }: Image): Promise<void> {
  const port = findFreePort();
  const trial = (await listTrials(services, port))[recipe];
  assert(trial, recipe);
  const words = command.map((word) =>
    word === `${trial.port}` ? `${port}` : word.replace("--allow-write=/data", "--allow-write=.")
  );
  const [program, ...args] = words[0] === "run" ? ["deno", ...words] : words;
  const all = { ...env, ...trial.env };
  if (trial.port === undefined) {
    await using client = await connect({ command: program, args, cwd: image, env: all });
    return await trial.check(client);
  }
  await using running = await start([program, ...args], { cwd: image, env: all });
  const url = `http://127.0.0.1:${port}/mcp`;
  const open = () => connect(url, { headers: trial.headers }).catch(() => undefined);
  let client = await open();
  await until(async () => Boolean(client ??= await open()), `${recipe} listens`).catch(async (error) => {
    await running[Symbol.asyncDispose]();
    throw new Error((await running.finished).stderr, { cause: error });
  });
  if (client) await trial.check(client);
  await client?.close();
}
