// `mcp doctor` with real connections.
import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { once } from "node:events";
import { type AddressInfo, createServer as createTcpServer, type Socket } from "node:net";
import { testProcesses, withFiles } from "../support/command_line.ts";
import { allRuntimes, runtimes } from "./runtimes.ts";
import { runHere } from "./run_here.ts";
import { root, run, start } from "../support/processes.ts";
import { sentence } from "../support/messages.ts";
import { assertRefused } from "./refused.ts";
import { createServer } from "../../mod.ts";
import { examineStore } from "../../src/cli/doctor/store_checks.ts";
import { INTERNALS } from "../../src/core/internals.ts";
import { listStores } from "../../src/host.ts";
import { customStore, memoryStore, type Store, type StoreEngine, type StoreOptions } from "../../src/stores/stores.ts";
import { type Command, wrapEngine } from "../support/engines.ts";

/** Listens on a port, and sends a text and closes each connection, or never sends anything. */
async function listen(say?: string): Promise<Disposable & { readonly host: string; readonly reached: Promise<void> }> {
  const { promise: reached, resolve } = Promise.withResolvers<void>();
  const open = new Set<Socket>();
  const listener = createTcpServer((connection) => {
    open.add(connection.on("error", () => {}));
    resolve();
    if (say !== undefined) connection.end(say);
  }).listen(0, "127.0.0.1");
  await once(listener, "listening");
  const { port } = listener.address() as AddressInfo; // The cast is safe, because the server listens on TCP.
  return {
    reached,
    host: `127.0.0.1:${port}`,
    [Symbol.dispose]() {
      listener.close();
      for (const connection of open) connection.destroy();
    },
  };
}

Deno.test("doctor explains why a connection fails", async () => {
  using mute = await listen();
  using rude = await listen("220 ready\r\n");
  const gone = await listen();
  gone[Symbol.dispose]();
  const expected = [
    [`http://${gone.host}/mcp`, sentence(gone.host)],
    ["http://nobody.invalid/mcp", sentence("nobody.invalid")],
    [`https://${rude.host}/mcp`, sentence(rude.host)],
    [`http://${rude.host}/mcp`, sentence(rude.host)],
    [`http://${mute.host}/mcp`, sentence("0.3 s"), "0.3"],
  ];
  const examined = await Promise.all(
    expected.map(([url, , seconds = "60"]) => runHere(["doctor", url, "--timeout", seconds])),
  );
  examined.forEach(({ code, stdout }, i) => {
    assertEquals(code, 1);
    const [problem, fix] = stdout.split("\n");
    assertEquals(problem, `problem  connection  ${expected[i][1]}`);
    assertMatch(fix, /^ {21}-> /);
    assertMatch(stdout, /\n\n1 .*\n$/);
  });
});

for (const { name, program } of runtimes) {
  testProcesses(`${name}: doctor finds no problem with the demo server on the other runtime`, async () => {
    for (const { program: server } of allRuntimes.filter((each) => each.name !== name)) {
      await using served = await start([...server, "--http", "--port", "0"]);
      const [, url] = await served.waitFor(/(http:\S+)\n/);
      const words = [...program, "doctor", url, "--json", "--header", "x-key=a=b"];
      const { code, stdout, stderr } = await run(words);
      assertEquals({ code, stderr }, { code: 0, stderr: "" }, stdout);
      const { url: told, problems, findings } = JSON.parse(stdout);
      assertEquals({ told, problems }, { told: url, problems: 0 });
      const host = findings.find(({ check }: { check: string }) => check === "foreign host");
      assertEquals(host, {
        level: "ok",
        check: "foreign host",
        message: sentence("stranger.invalid", "403"),
      });
    }
  });

  testProcesses(`${name}: doctor stops on Ctrl-C, and prints that it was stopped`, async () => {
    using mute = await listen();
    await using process = await start([...program, "doctor", `http://${mute.host}/mcp`, "--timeout", "60"]);
    await mute.reached;
    process.kill("SIGINT");
    const { code, stderr } = await process.finished;
    assertEquals(code, 130);
    assertStringIncludes(stderr, sentence());
  });
}

testProcesses("doctor refuses targets that cannot be examined, and never prints a token", async () => {
  const program = ["bun", `${root}mod.ts`, "doctor"];
  const expected = [
    [[], sentence("http:")],
    [["mcp.jsonc"], sentence("mcp.jsonc", "--store", "--http")],
    [["localhost:1/mcp"], sentence("localhost:1/mcp", "http://")],
    [["ftp://x"], sentence("ftp://x", "http:")],
    [["--", "server"], sentence("HTTP", "inspect")],
    [["http://a", "http://b"], sentence("http://a", "http://b")],
    [["http://a", "--header", "secret"], sentence("--header name=value")],
    [["http://a", "--header", "x(y=secret"], sentence("x(y")],
    [["http://a", "--timeout", "soon"], sentence("--timeout soon", 600)],
    [["http://a", "--origin", "a.example"], sentence("a.example")],
  ] as const;
  const refused = expected.map(([words]) => run([...program, ...words]));
  for (const [at, [, message]] of expected.entries()) {
    await assertRefused(refused[at], message);
    assert(!(await refused[at]).stderr.includes("secret"));
  }
});

