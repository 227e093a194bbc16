// Servers and files that are broken in unexpected ways: each command states the problem and the remedy, and exits.
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { once } from "node:events";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { readFile, rm, symlink } from "node:fs/promises";
import { isNotDeno, listNames, testProcesses, withFiles } from "../support/command_line.ts";
import { runtimes } from "./runtimes.ts";
import { runHere } from "./run_here.ts";
import { type Finished, start } from "../support/processes.ts";
import { serve } from "./servers.ts";
import { sentence } from "../support/messages.ts";
import { assertRefused } from "./refused.ts";

const EVIL = "\x1b]0;owned\x07\x1b[2J";

const reply = (body: BodyInit | null, type: string, status = 200) =>
  new Response(body, { status, headers: { "content-type": type } });
const redirect = (location: string, status: number) => new Response(null, { status, headers: { location } });
const start1 = (text: string) =>
  new ReadableStream({ start: (controller) => controller.enqueue(new TextEncoder().encode(text)) });
const answer = async (request: Request, response: object) =>
  Response.json({ jsonrpc: "2.0", id: (await request.json()).id, ...response });

/** Endpoints by path, each with its response and the cause that `call` and `install` report. */
const endpoints: Readonly<
  Record<string, readonly [respond: (request: Request) => Response | Promise<Response>, problem: string]>
> = {
  html: [
    () => reply(`<!doctype html><title>${EVIL}</title>Sign in`, "text/html"),
    sentence("200", "text/html", "owned"),
  ],
  plain: [() => reply(`hello${EVIL}`, "text/plain"), sentence("200", "text/plain", "hello")],
  untyped: [() => new Response(new TextEncoder().encode("{}")), sentence("200", "{}")],
  loop: [() => redirect("/loop", 307), sentence("/loop", "5")],
  get: [() => redirect("/other", 302), sentence("/other", "POST", "GET")],
  away: [() => redirect("http://evil.example/x", 307), sentence("http://evil.example/x")],
  nowhere: [() => new Response(null, { status: 302 }), sentence("302")],
  empty: [() => reply("", "application/json"), sentence("/empty")],
  cut: [() => reply("{", "application/json"), sentence('"{"')],
  list: [() => reply("[]", "application/json"), sentence("200", "application/json", "[]")],
  null: [() => reply("null", "application/json"), sentence('"null"')],
  nothing: [() => new Response(null, { status: 204 }), sentence("204")],
  events: [() => reply("", "text/event-stream"), sentence("/events")],
  garbage: [() => reply("data: x\n\n", "text/event-stream"), sentence('"x"')],
  silent: [() => reply(start1(": hi\n\n"), "text/event-stream"), sentence("700 ms")],
  slow: [() => reply(start1("{"), "application/json"), sentence("700 ms")],
  basic: [() => reply(`no${EVIL}`, "text/plain", 401), sentence("401", "text/plain", "no", "--header")],
  rate: [() => reply("", "text/plain", 429), sentence("429", "text/plain")],
  crash: [() => reply("at x.js:1", "text/plain", 500), sentence("500", "text/plain", "at x.js:1")],
  away503: [() => reply("", "text/plain", 503), sentence("503", "text/plain")],
  other: [(request) => answer(request, { id: "zzz", result: {} }), sentence("zzz")],
  number: [(request) => answer(request, { result: 5 }), sentence("/number", "5")],
  bare: [(request) => answer(request, { result: {} }), sentence("/bare")],
  code: [(request) => answer(request, { error: { code: "x", message: 5 } }), sentence("/code")],
  evil: [(request) => answer(request, { error: { code: -32000, message: EVIL } }), sentence("owned", "-32000")],
};

/** The endpoints that do not respond. */
const SILENT = ["silent", "slow"];

/** Files by name, each with its text, the problem that `check` reports, and a part of the report after it. */
const files: Readonly<Record<string, readonly [text: string, problem: string, part?: string]>> = {
  "rejected.ts": ["export default Promise.reject(new Error('no luck'));", sentence("rejected.ts"), "no luck"],
  "proxy.ts": [
    "export default new Proxy({}, { get() { throw new Error('trap'); } });",
    sentence("proxy.ts"),
    "trap",
  ],
  "getter.ts": [
    "throw Object.defineProperty(new Error(), 'message', { get() { throw new Error('trap'); } });",
    sentence("getter.ts"),
  ],
  "text.ts": ["throw 'text';", sentence("text.ts")],
  "null.ts": ["throw null;", sentence("null.ts", "null")],
  "long.ts": [`throw new Error(${JSON.stringify(EVIL)} + "x".repeat(1e6));`, sentence("long.ts")],
  "number.ts": ["export default 5;", sentence("number.ts")],
  "function.ts": ["export default () => [];", sentence("function.ts")],
  "html.ts": ["<html>", sentence("html.ts")],
  "nothing.ts": ["", sentence("nothing.ts")],
  "loop.ts": ["", sentence("loop.ts")],
  "c.yaml": ["name: x", sentence("c.yaml", "mcp.jsonc")],
  "c.toml": ["a = 1", sentence("c.toml")],
  "s.py": ["print(1)", sentence("s.py", ".py")],
};

