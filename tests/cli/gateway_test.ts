// `mcp gateway`, and other servers in a config file.
import { chmod, readFile, writeFile } from "node:fs/promises";
import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { connect } from "../../src/client/client.ts";
import { createServer, tool } from "../../mod.ts";
import { textOf, until } from "../support/behaviour.ts";
import { testProcesses, withFiles } from "../support/command_line.ts";
import { sentence } from "../support/messages.ts";
import { run, type Running, start } from "../support/processes.ts";
import { assertRefused } from "./refused.ts";
import { runHere } from "./run_here.ts";
import { allRuntimes, runtimes } from "./runtimes.ts";
import { inTerminal } from "./servers.ts";

const notes = `import { createServer, tool } from "@x/mcp";
const say = tool({ name: "say", description: "Says", run: () => "said" });
const end = tool({ name: "end", description: "Ends", run: () => { setTimeout(() => globalThis.Deno ? Deno.exit(3) : process.exit(3)); return new Promise(() => {}); } });
export default createServer({ name: "notes", version: "1.0.0", handlers: [say, end] });`;

/** The entry of the server in a client's configuration. */
function toEntry(program: readonly string[]) {
  const [command, ...args] = program;
  return { command, args: [...args, "notes.ts", "--stdio"] };
}

/** Starts a gateway over HTTP, and returns its URL. */
async function startGateway(words: readonly string[], cwd: string, ...more: readonly string[]) {
  const server = await start([...words, "--http", "--port", "0", ...more], { cwd });
  const [, url] = await server.waitFor(/(http:\S+)\n/);
  return { server, url };
}

async function stop(server: Running): Promise<void> {
  server.kill("SIGTERM");
  assertEquals((await server.finished).code, 0);
}

/** Starts an HTTP server in this process that counts its requests. */
function listen(respond: (request: Request) => Response | Promise<Response>) {
  const urls: string[] = [];
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, (request) => {
    urls.push(request.url);
    return respond(request);
  });
  return { urls, url: `http://127.0.0.1:${server.addr.port}/mcp`, [Symbol.asyncDispose]: () => server.shutdown() };
}

for (const { name, program } of runtimes) {
  testProcesses(`${name}: a gateway serves the servers of each client's file, in both eras`, async () => {
    const entry = toEntry(program);
    const files = {
      "notes.ts": notes,
      "claude_desktop_config.json": { mcpServers: { "my notes": entry, off: { command: "none", disabled: true } } },
      ".mcp.json": { mcpServers: { my_notes: { type: "stdio", ...entry, env: { WHO: "${WHO:-ada}" } } } },
      "vscode.json": '{ // servers\n "inputs": [], "servers": { "my.notes": ' + JSON.stringify(entry) + " }, }",
    };
    await withFiles(files, async (cwd) => {
      const [command, ...args] = program;
      const cases = [
        ["claude_desktop_config.json", "my_notes_"],
        [".mcp.json", "my_notes_"],
        ["vscode.json", "my.notes_"],
      ] as const;
      for (const [file, prefix] of cases) {
        for (const era of ["modern", "legacy"] as const) {
          const words = [...args, "gateway", file, "--env", "WHO"];
          await using client = await connect({ command, args: words, cwd }, { era });
          assertEquals((await client.listTools()).map(({ name }) => name), [`${prefix}say`, `${prefix}end`]);
          assertEquals(textOf(await client.callTool(`${prefix}say`)), "said");
        }
      }
    });
  });

  testProcesses(`${name}: programs of a gateway can have a path and a working directory`, async () => {
    const [command, ...args] = program;
    const script = `#!/bin/sh\nexec ${program.join(" ")} notes.ts --stdio\n`;
    await withFiles({ "bin/notes": script, "elsewhere/notes.ts": notes, "notes.ts": notes }, async (cwd) => {
      await chmod(`${cwd}/bin/notes`, 0o755);
      const elsewhere = { command: "../bin/notes", cwd: `${cwd}/elsewhere` };
      const mcpServers = { here: { command: "bin/notes" }, elsewhere };
      await writeFile(`${cwd}/all.json`, JSON.stringify({ mcpServers }));
      await writeFile(`${cwd}/mcp.jsonc`, JSON.stringify({ servers: mcpServers }));
      // The client starts the gateway in a folder of its own.
      const words = [...args, "gateway", `${cwd}/all.json`, "--stdio"];
      await using client = await connect({ command, args: words, cwd: "/" });
      for (const each of ["here_say", "elsewhere_say"]) assertEquals(textOf(await client.callTool(each)), "said", each);
      const install = ["install", `${cwd}/mcp.jsonc`, "--client", "claude-desktop", "--dry-run"];
      const { stderr } = await run([...program, ...install]);
      for (const each of [" here_say", "elsewhere_say"]) assertStringIncludes(stderr, each);
    });
  });

  testProcesses(`${name}: a gateway goes on without servers that are down, end or want a sign-in`, async () => {
    await using locked = listen(() => new Response(null, { status: 401, headers: { "www-authenticate": "Bearer" } }));
    const down = "http://127.0.0.1:9/mcp";
    const mcpServers = { notes: toEntry(program), locked: { url: locked.url }, down: { type: "http", url: down } };
    await withFiles({ "notes.ts": notes, "all.json": { mcpServers } }, async (cwd) => {
      const { server, url } = await startGateway([...program, "gateway", "all.json"], cwd);
      await using _server = server;
      await using client = await connect(url);
      const states = async () => {
        const { servers } = await (await fetch(new URL("/ready", url))).json();
        return servers[0].upstreams;
      };
      assertEquals(await states(), { notes: "none", locked: "none", down: "none" });
      assertEquals((await client.listTools()).map(({ name }) => name), ["notes_say", "notes_end"]);
      assertEquals(await states(), { notes: "ok", locked: "failed", down: "failed" });
      await server.waitFor(new RegExp(`mcp login ${locked.url}`));
      assertStringIncludes(textOf(await client.callTool("notes_end")), sentence("notes"));
      assertEquals(textOf(await client.callTool("notes_say")), "said");
      await stop(server);
    });
  });
}

