// CLI commands sign users in at a real authorization server, with and without a terminal.
import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { startOidc } from "../../auth/oidc.ts";
import { serveGitHub, serveNotes } from "../../auth/serve_notes.ts";
import { testProcesses, withFiles } from "../../support/command_line.ts";
import { sentence } from "../../support/messages.ts";
import { type Finished, root, run } from "../../support/processes.ts";
import { runtimes } from "../runtimes.ts";
import { inTerminal } from "../servers.ts";
import { assertRefused } from "../refused.ts";
import { listModules } from "../../architecture/loaded_modules.ts";

/** A user with a browser and a configuration folder. */
class User implements AsyncDisposable {
  readonly #folder: string;
  readonly #name: string;
  readonly #program: readonly string[];

  private constructor(folder: string, name: string, program: readonly string[]) {
    this.#folder = folder;
    this.#name = name;
    this.#program = program;
  }

  static async create(name: string, program: readonly string[]): Promise<User> {
    const folder = await Deno.makeTempDir({ prefix: "mcp-user-" });
    const script = `#!/bin/sh\nexec deno run -q -A --no-check ${root}tests/cli/sign_in/browser.ts "$1"\n`;
    await Deno.writeTextFile(`${folder}/browser`, script, { mode: 0o700 });
    await Deno.writeTextFile(`${folder}/pages`, "");
    return new User(folder, name, program);
  }

  get #env() {
    const { TEST_USER, BROWSER } = { TEST_USER: this.#name, BROWSER: `${this.#folder}/browser` };
    return { TEST_USER, BROWSER, TEST_PAGES: `${this.#folder}/pages`, XDG_CONFIG_HOME: `${this.#folder}/config` };
  }