const good = {
  "good.ts": `import { tool } from "@x/mcp";\nexport default [tool({ name: "hi", run: () => "Hi!" })];`,
  "promise.ts":
    `import { tool } from "@x/mcp";\nexport default Promise.resolve([tool({ name: "hi", run: () => "Hi!" })]);`,
  "noisy.ts":
    `import { tool } from "@x/mcp";\nconsole.log("noise");\nexport default [tool({ name: "hi", run: () => "Hi!" })];`,
  "waits.ts": "setInterval(() => {}, 1000);\nawait new Promise(() => {});",
};

/**
 * The endpoints and files that the test also installs. The list is short, because each installation starts a process.
 */
const INSTALLED = [
  "html",
  "loop",
  "empty",
  "basic",
  "crash",
  "evil",
  "rejected.ts",
  "getter.ts",
  "long.ts",
  "number.ts",
  "s.py",
];

/** Returns the first defect in the output of a program, such as a stack trace; `undefined` if there is no defect. */
function findFault({ stdout, stderr }: Finished): string | undefined {
  const text = stdout + stderr;
  if (/[^\P{Cc}\n\t]|\p{Cf}|\p{Cs}/u.test(text)) return "control characters";
  if (/src\/cli|Uncaught|\bat async /.test(text)) return "a stack";
  return stdout || /^(.*\n)*?Cannot [^\n]+/.test(stderr) ? undefined : "no message";
}

/** Runs `attempt` for all items, six at a time, and then `check` with each result in order. */
async function tryAll<T, R>(
  items: readonly T[],
  attempt: (item: T) => Promise<R>,
  check: (item: T, result: R) => void,
): Promise<void> {
  for (let i = 0; i < items.length; i += 6) {
    const batch = items.slice(i, i + 6);
    const results = await Promise.all(batch.map(attempt));
    results.forEach((result, at) => check(batch[at], result));
  }
}

Deno.test("call, install and doctor report a problem at a URL", async () => {
  await using server = await serve((request) => {
    const path = new URL(request.url).pathname.slice(1);
    return Object.hasOwn(endpoints, path) ? endpoints[path][0](request) : reply("?", "text/plain", 404);
  });
  const { origin } = new URL(server.url);
  await withFiles({}, async (cwd) => {
    const attempt = async (path: string) => {
      const url = `${origin}/${path}`;
      // No short timeout for the endpoints that respond, because the machine may be busy.
      const timeout = SILENT.includes(path) ? ["--timeout", "0.7"] : [];
      const called = await runHere(["call", url, ...timeout], { cwd });
      const examined = await runHere(["doctor", url, ...timeout], { cwd });
      const words = ["install", url, "--client", "cursor", "--file", "c.json", "--header", "x=y"];
      const installed = INSTALLED.includes(path) ? await runHere(words, { cwd }) : undefined;
      return { called, examined, installed };
    };
    await tryAll(Object.keys(endpoints), attempt, (path, { called, examined, installed }) => {
      assertEquals([called.code, findFault(called)], [1, undefined], `call ${path}: ${called.stderr}`);
      assertStringIncludes(called.stderr, endpoints[path][1]);
      assertEquals([examined.code, findFault(examined)], [1, undefined], `doctor ${path}: ${examined.stderr}`);
      assertStringIncludes(examined.stdout, "problem");
      if (!installed) return;
      // `install` accepts this URL, because the client sends the credentials itself.
      const isAccepted = path === "basic";
      assertEquals(installed.code, isAccepted ? 0 : 2, `install ${path}: ${installed.stderr}`);
      if (!isAccepted) assertEquals(findFault(installed), undefined, `install ${path}: ${installed.stderr}`);
    });
    assertEquals(listNames(cwd), ["c.json"]);
    assertEquals(Object.keys(JSON.parse(await readFile(`${cwd}/c.json`, "utf8")).mcpServers).length, 1);
  });
});