const onNode = allRuntimes[0].name === "node";

testProcesses("Deno: a gateway starts only the programs, and reaches only the hosts, of its file", async () => {
  const [{ program }] = allRuntimes;
  await using other = listen(() => new Response("x"));
  await using near = listen(() => Response.redirect(other.url, 307));
  const mcpServers = { near: { url: near.url }, notes: toEntry(program) };
  await withFiles({ "notes.ts": notes, "all.json": { mcpServers } }, async (cwd) => {
    const { server, url } = await startGateway([...program, "gateway", "all.json"], cwd);
    await using _server = server;
    await using client = await connect(url);
    assertEquals((await client.listTools()).length, 2);
    assert(near.urls.length > 0);
    assertEquals(other.urls, []);
    // The permissions of the process that serves.
    const { stdout } = await run(["ps", "-o", "args=", "--ppid", String(server.pid)], { cwd });
    const flags = stdout.split(" ").filter((word) => /^(-A$|--(allow|deny|no))/.test(word)).sort();
    assertEquals(flags.filter((flag) => /^(-A$|--(allow|deny)-(net|run))/.test(flag)), [
      `--allow-net=${["127.0.0.1:0", new URL(near.url).host].sort()}`,
      `--allow-run=${toEntry(program).command}`,
    ]);
    await stop(server);
  });
}, { ignore: onNode });

for (const { program } of runtimes.filter(({ name }) => name === "deno")) {
  testProcesses("Deno: a gateway keeps the limits of a user who has denied something", async () => {
    await using near = listen(() => new Response("x"));
    await withFiles({ "all.json": { mcpServers: { near: { url: near.url } } } }, async (cwd) => {
      const words = program.flatMap((word) => word === "-A" ? [word, `--deny-net=${new URL(near.url).host}`] : [word]);
      const { server, url } = await startGateway([...words, "gateway", "all.json"], cwd);
      await using _server = server;
      await using client = await connect(url);
      await assertRejects(() => client.listTools());
      assertEquals(near.urls, []);
      await stop(server);
    });
  });
}

for (const { name, program } of runtimes) {
  testProcesses(`${name}: a gateway can listen on ::1`, async () => {
    await withFiles({ "notes.ts": notes, "all.json": { mcpServers: { notes: toEntry(program) } } }, async (cwd) => {
      const { server, url } = await startGateway([...program, "gateway", "all.json"], cwd, "--host", "::1");
      await using _server = server;
      assertEquals(new URL(url).hostname, "[::1]");
      await using client = await connect(url);
      assertEquals(textOf(await client.callTool("notes_say")), "said");
      await stop(server);
    });
  });
}

testProcesses("Deno: a host in the file of a gateway permits no other hosts", async () => {
  await withFiles({ "all.json": { mcpServers: { one: { url: "http://*.example/mcp" } } } }, async (cwd) => {
    await assertRefused(runHere(["gateway", "all.json", "--stdio"], { cwd }), sentence("*.example"));
  });
});