// `doctor --store` reports the defects of a store, and deletes the keys that it has created.

const secret = "a secret of at least 32 characters";

async function examine(store: Store): Promise<readonly string[]> {
  await using server = createServer({ name: "a", version: "1.0.0", handlers: [], store, secret });
  const [used] = listStores(server);
  return (await examineStore(used)).map(({ level, check, message }) => `${level}: ${check}: ${message}`);
}

/** Returns the findings for an engine whose commands are all passed to `around`. */
async function examineEngine(
  around: (command: Command, engine: StoreEngine) => unknown,
  own: (engine: StoreEngine) => Partial<StoreEngine> = () => ({}),
  options: StoreOptions = {},
): Promise<readonly string[]> {
  const engine = await memoryStore()[INTERNALS].connect();
  const spoiled = wrapEngine(engine, (command) => around(command, engine), own(engine));
  const found = await examine(customStore(() => spoiled, options));
  return found.filter((line) => !line.startsWith("ok"));
}

/** Waits for one turn of the event loop, so that other commands run between two steps that must be atomic. */
function turn(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve));
}

const ttlMs = 60_000;

/** Returns an `around` function that changes the time to live of each `set` command. */
function changeTtl(change: (ms: number) => number): (command: Command, engine: StoreEngine) => unknown {
  return ({ name, args: [key, value, options], run }, engine) => {
    if (name !== "set") return run();
    return engine.set(String(key), String(value), { ...Object(options), ttlMs: change(Object(options).ttlMs) });
  };
}

Deno.test("doctor finds no problem with a correct store, and deletes its own keys", async () => {
  const store = memoryStore();
  const found = await examine(store);
  assertEquals(found.map((line) => line.split(": ").slice(0, 2).join(": ")), [
    "note: shared",
    "ok: reachable",
    "ok: latency",
    "ok: atomic values",
    "ok: atomic logs",
    "ok: rings",
    "ok: value size",
    "ok: expiry",
    "ok: eviction",
  ]);
  assertEquals(found[0], `note: shared: ${sentence()}`);
});

Deno.test("doctor deletes only its own keys", async () => {
  const engine = await memoryStore()[INTERNALS].connect();
  const options = { ttlMs, token: "t", signal: new AbortController().signal };
  await engine.set("doctors-own", "1", options);
  await examine(customStore(() => wrapEngine(engine, ({ run }) => run(), { close: () => {} })));
  const left = await engine.list("", { limit: 1000, signal: options.signal });
  assertEquals(left.map(({ key }) => key), ["doctors-own"]);
});

Deno.test("doctor reports an engine that compares and writes in two steps", async () => {
  const found = await examineEngine(async ({ name, args: [key, value, options], run }, engine) => {
    if (name !== "set") return await run();
    const { version, ...rest } = Object(options);
    const known = await engine.get(String(key), rest);
    if (version !== undefined && (known?.version ?? null) !== version) return known?.version === rest.token;
    await turn();
    return await engine.set(String(key), String(value), rest);
  });
  assertEquals(found.length, 1, found.join("\n"));
  // Any number of the writes can succeed.
  assertEquals(found[0].replace(/\d+(?=\D*$)/, "N"), `problem: atomic values: ${sentence(8, "N")}`);
});

Deno.test("doctor reports an engine that appends an entry again when a token is repeated", async () => {
  let count = 0;
  const found = await examineEngine(({ name, args: [log, value, options], run }, engine) =>
    name === "append" ? engine.append(String(log), String(value), { ...Object(options), token: `t${count++}` }) : run()
  );
  assertEquals(found, [`problem: atomic logs: ${sentence(9, 4)}`]);
});

Deno.test("doctor reports an engine that never notifies of changes", async () => {
  const found = await examineEngine(({ run }) => run(), () => ({ listen: () => () => {} }));
  assertEquals(found, [`problem: rings: ${sentence("3000 ms")}`]);
});

Deno.test("doctor reports an engine that finds changes only by polling", async () => {
  const engine = await memoryStore()[INTERNALS].connect();
  const found = await examine(customStore(() => wrapEngine(engine, ({ run }) => run(), { listen: undefined })));
  const rings = found.find((line) => line.includes(": rings: ")) ?? "";
  assertEquals(rings.replace(/\d+(?= ms)/, "N"), `ok: rings: ${sentence("N ms", "pollMs")}`);
});