Deno.test("options that contradict each other are refused, and list options can be repeated", async () => {
  await withFiles(good, async (cwd) => {
    const install = ["install", "good.ts", "--allow-none", "--client"];
    const cases: readonly (readonly [words: readonly string[], problem: string])[] = [
      [[...install, "cursor", "--client", "zed"], sentence("--client")],
      [[...install, "cursor", "--name", "a", "--name", "b"], sentence("--name")],
      [[...install, "cursor", "--name", "__proto__"], sentence("good.ts")],
      [[...install, "cursor", "--name", EVIL], sentence("good.ts")],
      [[...install, "cursor", "--name", "x".repeat(65)], sentence("good.ts", "64")],
      [[...install, "cursor", "--file", "/proc/self/mem"], sentence("/proc/self/mem")],
      [["call", "good.ts", "hi", "--timeout", "1", "--timeout", "2"], sentence("--timeout")],
      [["call", "good.ts", "hi", "--answer", "accept", "--answer", "decline"], sentence("accept", "decline")],
      [["call", "good.ts", "hi", "--root", "gone"], sentence("gone")],
      [["call", "good.ts", "hi", "--root", "good.ts"], sentence("good.ts")],
      [["call", "--", ""], sentence("--")],
      [["--http", "--path", "/a/{b}"], sentence("/a/{b}", "/mcp")],
      [["--http", "--path", "/a:b"], sentence("/a:b")],
    ];
    const attempt = ([words]: readonly [words: readonly string[], problem: string]) => runHere(words, { cwd });
    await tryAll(cases, attempt, ([words, problem], tried) => {
      assertEquals([tried.code, findFault(tried)], [2, undefined], `${words.join(" ")}: ${tried.stderr}`);
      assertStringIncludes(tried.stderr, problem);
    });
    const many = ["--env", "HOME", "--env", "NO_COLOR", "--allow-env", "HOME", "--allow-env", "NO_COLOR,A"];
    const dry = [...install.slice(0, 2), "--client", "claude-code", "--no-check", "--dry-run", ...many];
    const { stdout } = await runHere(dry, { cwd });
    const { env, args } = JSON.parse(stdout).mcpServers.good;
    assertEquals(Object.keys(env), ["HOME", "NO_COLOR"]);
    assertEquals(args.includes("--allow-env=A,HOME,NO_COLOR"), !isNotDeno);
    const once = await runHere(["call", "good.ts", "hi", "--timeout", "9", "--timeout", "9"], { cwd });
    assertEquals([once.code, once.stdout], [0, "Hi!\n"]);
  });
});

Deno.test("new writes both files or neither file, and an empty list is reported as empty", async () => {
  await withFiles(good, async (cwd) => {
    await symlink("nowhere/x.ts", `${cwd}/weather_test.ts`);
    await assertRefused(runHere(["new", "weather"], { cwd }), sentence("weather_test.ts"));
    assertEquals(listNames(cwd).includes("weather.ts"), false);
    // Not even root can write to /proc.
    const nowhere = await runHere(["new", "weather"], { cwd: "/proc" });
    assertEquals([nowhere.code, findFault(nowhere)], [2, undefined]);
    assertStringIncludes(nowhere.stderr, sentence("weather.ts"));
    for (const [command, kind] of [["prompt", "prompts"], ["read", "resources"]]) {
      const { code, stdout, stderr } = await runHere([command, "good.ts"], { cwd });
      assertEquals([code, stdout, stderr], [0, "", `${sentence(kind)}\n`]);
    }
    const help = await runHere(["help", "call"], { cwd });
    assertEquals(help.stdout, (await runHere(["call", "--help"], { cwd })).stdout);
  });
});

Deno.test("check writes the schema that a config file refers to", async () => {
  const config = { $schema: "./mcp.schema.json", name: "c", tools: { t: { description: "Lists", run: ["ls"] } } };
  await withFiles({ "sub/mcp.jsonc": config, ...good }, async (cwd) => {
    const written = await runHere(["check", "sub/mcp.jsonc", "--write-schema"], { cwd });
    assertEquals([written.code, findFault(written)], [0, undefined], written.stderr);
    const text = await readFile(`${cwd}/sub/mcp.schema.json`, "utf8");
    assertEquals(text, await readFile(new URL("../../mcp.schema.json", import.meta.url), "utf8"));
    const wrong = await runHere(["check", "good.ts", "--write-schema"], { cwd });
    assertEquals([wrong.code, listNames(cwd).includes("mcp.schema.json")], [2, false], wrong.stderr);
  });
});