testProcesses("a gateway in a terminal waits for running calls after Ctrl-C", async () => {
  const [{ program }] = runtimes;
  const [running, answer] = [Promise.withResolvers<void>(), Promise.withResolvers<string>()];
  await using remote = listen((request) => far.fetch(request));
  const wait = tool({
    name: "wait",
    run: () => {
      running.resolve();
      return answer.promise;
    },
  });
  await using far = createServer({ name: "far", version: "1.0.0", handlers: [wait] });
  await withFiles({ "all.json": { mcpServers: { far: { url: remote.url } } } }, async (cwd) => {
    const file = `${cwd}/all.json`;
    const words = [...program, "gateway", file, "--http", "--port", "0"].join(" ");
    await using terminal = await start(inTerminal(["sh", "-c", `exec ${words} 2>errors.txt`]), { cwd });
    const printed = () => readFile(`${cwd}/errors.txt`, "utf8").catch(() => "");
    await until(async () => /http:\S+\n/.test(await printed()), "the gateway listens");
    await using client = await connect(/(http:\S+)\n/.exec(await printed())?.[1] ?? "");
    const call = client.callTool("far_wait").then(textOf, (error) => error.message);
    await running.promise;
    // A terminal sends the signal to the group of processes.
    const { stdout } = await run(["ps", "-eo", "pgid=,args="]);
    const group = stdout.split("\n").find((line) => line.includes(file) && line.trim().endsWith("--port 0"));
    assert(group);
    await run(["kill", "-INT", "--", `-${group.trim().split(" ")[0]}`]);
    await until(async () => (await printed()).includes("Waiting"), "the gateway is closing");
    answer.resolve("waited");
    assertEquals(await call, "waited");
    assertEquals((await terminal.finished).code, 0);
  });
});

testProcesses("no prefix of a gateway begins another one, in any order of the names", async () => {
  const [{ program: [command, ...args] }] = runtimes;
  const entry = toEntry([command, ...args]);
  const names = ["a", "a_b", "a-b", "a_", "a b", "b_c", "b"];
  const mcpServers = Object.fromEntries(names.map((name) => [name, entry]));
  await withFiles({ "notes.ts": notes, "all.json": { mcpServers } }, async (cwd) => {
    await using client = await connect({ command, args: [...args, "gateway", "all.json", "--stdio"], cwd });
    const prefixes = (await client.listTools()).flatMap(({ name }) => name.endsWith("say") ? name.slice(0, -3) : []);
    assertEquals(prefixes, ["a_", "a-b_", "a-b2_", "a-_", "a-b3_", "b_c_", "b2_"]);
    assertEquals(textOf(await client.callTool("a-b_say")), "said");
  });
});

testProcesses("a gateway serves only what the lock file contains, also after a server has changed", async () => {
  const [{ program: [command, ...args] }] = runtimes;
  const program = [command, ...args];
  const files = { "notes.ts": notes, "all.json": { mcpServers: { notes: toEntry(program) } } };
  await withFiles(files, async (cwd) => {
    const run = (words: readonly string[]) => runHere(words, { cwd });
    const compared = ["--servers", "all.json"];
    const [word] = /\bsay@[\w-]+/.exec((await run(["lock", ...compared])).stdout) ?? [];
    assertEquals((await run(["lock", ...compared, "--accept", String(word)])).code, 1);
    const connectTo = () =>
      connect({ command, args: [...args, "gateway", "all.json", "--lock", "mcp.lock.json"], cwd });
    const list = async () => {
      await using client = await connectTo();
      return (await client.listTools()).map(({ name }) => name);
    };
    assertEquals(await list(), ["notes_say"]);
    await Deno.writeTextFile(`${cwd}/notes.ts`, notes.replace("Says", "Says secrets"));
    assertEquals((await run(["check", "--locked", ...compared])).code, 1);
    await using client = await connectTo();
    assertEquals(await client.listTools(), []);
    const told = textOf(await client.callTool("notes_say"));
    assert(!told.includes("accept") && !told.includes("lock"), told);
    const config = { servers: { notes: { ...toEntry(program), lock: "mcp.lock.json" } } };
    await Deno.writeTextFile(`${cwd}/mcp.jsonc`, JSON.stringify(config));
    await using other = await connect({ command, args: [...args, "mcp.jsonc", "--stdio"], cwd });
    assertEquals(await other.listTools(), []);
    await Deno.remove(`${cwd}/mcp.lock.json`);
    const lost = run(["gateway", "all.json", "--lock", "mcp.lock.json"]);
    await assertRefused(lost, sentence("mcp.lock.json"));
    await assertRefused(run(["lock", ...compared, "notes"]), sentence("notes"));
  });
});