Deno.test("doctor reports an engine whose values expire after their time to live", async () => {
  const found = await examineEngine(changeTtl((ms) => ms + 1500));
  assertEquals(found.length, 1, found.join("\n"));
  assertEquals(found[0].replace(/\d+(?= ms$)/, "N"), `problem: expiry: ${sentence("2000 ms", "N ms")}`);
});

Deno.test("doctor reports an engine whose values expire before their time to live", async () => {
  const found = await examineEngine(changeTtl((ms) => ms === ttlMs ? ms : ms - 1500));
  assertEquals(found.length, 1, found.join("\n"));
  assertEquals(found[0].replace(/\d+(?= ms$)/, "N"), `problem: expiry: ${sentence("2000 ms", "N ms")}`);
});

Deno.test("doctor reports an engine that loses values", async () => {
  const found = await examineEngine(({ name, args: [key], run }) =>
    name === "get" && String(key).endsWith("kept-7") ? undefined : run()
  );
  assertEquals(found, [`problem: eviction: ${sentence(1, 50)}`]);
});

Deno.test("doctor reports an engine that truncates large values", async () => {
  const found = await examineEngine(({ name, args: [key, value, options], run }, engine) =>
    name === "set" ? engine.set(String(key), String(value).slice(0, 65_536), { ...Object(options) }) : run()
  );
  assertEquals(found, [`problem: value size: ${sentence(1_048_576)}`]);
});

Deno.test("doctor reports an engine that takes nearly as long as the timeout", async () => {
  let commands = 0;
  const found = await examineEngine(
    async ({ run }) => {
      // Fixed wait: a store engine that takes a fixed time for one command.
      if (commands++ === 60) await new Promise((resolve) => setTimeout(resolve, 700));
      return await run();
    },
    () => ({}),
    { timeoutMs: 1000 },
  );
  assertEquals(found.length, 1, found.join("\n"));
  const [, longest] = /the longest (\d+) ms.* 1000 ms$/.exec(found[0]) ?? [];
  assert(Number(longest) >= 700, found[0]);
  assertEquals(found[0].replaceAll(/[\d.]+(?= ms)/g, "N"), `note: latency: ${sentence(90)}`);
});

Deno.test("doctor reports two connections that see different data", async () => {
  const found = await examine(customStore(() => memoryStore()[INTERNALS].connect()));
  assertEquals(found, [`problem: reachable: ${sentence()}`]);
});

Deno.test("doctor reports the error of an engine that is unavailable", async () => {
  const down = () => Promise.reject(new Error("connection refused by 127.0.0.1:6379"));
  const [found, ...others] = await examine(customStore(down, { timeoutMs: 200 }));
  assertEquals(found, `problem: reachable: ${sentence("127.0.0.1:6379")}`);
  assertEquals(others, []);
});

/** Returns a server file whose options end with `rest`. */
function toFile(rest: string): string {
  return `import { createServer } from "@x/mcp";\n` +
    `import { customStore, memoryStore } from "${root}src/stores/stores.ts";\n` +
    `const down = () => Promise.reject(new Error("connection refused"));\n` +
    `export default createServer({ name: "a", version: "1.0.0", handlers: [], ${rest} });\n`;
}

const files = {
  "memory.ts": toFile("store: memoryStore()"),
  "none.ts": toFile(""),
  "down.ts": toFile(`store: customStore(down, { timeoutMs: 200 }), secret: "${secret}"`),
};

Deno.test("doctor examines the store of a server file, and explains usage errors", async () => {
  await withFiles(files, async (cwd) => {
    const good = await runHere(["doctor", "memory.ts", "--store", "--json"], { cwd });
    assertEquals({ code: good.code, stderr: good.stderr }, { code: 0, stderr: "" }, good.stdout);
    const { file, problems, notes } = JSON.parse(good.stdout);
    assertEquals({ file, problems, notes }, { file: "memory.ts", problems: 0, notes: 1 });
    const down = await runHere(["doctor", "--store", "down.ts"], { cwd });
    assertEquals(down.code, 1, down.stderr);
    const [problem, fix] = down.stdout.split("\n");
    assertEquals(problem, `problem  reachable  ${sentence("connection refused")}`);
    assertMatch(fix, /^ +-> /);
    const mistakes = [
      [["none.ts"], sentence("none.ts")],
      [["gone.ts"], sentence("gone.ts")],
      [[], sentence("server.ts --store")],
      [["http://x/mcp"], sentence("http://x/mcp")],
      [["memory.ts", "none.ts"], sentence("memory.ts", "none.ts")],
      [["memory.ts", "--timeout", "3"], sentence("--timeout")],
    ] as const;
    for (const [words, message] of mistakes) {
      const { code, stderr } = await runHere(["doctor", "--store", ...words], { cwd });
      assert(code === 2 || code === 1, `${words}: ${code}`);
      assertStringIncludes(stderr, message);
    }
  });
});
