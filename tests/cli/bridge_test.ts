// The bridge from a client over stdio to a server over HTTP: ended sessions, failing servers, and a sign-in. Tests in
// tests/peers/ run all behaviours of both official clients through the bridge.
import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { createServer, type Server, tool } from "../../mod.ts";
import { connect, McpError } from "../../src/client/client.ts";
import { startOidc } from "../auth/oidc.ts";
import { serveNotes } from "../auth/serve_notes.ts";
import { textOf, until } from "../support/behaviour.ts";
import { testProcesses, toRequestLine } from "../support/command_line.ts";
import { root, run, start } from "../support/processes.ts";
import { runtimes } from "./runtimes.ts";
import { sentence } from "../support/messages.ts";
import { assertRefused } from "./refused.ts";

/** A server on a port. `restart` replaces it with a new server on the same port. */
class Restarting implements AsyncDisposable {
  readonly url: string;
  readonly methods: string[] = [];
  readonly #served: Deno.HttpServer<Deno.NetAddr>;
  #server: Server | undefined;

  constructor() {
    this.restart();
    this.#served = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: () => {} }, (request) => {
      this.methods.push(request.method);
      return this.#server?.fetch(request) ?? new Response("Bad gateway", { status: 502 });
    });
    this.url = `http://127.0.0.1:${this.#served.addr.port}/mcp`;
  }

  restart(): void {
    const hello = tool({ name: "hello", run: () => "Hello!" });
    this.#server = createServer({ name: "s", version: "1", secret: crypto.randomUUID(), handlers: [hello] });
  }

  stop(): void {
    this.#server = undefined;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server?.close();
    await this.#served.shutdown();
  }
}

