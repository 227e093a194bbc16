// `mcp openapi` lists operations and writes servers, whose tools call an API on this machine.
import { assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { readFile, rename, rm, symlink, writeFile } from "node:fs/promises";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { listNames, testProcesses, withFiles } from "../support/command_line.ts";
import { sentence } from "../support/messages.ts";
import { root, run } from "../support/processes.ts";
import { withApi } from "../ready/api.ts";
import { runtimes } from "./runtimes.ts";
import { runHere } from "./run_here.ts";
import { inTerminal } from "./servers.ts";
import { assertRefused } from "./refused.ts";

const pets = `openapi: 3.0.3
info: { title: Pets, version: 1.0.0 }
servers: [{ url: https://pets.example.com/v1 }]
security: [{ token: [] }]
paths:
  /pets/{id}:
    parameters: [{ name: id, in: path, required: true, description: Id, schema: { type: integer } }]
    get: { operationId: getPet, summary: Returns a pet, tags: [pets] }
    delete: { operationId: deletePet, summary: Deletes a pet, tags: [pets] }
  /stores:
    get: { operationId: listStores, summary: Lists stores, tags: [stores], security: [{ cert: [] }] }
components:
  securitySchemes:
    token: { type: http, scheme: bearer }
    cert: { type: mutualTLS }
`;

const env = { MCP_PETS_TOKEN: "secret" };

/** A document whose parts are in other files: beside it, in a folder below it, and outside of its folder. */
const divided = {
  "api/shop.yaml": `openapi: 3.1.0
info: { title: Shop, version: 1.0.0 }
x-page: &page { name: page, in: query, schema: { type: integer } }
x-sorted: &sorted { <<: *page, name: sort, schema: { type: string } }
paths:
  /items: { $ref: "paths/items.yaml" }
  /orders:
    post: { operationId: order, requestBody: { $ref: "./bodies.json#/Order" } }
    get: { operationId: orders, parameters: [*sorted] }
  /outside: { get: { operationId: outside, parameters: [{ $ref: "../secret.yaml#/Page" }] } }
  /linked: { get: { operationId: linked, parameters: [{ $ref: "link.yaml#/Page" }] } }
  /gone: { $ref: "paths/gone.yaml" }
  /remote: { get: { operationId: remote, parameters: [{ $ref: "https://shop.example.com/all.yaml#/Page" }] } }
`,
  "api/paths/items.yaml": `get:
  operationId: items
  parameters: [{ $ref: "#/x-shared/size" }, { $ref: "../shop.yaml#/x-page" }]
x-shared: { size: { name: size, in: query, schema: { $ref: "../schemas/a~b%25.yaml" } } }
`,
  "api/schemas/a~b%.yaml": "{ type: integer, description: Number of items }",
  "api/bodies.json": JSON.stringify({
    Order: { required: true, content: { "application/json": { schema: { $ref: "#/Item" } } } },
    Item: { type: "object", required: ["id"], properties: { id: { type: "string" } } },
  }),
  "secret.yaml": "Page: { name: page, in: query, schema: {} }",
};

/** Serves the document and its API on this machine. The API responds with the requests that it gets. */
async function withPets(use: (host: string) => Promise<void>): Promise<void> {
  await withApi(({ url, headers, method }) => {
    const { pathname } = new URL(url);
    if (pathname === "/openapi.yaml") return new Response(pets);
    // Results contain no credentials.
    return Response.json({ request: `${method} ${pathname}`, isAda: headers.get("authorization") === "Bearer secret" });
  }, use);
}

const openapi = (cwd: string, ...words: readonly string[]) => runHere(["openapi", ...words], { cwd });

Deno.test("openapi lists the operations of a document, and what a server needs", async () => {
  await withFiles({ "pets.yaml": pets }, async (cwd) => {
    const { code, stdout, stderr } = await openapi(cwd, "pets.yaml");
    assertEquals(code, 0, stderr);
    assertMatch(stdout, /^Pets 1\.0\.0, OpenAPI 3\.0\.3: 2 tools, about \d+ tokens$/m);
    assertMatch(stdout, /^ {2}getPet {5}about \d+ tokens {2}GET \/pets\/\{id\}$/m);
    assertMatch(stdout, /^Left out:\n.*mutualTLS.* listStores$/m);
    assertMatch(stdout, /^ {2}https:\/\/pets\.example\.com\/v1$/m);
    assertMatch(stdout, /^ {2}token {2}http bearer {2}a token\n {2}cert {3}mutualTLS {4}not supported$/m);
    const json = JSON.parse((await openapi(cwd, "pets.yaml", "--json", "--read-only")).stdout);
    assertEquals([json.tools, json.needsSearch, json.servers], [1, false, ["https://pets.example.com/v1"]]);
    assertEquals(json.operations.map(({ id }: { id: string }) => id), ["getPet", "deletePet", "listStores"]);
    assertEquals(listNames(cwd), ["pets.yaml"]);
  });
});

Deno.test("check counts the items that have the same problem", async () => {
  const names = ["a", "b", "c", "d", "e"];
  const handlers = names.map((each) => `tool({ name: "${each}", annotations: { readOnlyHint: true }, run: () => "" })`);
  const source = `import { createServer, tool } from "${root}mod.ts";
export default createServer({ name: "s", version: "1.0.0", handlers: [${handlers.join(", ")}] });`;
  await withFiles({ "s.ts": source }, async (cwd) => {
    const { stdout } = await runHere(["check", "s.ts"], { cwd });
    const warnings = stdout.split("\n").filter((line) => /^(warning|error): /.test(line));
    assertEquals(warnings.filter((line) => line.includes("tool a, tool b, tool c and 2 more: ")).length, 1, stdout);
    assertEquals(warnings.filter((line) => /tool [de]\b/.test(line)), []);
    const { findings } = JSON.parse((await runHere(["check", "s.ts", "--json"], { cwd })).stdout);
    assertEquals(findings.filter(({ place }: { place: string }) => place === "tool e").length > 0, true);
  });
});

Deno.test("openapi reads the files beside a document, and writes one document", async () => {
  await withApi(
    async (request) => Response.json({ url: request.url, body: await request.text() }),
    (host) =>
      withFiles(divided, async (cwd) => {
        await symlink("../secret.yaml", `${cwd}/api/link.yaml`);
        const { stdout, stderr } = await openapi(cwd, "api/shop.yaml", "--json");
        const { operations } = JSON.parse(stdout || stderr);
        const reasons = operations.map(({ id, reason = "" }: { id: string; reason?: string }) => [
          id,
          /"(.*?)"/.exec(reason)?.[1] ?? "",
        ]);
        assertEquals(Object.fromEntries(reasons), {
          items: "",
          order: "",
          orders: "",
          outside: "../secret.yaml#/Page",
          linked: "link.yaml#/Page",
          gone: "paths/gone.yaml",
          remote: "https://shop.example.com/all.yaml#/Page",
        });
        const chosen = ["--base-url", `http://${host}`, "--allow-private", host, "--write", "mcp.jsonc"];
        const made = await openapi(cwd, "api/shop.yaml", ...chosen);
        assertEquals(made.code, 0, made.stderr);
        const call = async (...words: readonly string[]) => {
          const called = await runHere(["call", "mcp.jsonc", ...words], { cwd });
          assertEquals(called.code, 0, called.stderr);
          const { url, body } = JSON.parse(called.stdout);
          return [new URL(url).search, body];
        };
        // The written document contains the other files.
        await rm(`${cwd}/api`, { recursive: true });
        assertEquals(await call("items", "size=2", "page=3"), ["?size=2&page=3", ""]);
        assertEquals(await call("orders", "sort=id"), ["?sort=id", ""]);
        assertEquals(await call("order", 'body={"id":"a"}'), ["", '{"id":"a"}']);
      }),
  );
});

Deno.test("openapi writes a config file from a URL, and extends the file", async () => {
  await withPets((host) =>
    withFiles({}, async (cwd) => {
      const url = `http://${host}/openapi.yaml`;
      const chosen = [url, "--base-url", `http://${host}`, "--allow-private", host, "--write", "mcp.jsonc"];
      const made = await openapi(cwd, ...chosen);
      assertEquals(made.code, 0, made.stderr);
      assertEquals(listNames(cwd), ["mcp.jsonc", "pets.openapi.yaml"]);
      const called = await runHere(["call", "mcp.jsonc", "getPet", "id=7"], { cwd, env });
      assertEquals(JSON.parse(called.stdout), { request: "GET /pets/7", isAda: true });
      const again = await openapi(cwd, ...chosen);
      assertEquals([again.code, again.stderr.trim()], [2, sentence("pets.openapi.yaml")]);

      await rename(`${cwd}/pets.openapi.yaml`, `${cwd}/pets.yaml`);
      await writeFile(`${cwd}/mcp.jsonc`, '{\n  // My server.\n  "name": "mine", // here\n}\n');
      const extended = ["pets.yaml", ...chosen.slice(1), "--tag", "pets", "--read-only"];
      assertEquals((await openapi(cwd, ...extended)).code, 0);
      const text = await readFile(`${cwd}/mcp.jsonc`, "utf8");
      assertStringIncludes(text, '{\n  // My server.\n  "name": "mine", // here\n  "openapi": [\n');
      const listed = await runHere(["call", "mcp.jsonc"], { cwd, env });
      assertMatch(listed.stdout, /^getPet .*\n$/);
      const twice = await openapi(cwd, ...extended);
      assertEquals([twice.code, twice.stderr.trim()], [2, sentence("pets.yaml", "mcp.jsonc")]);
      assertEquals(await readFile(`${cwd}/mcp.jsonc`, "utf8"), text);
    })
  );
});

Deno.test("openapi adds an API to a client with one command, and the official client starts it", async () => {
  await withPets((host) =>
    withFiles({}, async (cwd) => {
      const chosen = ["--base-url", `http://${host}`, "--allow-private", host, "--client", "claude-desktop"];
      for (const [file, entry] of [["pets.jsonc", "pets"], ["server.ts", "pets-1"]]) {
        const home = { XDG_CONFIG_HOME: `${cwd}/${entry}` };
        const words = [`http://${host}/openapi.yaml`, ...chosen, "--write", file, "--env", "MCP_PETS_TOKEN"];
        const made = await runHere(["openapi", ...words], { cwd, env: { ...env, ...home } });
        assertEquals(made.code, 0, made.stderr);
        const config = JSON.parse(await readFile(`${cwd}/${entry}/Claude/claude_desktop_config.json`, "utf8"));
        const [{ command, args, env: variables }] = Object.values(config.mcpServers) as {
          command: string;
          args: string[];
          env: Record<string, string>;
        }[];
        assertEquals(variables, env);
        const client = new Client({ name: "claude-ai", version: "1.0.0" });
        await client.connect(
          new StdioClientTransport({ command, args, env: variables, cwd: "/", stderr: "ignore" }),
        );
        const { structuredContent, content } = await client.callTool({ name: "getPet", arguments: { id: 7 } });
        await client.close();
        const result = structuredContent ?? JSON.parse((content as { text: string }[])[0].text);
        assertEquals(result, { request: "GET /pets/7", isAda: true });
        await rename(`${cwd}/pets.openapi.${file === "server.ts" ? "json" : "yaml"}`, `${cwd}/${entry}.old`);
      }
      // Nothing is written for an unknown client and an unset variable.
      const before = listNames(cwd);
      const wrong = ["--write", "new.jsonc", "--base-url", `http://${host}`, "--allow-private", host];
      for (
        const [words, ...parts] of [
          [["--client", "claude"], "claude"],
          [["--client", "claude-desktop", "--env", "UNSET_TOKEN"], "UNSET_TOKEN"],
        ] as const
      ) {
        const { code, stderr } = await openapi(cwd, `http://${host}/openapi.yaml`, ...wrong, ...words);
        assertEquals([code, stderr.split("\n")[0]], [2, sentence(...parts)]);
      }
      assertEquals((await openapi(cwd, "pets.yaml", "--client", "cursor")).code, 2);
      assertEquals((await openapi(cwd, "pets.yaml", "--env", "MCP_PETS_TOKEN")).code, 2);
      assertEquals(listNames(cwd), before);
      // If the server does not start, the files stay, and the message names the next command.
      const failed = await openapi(cwd, `http://${host}/openapi.yaml`, ...wrong, "--client", "claude-desktop");
      assertEquals(failed.code, 2);
      assertMatch(failed.stderr, /install new\.jsonc --client claude-desktop --env MCP_PETS_TOKEN\n/);
      assertMatch(failed.stderr, /MCP_PETS_TOKEN is not set/);
    })
  );
});

Deno.test("openapi rejects options with which no server could work", async () => {
  const large = `{}\n${" ".repeat(1_100_000)}// The end.\n`;
  const files = { "pets.yaml": pets, "mcp.jsonc": { openapi: {} }, "text.txt": "Hello", "large.jsonc": large };
  await withFiles(files, async (cwd) => {
    const url = ["--base-url", "https://pets.example.com/v1"];
    for (
      const [words, ...names] of [
        [[], "no document"],
        [["pets.yaml", "b"], "pets.yaml", "b"],
        [["gone.yaml"], "gone.yaml"],
        [["text.txt"], "text.txt"],
        [["http://"], "http://"],
        [["http://127.0.0.1:1/"], "--allow-private"],
        [["pets.yaml", "--tag", "store"], "stores?"],
        [["pets.yaml", "--write", "a.ts"], "--base-url https://pets.example.com/v1"],
        [["pets.yaml", "--write", "a.ts", "--base-url", "https://u:p@pets.example.com"], "credentials"],
        [["pets.yaml", "--write", "a.ts", "--base-url", "http://[::1]:80"], "--allow-private [::1]"],
        [["pets.yaml", "--write", "a.yaml", ...url], "a.yaml"],
        [["pets.yaml", "--write", "a.ts", "--json"], "--json"],
        [["pets.yaml", "--write", "a.ts", "--tag", "stores", ...url], "a.ts"],
        [["pets.yaml", "--write", "mcp.jsonc", ...url], "mcp.jsonc:1"],
        [["pets.yaml", "--write", "large.jsonc", ...url], "large.jsonc", "bytes"],
      ] as const
    ) await assertRefused(openapi(cwd, ...words), sentence(...names));
    assertEquals(listNames(cwd), Object.keys(files).sort());
    assertEquals(await readFile(`${cwd}/large.jsonc`, "utf8") === large, true);
  });
});

Deno.test("check warns about many operations without a search, and lists what is left out", async () => {
  const paths = Object.fromEntries(Array.from({ length: 129 }, (_, i) => [`/p${i}`, { get: { summary: "Reads" } }]));
  const many = { openapi: "3.1.0", info: { title: "Many" }, paths: { ...paths, "/x": { trace: {} } } };
  const config = { openapi: [{ document: "many.json", baseUrl: "https://api.example.com" }] };
  await withFiles({ "many.json": many, "mcp.jsonc": config }, async (cwd) => {
    const { stdout } = await runHere(["check", "--verbose", "mcp.jsonc"], { cwd });
    assertStringIncludes(stdout, sentence("api many", "129 tools", "search: true"));
    assertMatch(stdout, /^Operations of OpenAPI documents that are left out:\n {2}trace_x {2}.*TRACE$/m);
    const json = JSON.parse((await runHere(["check", "--verbose", "--json", "mcp.jsonc"], { cwd })).stdout);
    assertEquals(json.leftOut.map(({ id }: { id: string }) => id), ["trace_x"]);
  });
});

const toDocument = (title: string, ...schemes: readonly string[]) =>
  JSON.stringify({
    openapi: "3.1.0",
    info: { title, version: "1.0.0" },
    paths: {
      "/me": { get: { operationId: `me_${title}`, security: schemes.map((scheme) => ({ [scheme]: [] })) } },
    },
    components: {
      securitySchemes: Object.fromEntries(schemes.map((scheme) => [scheme, { type: "http", scheme: "bearer" }])),
    },
  });
const twins = {
  "a.json": toDocument("GitHub", "token", "TOKEN", "to-ken"),
  "b.json": toDocument("github", "token"),
};

Deno.test("openapi never writes a variable that has another meaning", async () => {
  await withFiles(twins, async (cwd) => {
    const write = (document: string, file: string, variables: Record<string, string>, ...words: readonly string[]) =>
      runHere(["openapi", document, "--base-url", "https://evil.example", "--write", file, ...words], {
        cwd,
        env: variables,
      });
    const readAuth = async () =>
      JSON.parse(await readFile(`${cwd}/mcp.jsonc`, "utf8")).openapi.map(({ auth }: { auth: object }) =>
        Object.values(auth).map((text) => text.replace(":-", ""))
      );
    const others = { GITHUB_TOKEN: "ghp", MCP_SECRET: "secret", TOKEN: "t" };
    assertEquals((await write("a.json", "mcp.jsonc", others)).code, 0);
    const own = ["${MCP_GITHUB_TOKEN}", "${MCP_GITHUB_TOKEN_2}", "${MCP_GITHUB_TO_KEN}"];
    assertEquals(await readAuth(), [own]);
    // An API of the same name is not sent the credentials of the first one.
    assertEquals((await write("b.json", "mcp.jsonc", others)).code, 0);
    assertEquals(await readAuth(), [own, ["${MCP_GITHUB_TOKEN_3}"]]);
    for (const file of ["set.jsonc", "set.ts"]) {
      const refused = await write("b.json", file, { MCP_GITHUB_TOKEN: "mine" });
      const parts = ["MCP_GITHUB_TOKEN", "evil.example", file];
      assertEquals([refused.code, refused.stderr.split("\n")[0]], [2, sentence(...parts)]);
      assertEquals(listNames(cwd).includes(file), false);
      const named = await write("b.json", file, { MCP_GITHUB_TOKEN: "mine" }, "--env", "MCP_GITHUB_TOKEN");
      assertEquals(named.code, 0, named.stderr);
    }
  });
});

for (const { name, program } of runtimes) {
  testProcesses(`${name}: openapi writes code that type-checks and serves the operations`, async () => {
    await withPets((host) =>
      withFiles({ "pets.yaml": pets }, async (cwd) => {
        const chosen = ["pets.yaml", "--base-url", `http://${host}`, "--allow-private", host, "--tag", "pets"];
        const made = await openapi(cwd, ...chosen, "--write", "server.ts");
        assertEquals(made.code, 0, made.stderr);
        assertEquals(listNames(cwd), ["pets.openapi.json", "pets.yaml", "server.ts"]);
        const called = await run([...program, "call", "server.ts", "getPet", "id=7"], { cwd, env });
        assertEquals(JSON.parse(called.stdout), { request: "GET /pets/7", isAda: true });
        const checked = await run(["deno", "check", "--config", `${root}deno.json`, "server.ts"], { cwd });
        assertEquals(checked.code, 0, checked.stderr);
        const again = await openapi(cwd, ...chosen, "--write", "server.ts");
        assertEquals(again.code, 2);
      })
    );
  });

  testProcesses(
    `${name}: in a terminal, openapi asks before it writes a variable that has another meaning`,
    async () => {
      await withFiles(twins, async (cwd) => {
        const words = [...program, "openapi", "b.json", "--base-url", "https://evil.example", "--write"];
        for (const [answer, code] of [["n", 2], ["y", 0]] as const) {
          const asked = await run(inTerminal([...words, `${answer}.jsonc`]), {
            cwd,
            env: { MCP_GITHUB_TOKEN: "mine" },
            input: `${answer}\n`,
          });
          assertEquals(asked.code, code, asked.stdout);
          assertStringIncludes(asked.stdout, "MCP_GITHUB_TOKEN");
          assertEquals(listNames(cwd).includes(`${answer}.jsonc`), code === 0);
        }
      });
    },
  );
}

testProcesses("Deno: install grants an API of a config file exactly the permissions that it needs", async () => {
  await withFiles({ "pets.yaml": pets }, async (cwd) => {
    const program = ["deno", "run", "-A", `${root}mod.ts`];
    const url = "https://pets.example.com/v1";
    await run([...program, "openapi", "pets.yaml", "--base-url", url, "--write", "mcp.jsonc"], { cwd });
    const words = ["install", "mcp.jsonc", "--client", "claude-code", "--env", "MCP_PETS_TOKEN", "--dry-run"];
    const { code, stdout, stderr } = await run([...program, ...words], { cwd, env });
    assertEquals(code, 0, stderr);
    const [{ args }] = Object.values(JSON.parse(stdout).mcpServers) as { args: string[] }[];
    assertEquals(args.filter((each) => each.startsWith("--")), [
      `--allow-read=${[`${cwd}/mcp.jsonc`, `${cwd}/pets.yaml`, `${root}src`].sort()}`.replaceAll(cwd, "."),
      "--allow-net=pets.example.com:443",
      "--allow-env=MCP_PETS_TOKEN",
    ]);
  });
});