  async run(...words: readonly string[]): Promise<Finished> {
    return await run([...this.#program, ...words], { env: this.#env, timeoutMs: 60_000 });
  }

  /** Calls a tool of a gateway, which gets the variables of the user. */
  async runGateway(file: string, tool: string): Promise<Finished> {
    const env = Object.entries(this.#env).map(([name, value]) => `${name}=${value}`);
    return await this.run("call", tool, "--", "env", ...env, ...this.#program, "gateway", file);
  }

  /** Runs the command in a terminal, with its whole output on standard output. */
  async runInTerminal(...words: readonly string[]): Promise<Finished> {
    return await run(inTerminal([...this.#program, ...words]), { env: this.#env, timeoutMs: 60_000 });
  }

  /** Returns the last pages that the browser has shown. */
  async readPages(): Promise<string> {
    return await Deno.readTextFile(`${this.#folder}/pages`);
  }

  async readTokens(): Promise<string> {
    const folder = `${this.#folder}/config/mcp/tokens`;
    const names = await Array.fromAsync(Deno.readDir(folder), ({ name }) => name);
    return (await Promise.all(names.map((name) => Deno.readTextFile(`${folder}/${name}`)))).join("\n");
  }

  /** Makes all stored tokens expire. */
  async expire(): Promise<void> {
    const folder = `${this.#folder}/config/mcp/tokens`;
    for await (const { name } of Deno.readDir(folder)) {
      const { key, value } = JSON.parse(await Deno.readTextFile(`${folder}/${name}`));
      const held = { ...JSON.parse(value), expiresAt: 1, issuedAt: 1 };
      await Deno.writeTextFile(`${folder}/${name}`, JSON.stringify({ key, value: JSON.stringify(held) }));
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Deno.remove(this.#folder, { recursive: true });
  }
}

for (const { name: runtime, program } of runtimes) {
  testProcesses(`${runtime}: a call signs the user in, and the next call needs no browser`, async () => {
    await using oidc = await startOidc();
    await using notes = await serveNotes(program, [oidc.issuers.first]);
    await using ada = await User.create("ada", program);
    await using eve = await User.create("eve", program);
    const { href } = notes.url;

    const first = await ada.runInTerminal("call", href, "add", "text=by Ada");
    assertStringIncludes(first.stdout.replaceAll("\r", ""), sentence(oidc.issuers.first));
    assertStringIncludes(first.stdout.replaceAll("\r", ""), sentence("signed in"));
    const titles = (await ada.readPages()).match(/(?<=<title>).*(?=<\/title>)/g);
    assertEquals([first.code, titles], [0, [sentence(), sentence()]], first.stdout);
    const second = await ada.run("call", href, "list");
    assertEquals([second.code, second.stdout, second.stderr], [0, "by Ada\n", ""]);

    // The other user sees other notes, and neither user gets the other user's tokens.
    assertEquals((await eve.runInTerminal("call", href, "list")).stdout.includes("by Ada"), false);
    assertEquals((await eve.run("call", href, "list", "--revision", "2025-11-25")).stdout, "none\n");
    assertEquals((await ada.run("read", href)).code, 0);
    assertStringIncludes((await ada.run("inspect", href)).stdout, "whoami");

    // The output of the commands contains no token.
    const tokens = [...(await ada.readTokens()).matchAll(/[\w.-]{30,}/g)].map(([token]) => token);
    assert(tokens.length >= 2, "the store contains fewer than two tokens");
    const printed = [first, second, await ada.run("token", href), await ada.run("token", href, "--json")];
    const text = printed.map(({ stdout, stderr }) => stdout + stderr).join("\n") + await ada.readPages();
    const secrets = tokens.filter((token) => token.includes(".") || token.length > 60);
    assertEquals(secrets.filter((token) => text.includes(token)), []);
    const shown = (await ada.run("token", href, "--show")).stdout.trim();
    assert(tokens.includes(shown), "the request's token is not the stored token");
    assertMatch(printed[2].stdout, / +notes:read notes:write\n.* \(in \d+ min\)\n.* +yes\n/);

    // With the stored token, doctor also runs the checks that require a token.
    const examined = await ada.run("doctor", href);
    assertEquals(examined.code, 0, examined.stdout);
    assertEquals([examined.stdout.includes("--header"), /lists/.test(examined.stdout)], [false, true], examined.stdout);
    assertEquals(tokens.filter((token) => (examined.stdout + examined.stderr).includes(token)), []);

    assertStringIncludes((await ada.run("logout", href)).stderr, sentence(href));
    await assertRefused(ada.run("token", href), sentence(`mcp login ${href}`));
    await assertRefused(ada.run("call", href, "list"), sentence(`mcp login ${href} --scope notes:read`));
  });

  testProcesses(`${runtime}: a gateway uses and renews the tokens of login, and names login without them`, async () => {
    await using oidc = await startOidc();
    await using notes = await serveNotes(program, [oidc.issuers.first]);
    await using ada = await User.create("ada", program);
    const { href } = notes.url;
    await withFiles({ "all.json": { mcpServers: { notes: { url: href } } } }, async (folder) => {
      const call = () => ada.runGateway(`${folder}/all.json`, "notes_list");
      assertStringIncludes((await call()).stderr, `mcp login ${href}`);
      assertEquals((await ada.run("login", href)).code, 0);
      assertEquals((await call()).stdout, "none\n");
      const before = await ada.readTokens();
      await ada.expire();
      assertEquals((await call()).stdout, "none\n");
      assert(await ada.readTokens() !== before);
    });
  });

  testProcesses(`${runtime}: login, call and inspect sign in at a server whose users sign in with GitHub`, async () => {
    await using served = await serveGitHub(program);
    await using ada = await User.create("ada", program);
    await using grace = await User.create("grace", program);
    const { href } = served.url;
    const first = await ada.runInTerminal("call", href, "list");
    assertStringIncludes(first.stdout, "ada/engine, ada/notes");
    const pages = await ada.readPages();
    await ada.expire();
    assertStringIncludes((await ada.run("inspect", href)).stdout, "Lists the repositories of the user");
    const examined = await ada.run("doctor", href);
    assertEquals(examined.code, 0, examined.stdout);
    assertEquals(await ada.readPages(), pages);
    assertEquals((await ada.run("logout", href)).code, 0);
    const again = await ada.run("login", href);
    assertEquals(again.code, 0, again.stderr);
    assertEquals((await ada.run("call", href, "list")).stdout, "ada/engine, ada/notes\n");
    // The tokens of GitHub stay in the server.
    assertEquals(/gh[ur]_/.test(await ada.readTokens()), false);
    const refused = await grace.run("login", href);
    assertEquals(
      [refused.code, refused.stderr.includes("this user may not use the server")],
      [1, true],
      refused.stderr,
    );
    assertStringIncludes(await grace.readPages(), "Not signed in");
  });

  testProcesses(`${runtime}: login requests more scopes, and logout --all deletes every token`, async () => {
    await using oidc = await startOidc();
    await using notes = await serveNotes(program, [oidc.issuers.second]);
    await using ada = await User.create("ada", program);
    const { href } = notes.url;
    const login = await ada.run("login", href, "--scope", "notes:write");
    assertEquals(login.code, 0, login.stderr);
    assertMatch(login.stderr, / +notes:read notes:write$/m);
    assertEquals((await ada.run("call", href, "add", "text=x")).stdout, "1\n");
    // Four concurrent commands find the token expired, and its refresh token can be used only once.
    await ada.expire();
    const calls = await Promise.all([1, 2, 3, 4].map(() => ada.run("call", href, "list")));
    assertEquals(calls.map(({ code, stdout }) => [code, stdout]), Array(4).fill([0, "x\n"]), calls[0].stderr);
    await ada.expire();
    assertEquals((await ada.run("call", href, "list")).stdout, "x\n");
    assertStringIncludes((await ada.run("logout", "--all")).stderr, sentence(href));
    assertEquals(await ada.readTokens(), "");
    assertEquals((await ada.run("logout", "--all")).stderr, `${sentence()}\n`);
  });

  testProcesses(
    `${runtime}: --issuer names the only authorization server for a client with an id or a document`,
    async () => {
      await using oidc = await startOidc();
      await using notes = await serveNotes(program, [oidc.issuers.first]);
      await using ada = await User.create("ada", program);
      const issuer = "https://other.example.com";
      for (const client of [["--client-id", "a"], ["--client-metadata", "https://app.example.com/client.json"]]) {
        for (const command of ["login", "call"]) {
          const { code, stderr } = await ada.run(command, notes.url.href, ...client, "--issuer", issuer);
          assertEquals(code, 1, stderr);
          assertStringIncludes(stderr, sentence(issuer, oidc.issuers.first));
        }
      }
      assertEquals(await ada.readPages(), "");
    },
  );

  testProcesses(
    `${runtime}: no sign-in is started for a server without authentication, or for a server with other credentials`,
    async () => {
      await using ada = await User.create("ada", program);
      for (const challenge of ['Basic realm="a"', "", "Bearer"]) {
        await using server = Deno.serve({ port: 0, onListen: () => {} }, ({ url }) => {
          const headers = { "www-authenticate": challenge };
          return new URL(url).pathname === "/mcp"
            ? new Response("no", { status: 401, headers })
            : new Response("", { status: 404 });
        });
        const url = `http://127.0.0.1:${server.addr.port}/mcp`;
        const { code, stderr } = await ada.run("call", url);
        assertEquals(code, 1);
        assertStringIncludes(stderr, sentence('--header authorization="Bearer …"'));
      }
    },
  );
}

testProcesses("sign-in options that contradict each other are refused", async () => {
  const [{ program }] = runtimes;
  const url = "https://mcp.example.com/mcp";
  for (
    const [words, names] of [
      [["login"], ["URL"]],
      [["login", "server.ts"], ["server.ts", "URL"]],
      [["login", url, "b"], [`${url} and b`]],
      [["login", url, "--redirect-port", "0"], ["--redirect-port 0"]],
      [["login", url, "--client-env", "A"], ["--client-env", "--client-id"]],
      [["login", url, "--issuer", "https://login.example.com"], ["--issuer", "--client-id", "--client-metadata"]],
      [["login", url, "--client-id", "a", "--client-env", "HOME"], ["--client-env HOME", "--issuer"]],
      [["login", url, "--client-id", "a", "--issuer", "login"], ["--issuer login"]],
      [["login", url, "--client-id", "a", "--issuer", url, "--client-env", "NOT_SET"], ["--client-env NOT_SET"]],
      [["call", url, "--resource", "mcp.example.com"], ["--resource mcp.example.com"]],
      [["call", url, "--client-metadata", "http://a.example/b"], ["--client-metadata http://a.example/b"]],
      [["logout", "--all", url], [url, "--all"]],
      [["token"], ["URL"]],
    ] as const
  ) await assertRefused(run([...program, ...words]), sentence(...names));
  const printed = await run([...program, "login", "--print-client-metadata", "--redirect-port", "8765"]);
  assertEquals(JSON.parse(printed.stdout).redirect_uris, ["http://127.0.0.1:8765/callback"]);
});

// What a user sees in the terminal before signing in.

/** Shows the sign-in page with the given URL, and returns the lines on standard error. */
async function show(program: readonly string[], url: string, pageHost?: string): Promise<string> {
  const file = await Deno.makeTempFile({ suffix: ".ts" });
  const page = {
    url,
    server: "https://mcp.example.com/mcp",
    issuer: "https://login.example.com",
    pageHost,
    scopes: [],
  };
  await Deno.writeTextFile(
    file,
    `import { terminalUserAgent } from "${root}src/cli/sign_in/terminal_user_agent.ts";
const attempt = await terminalUserAgent({ opens: false, isForced: true })({ issuer: "", path: "/callback/a1" });
await attempt.visit(${JSON.stringify(page)}, { signal: AbortSignal.timeout(1) }).catch(() => {});
await attempt.end(new Error("enough"));
`,
  );
  const { stderr, code } = await run([...program, file]);
  await Deno.remove(file);
  assertEquals(code, 0, stderr);
  return stderr;
}

for (const program of [["deno", "run", "-A", "--no-check", `--config=${root}deno.json`], ["bun"]]) {
  testProcesses(
    `mix-up: the terminal shows the host of a sign-in page that is not the issuer's host (${program[0]})`,
    async () => {
      const evil = await show(program, "https://honest.example.com/authorize?state=1", "honest.example.com");
      assertStringIncludes(evil, sentence("https://login.example.com"));
      assertStringIncludes(evil, sentence("honest.example.com", "another host"));
      const usual = await show(program, "https://login.example.com/authorize?state=1");
      assertEquals(usual.includes("another host"), false);
    },
  );
}

// Clients and commands without a sign-in load neither the modules nor the packages of the sign-in.

testProcesses("no sign-in module is loaded before a server requires a sign-in", async () => {
  const commands = [
    "main",
    "call",
    "task",
    "read",
    "prompt",
    "inspect",
    "inspector/serve",
    "doctor",
    "bridge",
    "login",
  ];
  for (const entry of [...commands.map((name) => `src/cli/${name}.ts`), "src/client/client.ts"]) {
    const modules = await listModules(entry);
    assertEquals(modules.filter((path) => /client\/oauth|oauth4webapi|jose/.test(path)), [], entry);
  }
  const found = await listModules("src/cli/sign_in/command_sign_in.ts");
  assertEquals(
    found.some((path) => path.includes("oauth4webapi")),
    true,
    "the test did not find the packages of the sign-in",
  );
});
