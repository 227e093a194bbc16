// CLI commands sign users in at a real authorization server, with and without a terminal.
import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { startOidc } from "../../auth/oidc.ts";
import { serveNotes } from "../../auth/serve_notes.ts";
import { testProcesses } from "../../support/command_line.ts";
import { type Finished, root, run } from "../../support/processes.ts";
import { runtimes } from "../runtimes.ts";
import { inTerminal } from "../servers.ts";

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
    const finished = await run([...this.#program, ...words], { env: this.#env, timeoutMs: 60_000 });
    // In an empty home folder, Deno prints its downloads.
    return { ...finished, stderr: finished.stderr.replace(/^Download .*\n/gm, "") };
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
    assertStringIncludes(first.stdout, `asks you to sign in at ${oidc.issuers.first} (`);
    assertStringIncludes(first.stdout, "You are signed in.");
    assertEquals([first.code, (await ada.readPages()).match(/Signed in<\/title>/g)?.length], [0, 2], first.stdout);
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
    assertMatch(
      printed[2].stdout,
      /Scopes +notes:read notes:write\nExpires .* \(in \d+ min\)\nRenewed without you +yes/,
    );

    // With the stored token, doctor also runs the checks that require a token.
    const examined = await ada.run("doctor", href);
    assertEquals(examined.code, 0, examined.stdout);
    assertEquals([examined.stdout.includes("--header"), /lists/.test(examined.stdout)], [false, true], examined.stdout);
    assertEquals(tokens.filter((token) => (examined.stdout + examined.stderr).includes(token)), []);

    assertMatch((await ada.run("logout", href)).stderr, /^You are signed out of/);
    const missing = await ada.run("token", href);
    assertEquals([missing.code, missing.stderr.includes(`sign in with mcp login ${href}`)], [2, true]);
    const refused = await ada.run("call", href, "list");
    assertEquals(refused.code, 2);
    assertStringIncludes(
      refused.stderr,
      `there is no terminal; run mcp login ${href} --scope notes:read in a terminal`,
    );
  });

  testProcesses(`${runtime}: login requests more scopes, and logout --all deletes every token`, async () => {
    await using oidc = await startOidc();
    await using notes = await serveNotes(program, [oidc.issuers.second]);
    await using ada = await User.create("ada", program);
    const { href } = notes.url;
    const login = await ada.run("login", href, "--scope", "notes:write");
    assertEquals(login.code, 0, login.stderr);
    assertMatch(login.stderr, /Scopes +notes:read notes:write/);
    assertEquals((await ada.run("call", href, "add", "text=x")).stdout, "1\n");
    // Four concurrent commands find the token expired, and its refresh token can be used only once.
    await ada.expire();
    const calls = await Promise.all([1, 2, 3, 4].map(() => ada.run("call", href, "list")));
    assertEquals(calls.map(({ code, stdout }) => [code, stdout]), Array(4).fill([0, "x\n"]), calls[0].stderr);
    await ada.expire();
    assertEquals((await ada.run("call", href, "list")).stdout, "x\n");
    assertMatch((await ada.run("logout", "--all")).stderr, /You are signed out of/);
    assertEquals(await ada.readTokens(), "");
    assertEquals((await ada.run("logout", "--all")).stderr, "There were no tokens.\n");
  });

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
        assertStringIncludes(stderr, '--header authorization="Bearer …"');
      }
    },
  );
}

testProcesses("sign-in options that contradict each other are refused", async () => {
  const [{ program }] = runtimes;
  const url = "https://mcp.example.com/mcp";
  for (
    const [words, text] of [
      [["login"], "no URL is given"],
      [["login", "server.ts"], "is not a URL"],
      [["login", url, "b"], "the command takes one URL; remove one of the two"],
      [["login", url, "--redirect-port", "0"], "is not a port"],
      [["login", url, "--client-env", "A"], "add --client-id ID"],
      [["login", url, "--issuer", "https://login.example.com"], "add --client-id ID"],
      [["login", url, "--client-id", "a", "--client-env", "HOME"], "add --issuer with the URL"],
      [["login", url, "--client-id", "a", "--issuer", "login"], "it is not a URL"],
      [["login", url, "--client-id", "a", "--issuer", url, "--client-env", "NOT_SET"], "no such variable"],
      [["call", url, "--client-metadata", "http://a.example/b"], "is not an https URL"],
      [["logout", "--all", url], "remove the URL or --all"],
      [["token"], "no URL is given"],
    ] as const
  ) {
    const { code, stderr } = await run([...program, ...words]);
    assertEquals([code, stderr.includes(text)], [2, true], stderr);
  }
  const printed = await run([...program, "login", "--print-client-metadata", "--redirect-port", "8765"]);
  assertEquals(JSON.parse(printed.stdout).redirect_uris, ["http://127.0.0.1:8765/callback"]);
});