for (const { name, program } of runtimes) {
  const toTarget = (url: string, env = {}) => ({
    command: program[0],
    args: [...program.slice(1), "bridge", url],
    env,
  });

  for (const era of ["modern", "legacy"] as const) {
    testProcesses(
      `${name}: a bridge continues after its server has restarted, and ends its session (${era})`,
      async () => {
        await using server = new Restarting();
        const heard: string[] = [];
        const onNotification = ({ method }: { readonly method: string }) => void heard.push(method);
        const client = await connect(toTarget(server.url), { era, onNotification, onWarning: () => {} });
        assertEquals(textOf(await client.callTool("hello")), "Hello!");
        server.stop();
        await assertRejects(() => client.callTool("hello"), McpError, sentence(server.url, "502"));
        // The restarted server does not know the session.
        server.restart();
        assertEquals(textOf(await client.callTool("hello")), "Hello!");
        if (era === "legacy") {
          await until(() => heard.includes("notifications/tools/list_changed"), "the client has the new session");
        }
        await client.close();
        if (era === "legacy") await until(() => server.methods.includes("DELETE"), "the session has ended");
      },
    );
  }

  testProcesses(
    `${name}: a client of a protected server does not sign in itself, because the bridge does`,
    async () => {
      await using oidc = await startOidc();
      await using notes = await serveNotes(program, [oidc.issuers.first]);
      const folder = await Deno.makeTempDir({ prefix: "mcp-user-" });
      const script = `#!/bin/sh\nexec deno run -q -A --no-check ${root}tests/cli/sign_in/browser.ts "$1"\n`;
      await Deno.writeTextFile(`${folder}/browser`, script, { mode: 0o700 });
      const env = {
        TEST_USER: "ada",
        TEST_PAGES: `${folder}/pages`,
        BROWSER: `${folder}/browser`,
        XDG_CONFIG_HOME: folder,
      };
      for (const era of ["modern", "legacy"] as const) {
        await using client = await connect(toTarget(notes.url.href, env), { era, onWarning: () => {} });
        // This tool requires an additional scope.
        await client.callTool("add", { text: `in the ${era} era` });
        assertStringIncludes(textOf(await client.callTool("list")), `in the ${era} era`);
      }
      const pages = await Deno.readTextFile(`${folder}/pages`);
      assertEquals([...pages.matchAll(/<title>(.*?)<\/title>/g)].map(([, title]) => title), [sentence(), sentence()]);
      await Deno.remove(folder, { recursive: true });
    },
  );

  testProcesses(`${name}: a notification that gets no response blocks neither requests nor Ctrl-C`, async () => {
    const { promise: gate, resolve: release } = Promise.withResolvers<void>();
    await using server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: () => {} }, async (request) => {
      const { id } = await request.json();
      if (id === undefined) await gate;
      return id === undefined ? new Response(null, { status: 202 }) : Response.json({ jsonrpc: "2.0", id, result: {} });
    });
    const [command, ...args] = [...program, "bridge", `http://127.0.0.1:${server.addr.port}/mcp`];
    const child = new Deno.Command(command, { args, stdin: "piped", stdout: "piped", stderr: "null" }).spawn();
    const writer = child.stdin.getWriter();
    const silent = `${JSON.stringify({ jsonrpc: "2.0", method: "notifications/silent" })}\n`;
    await writer.write(new TextEncoder().encode(silent + toRequestLine("ping", {}, 7)));
    const reader = child.stdout.getReader();
    assertStringIncludes(new TextDecoder().decode((await reader.read()).value), '"id":7');
    await writer.write(new TextEncoder().encode(silent));
    child.kill("SIGINT");
    assert([0, 130].includes((await child.status).code));
    release();
    await reader.cancel();
    await writer.close().catch(() => {});
  });

  testProcesses(`${name}: a bridge still forwards responses when it has too many requests`, async () => {
    const { promise: gate, resolve: open } = Promise.withResolvers<void>();
    await using server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: () => {} }, async (request) => {
      const { id, method } = await request.json();
      if (method !== "notifications/open") await gate;
      else open();
      return id === undefined ? new Response(null, { status: 202 }) : Response.json({ jsonrpc: "2.0", id, result: {} });
    });
    const url = `http://127.0.0.1:${server.addr.port}/mcp`;
    const requests = Array.from({ length: 201 }, (_, at) => toRequestLine("ping", {}, at));
    const last = `${JSON.stringify({ jsonrpc: "2.0", method: "notifications/open" })}\n`;
    const [command, ...args] = [...program, "bridge", url];
    const child = new Deno.Command(command, { args, stdin: "piped", stdout: "piped", stderr: "null" }).spawn();
    const writer = child.stdin.getWriter();
    await writer.write(new TextEncoder().encode(requests.join("") + last));
    const lines: { readonly error?: { readonly message: string } }[] = [];
    let rest = "";
    for await (const text of child.stdout.pipeThrough(new TextDecoderStream())) {
      const parts = (rest + text).split("\n");
      rest = parts.pop() ?? "";
      lines.push(...parts.map((line) => JSON.parse(line)));
      if (lines.length === 201) await writer.close();
    }
    const refused = lines.flatMap(({ error }) => error?.message ?? []);
    assertEquals(refused, [sentence("200")]);
    assertEquals((await child.status).code, 0);
  });

  testProcesses(
    `${name}: a bridge responds to invalid input with an error, and exits when its input ends or on a signal`,
    async () => {
      await using server = new Restarting();
      const words = [...program, "bridge", server.url];
      const input = `{\nnonsense\n\n${JSON.stringify({ id: 1 })}\n${toRequestLine("ping", {}, 5)}`;
      const { code, stdout } = await run(words, { input });
      assertEquals(code, 0);
      const lines = stdout.trim().split("\n").map((line) => JSON.parse(line));
      assertEquals(lines.filter(({ error }) => error?.code === -32700).length, 3);
      assert(lines.length <= 4, stdout);
      await using running = await start(words);
      running.kill("SIGINT");
      assert([0, 130].includes((await running.finished).code));
      await assertRefused(run([...program, "bridge"], { input: "" }), sentence("https://mcp.example.com/mcp"));
    },
  );
}