testProcesses("a gateway lets clients search, and is reached from this machine only", async () => {
  const [{ program }] = runtimes;
  const files = { "notes.ts": notes, "all.json": { mcpServers: { notes: toEntry(program) } } };
  await withFiles(files, async (cwd) => {
    const words = [...program, "gateway", "all.json"];
    const { server, url } = await startGateway([...words, "--search"], cwd);
    await using _server = server;
    await using client = await connect(url);
    assertEquals((await client.listTools()).map(({ name }) => name), ["search_tools", "call_tool"]);
    assertStringIncludes(textOf(await client.callTool("search_tools", { query: "says" })), "notes_say");
    await stop(server);
    const refused = await run([...words, "--http", "--host", "0.0.0.0", "--port", "0"], { cwd });
    await assertRefused(Promise.resolve(refused), sentence("0.0.0.0", "notes"));
  });
});

Deno.test("a gateway refuses entries that it cannot use, with their position", async () => {
  const cases: readonly [entry: object, expected: string][] = [
    [{ command: "x", env: { KEY: "${KEY}" } }, sentence("KEY")],
    [{ command: "x", env: { KEY: "${input:key}" } }, sentence("${input:key}")],
    [{ command: "${workspaceFolder}/x" }, sentence("workspaceFolder")],
    [{ command: "x", args: ["${KEY"] }, sentence("${KEY")],
    [{ command: "x", envFile: ".env" }, sentence("envFile")],
    [{ command: "x", url: "http://localhost/mcp" }, sentence("command")],
    [{}, sentence("command")],
    [{ url: "file:///etc/passwd" }, sentence("file:///etc/passwd")],
  ];
  for (const [entry, expected] of cases) {
    await withFiles({ "all.json": { mcpServers: { one: entry } } }, async (cwd) => {
      const finished = runHere(["gateway", "all.json", "--stdio"], { cwd });
      await assertRefused(finished, expected);
      assertStringIncludes((await finished).stderr, "all.json:1:");
    });
  }
  for (const text of ["{}", '{ "mcp": {} }', "[]", '{ "mcpServers": { "__proto__": {} } }', "{"]) {
    await withFiles({ "all.json": text }, async (cwd) => {
      assertEquals((await runHere(["gateway", "all.json", "--stdio"], { cwd })).code, 2);
    });
  }
});

testProcesses("other servers in a config file are served as their options say, and install permits them", async () => {
  const [{ name, program }] = runtimes;
  await using remote = listen((request) => far.fetch(request));
  await using far = createServer({
    name: "far",
    version: "1.0.0",
    handlers: ["a", "b", "c"].map((name) =>
      tool({ name, run: (_, { http }) => `${name} ${http?.headers.get("x-key")}` })
    ),
  });
  const servers = {
    notes: { ...toEntry(program), prefix: "", tools: { exclude: ["end"] } },
    far: {
      url: remote.url,
      headers: { "x-key": "${FAR_KEY:-open}" },
      tools: { include: ["a", "b"], change: { b: { name: "bee", description: "Buzzes" } } },
    },
  };
  await withFiles({ "notes.ts": notes, "mcp.jsonc": { name: "all", servers } }, async (cwd) => {
    const [command, ...args] = program;
    await using client = await connect({ command, args: [...args, "mcp.jsonc", "--stdio"], cwd });
    assertEquals((await client.listTools()).map(({ name }) => name), ["say", "far_a", "far_bee"]);
    assertEquals(textOf(await client.callTool("far_bee")), "b open");
    const { stdout } = await run([...program, "install", "mcp.jsonc", "--client", "claude-desktop", "--dry-run"], {
      cwd,
    });
    if (name === "deno") {
      assertStringIncludes(stdout, `--allow-run=${command}`);
      assertStringIncludes(stdout, `--allow-net=${new URL(remote.url).host}`);
      assertStringIncludes(stdout, "FAR_KEY");
    }
    const wrong = { servers: { far: { ...servers.far, share: "caller", required: true } } };
    await Deno.writeTextFile(`${cwd}/wrong.jsonc`, JSON.stringify(wrong));
    await assertRefused(run([...program, "wrong.jsonc", "--stdio"], { cwd }), sentence("far", "required"));
  });
});