Deno.test("concurrent installations lose no entry and leave no partially written file", async () => {
  for (const before of ['{"mcpServers":{"old":{"command":"x"}}, // kept\n "other": 1}', undefined]) {
    await withFiles({ ...good, ...before !== undefined && { "c.json": before } }, async (cwd) => {
      const words = ["install", "good.ts", "--allow-none", "--client", "cursor", "--file", "c.json", "--no-check"];
      const tried = await Promise.all(
        Array.from({ length: 8 }, (_, i) => runHere([...words, "--name", `n${i}`], { cwd })),
      );
      const added = tried.flatMap(({ code, stderr }, i) => {
        if (code === 0) return [`n${i}`];
        assertEquals(code, 2, stderr);
        assertStringIncludes(stderr, "c.json: ");
        return [];
      });
      assert(added.length);
      const text = await readFile(`${cwd}/c.json`, "utf8");
      const { mcpServers } = JSON.parse(text.replace("// kept", ""));
      const kept = before === undefined ? [] : ["old"];
      assertEquals(Object.keys(mcpServers).sort(), [...added, ...kept].sort());
      const others = listNames(cwd).filter((file) => !/\.bak$/.test(file) && !(file in good));
      assertEquals(others, ["c.json"]);
      const backups = listNames(cwd).filter((file) => /\.bak$/.test(file));
      assertEquals(backups.length, added.length - (before === undefined ? 1 : 0));
    });
  }
});

Deno.test("the error for a failed connection names the cause", async () => {
  const rude = createTcpServer((connection) => connection.destroy()).listen(0, "127.0.0.1");
  await once(rude, "listening");
  const { port: rudePort } = rude.address() as AddressInfo; // The cast is safe, because the server listens on TCP.
  await using web = await serve(() => reply("", "text/plain"));
  const { port } = new URL(web.url);
  const cases: readonly (readonly [url: string, problem: string])[] = [
    [`http://127.0.0.1:${rudePort}/mcp`, sentence(rudePort, "https://")],
    [`https://127.0.0.1:${port}/mcp`, sentence(port, "http://")],
    ["http://nobody.invalid/mcp", sentence("nobody.invalid")],
  ];
  const attempt = async ([url]: readonly [url: string, problem: string]) => {
    const called = await runHere(["call", url, "--timeout", "5"]);
    return [called, await runHere(["install", url, "--client", "cursor", "--dry-run"])];
  };
  await tryAll(cases, attempt, ([url, problem], results) => {
    for (const each of results) {
      assertEquals([each.code, findFault(each)], [2, undefined], `${url}: ${each.stderr}`);
      assertStringIncludes(each.stderr, problem);
    }
  });
  rude.close();
});

Deno.test("check, call and install report a problem in a file", async () => {
  const texts = Object.fromEntries(Object.entries(files).map(([file, [text]]) => [file, text]));
  await withFiles({ ...texts, ...good }, async (cwd) => {
    await rm(`${cwd}/loop.ts`);
    await symlink("loop.ts", `${cwd}/loop.ts`);
    const before = listNames(cwd);
    const attempt = async (file: string) => {
      const checked = await runHere(["check", file], { cwd });
      const called = await runHere(["call", file], { cwd });
      const words = ["install", file, "--client", "cursor", "--allow-none"];
      return [checked, called, ...INSTALLED.includes(file) ? [await runHere([...words], { cwd })] : []];
    };
    await tryAll(Object.keys(files), attempt, (file, results) => {
      const [, problem, part = ""] = files[file];
      results.forEach((each, i) => {
        assertEquals([each.code, findFault(each)], [2, undefined], `${file}: ${each.stderr.slice(0, 500)}`);
        if (i === 2) return;
        assertStringIncludes(each.stderr, problem);
        assertStringIncludes(each.stderr, part);
        assert(each.stderr.length < 9100, file);
      });
    });
    assertEquals(listNames(cwd), before);
    for (const file of ["promise.ts", "noisy.ts"]) {
      const { code, stdout } = await runHere(["call", file, "hi"], { cwd });
      assertEquals([code, stdout], [0, "Hi!\n"]);
    }
  });
});

for (const { name, program } of runtimes) {
  testProcesses(`${name}: call reports a file that waits while it loads`, async () => {
    await withFiles(good, async (cwd) => {
      await using waiting = await start([...program, "call", "waits.ts"], { cwd });
      const [line] = await waiting.waitFor(/.*waits\.ts.*(?=\n)/);
      assertStringIncludes(line, sentence("waits.ts", "await"));
    });
  });
}
