// Servers and files that are broken in unexpected ways: each command states the problem and the remedy, and exits.
import { assert, assertEquals } from "@std/assert";
import { listNames, testProcesses, withFiles } from "../support/command_line.ts";
import { runtimes } from "./runtimes.ts";
import { type Finished, run as runProgram, type RunOptions, start } from "../support/processes.ts";
import { serve } from "./servers.ts";

/**
 * Runs a program in an empty home folder. Deno then has no cache and prints download messages, which this function
 * removes.
 */
async function run(words: readonly string[], options?: RunOptions): Promise<Finished> {
  const { stderr, ...finished } = await runProgram(words, options);
  return { ...finished, stderr: stderr.replace(/^Download .*\n/gm, "") };
}

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
  Record<string, readonly [respond: (request: Request) => Response | Promise<Response>, state: RegExp]>
> = {
  html: [
    () => reply(`<!doctype html><title>${EVIL}</title>Sign in`, "text/html"),
    /got 200 text\/html: .*owned.*; check the path/,
  ],
  plain: [() => reply(`hello${EVIL}`, "text/plain"), /got 200 text\/plain: hello/],
  untyped: [() => new Response(new TextEncoder().encode("{}")), /got 200: \{\}; check the path/],
  loop: [() => redirect("/loop", 307), /the server sent more than 5 redirects; connect to the final URL/],
  get: [() => redirect("/other", 302), /this status turns POST into GET; connect to/],
  away: [() => redirect("http://evil.example/x", 307), /another origin must not receive/],
  nowhere: [() => new Response(null, { status: 302 }), /got 302/],
  empty: [() => reply("", "application/json"), /the text is empty/],
  cut: [() => reply("{", "application/json"), /Cannot read the server's message: "\{" is not/],
  list: [() => reply("[]", "application/json"), /got 200 application\/json: \[\]/],
  null: [() => reply("null", "application/json"), /Cannot read the server's message: "null" is not/],
  nothing: [() => new Response(null, { status: 204 }), /got 204/],
  events: [() => reply("", "text/event-stream"), /the stream ended before the response/],
  garbage: [() => reply("data: x\n\n", "text/event-stream"), /Cannot read the server's message: "x" is not/],
  silent: [() => reply(start1(": hi\n\n"), "text/event-stream"), /no response within 700 ms/],
  slow: [() => reply(start1("{"), "application/json"), /no response within 700 ms/],
  basic: [() => reply(`no${EVIL}`, "text/plain", 401), /got 401 text\/plain: no.*; authenticate with --header/],
  rate: [() => reply("", "text/plain", 429), /got 429 text\/plain; retry later, or raise the server's limit/],
  crash: [() => reply("at x.js:1", "text/plain", 500), /got 500 text\/plain: at x\.js:1; check the server's log/],
  away503: [() => reply("", "text/plain", 503), /got 503 text\/plain; check the server's log/],
  other: [(request) => answer(request, { id: "zzz", result: {} }), /Cannot use the response: its id is zzz/],
  number: [(request) => answer(request, { result: 5 }), /Cannot read the result: 5 is not an object/],
  bare: [(request) => answer(request, { result: {} }), /the server supports no revision/],
  code: [(request) => answer(request, { error: { code: "x", message: 5 } }), /Cannot read the server's message/],
  evil: [(request) => answer(request, { error: { code: -32000, message: EVIL } }), /owned.*\(-32000\)/],
};

/** Files by name, each with its text, the problem that `check` reports, and whether it can still be installed. */
const files: Readonly<Record<string, readonly [text: string, state: RegExp]>> = {
  "rejected.ts": ["export default Promise.reject(new Error('no luck'));", /^Cannot load .*threw an error[^]*no luck/],
  "proxy.ts": [
    "export default new Proxy({}, { get() { throw new Error('trap'); } });",
    /^Cannot load .*threw an error[^]*trap/,
  ],
  "getter.ts": [
    "throw Object.defineProperty(new Error(), 'message', { get() { throw new Error('trap'); } });",
    /^Cannot load .*threw an unreadable error/,
  ],
  "text.ts": ["throw 'text';", /^Cannot load text\.ts: it threw (a string|text) while loading; fix the file/],
  "null.ts": ["throw null;", /^Cannot load null\.ts: it threw null while loading/],
  "long.ts": [
    `throw new Error(${JSON.stringify(EVIL)} + "x".repeat(1e6));`,
    /^Cannot load .*threw an error[^]{0,9000}$/,
  ],
  "number.ts": ["export default 5;", /^Cannot serve number\.ts: its default export is not a server; end the file/],
  "function.ts": ["export default () => [];", /^Cannot serve .*its default export is not a server/],
  "html.ts": ["<html>", /^Cannot load html\.ts: [^]*Fix the file/],
  "nothing.ts": ["", /^Cannot serve nothing\.ts: it has no default export/],
  "loop.ts": ["", /^Cannot serve loop\.ts: there is no file/],
  "c.yaml": [
    "name: x",
    /^Cannot use c\.yaml: a config file must be JSON with comments; convert the file to mcp\.jsonc/,
  ],
  "c.toml": ["a = 1", /^Cannot use c\.toml: a config file must be JSON/],
  "s.py": ["print(1)", /^Cannot use s\.py: a \.py file is neither code for Deno or Bun nor a config file; /],
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

async function tryAll<T>(items: readonly T[], attempt: (item: T) => Promise<readonly string[]>): Promise<void> {
  const failures: string[] = [];
  for (let i = 0; i < items.length; i += 6) {
    failures.push(...(await Promise.all(items.slice(i, i + 6).map(attempt))).flat());
  }
  assert(!failures.length, failures.join("\n"));
}

for (const { name, program } of runtimes) {
  testProcesses(`${name}: call, install and doctor report a problem at a URL`, async () => {
    await using server = serve((request) => {
      const path = new URL(request.url).pathname.slice(1);
      return Object.hasOwn(endpoints, path) ? endpoints[path][0](request) : reply("?", "text/plain", 404);
    });
    const { origin } = new URL(server.url);
    await withFiles({}, async (cwd) => {
      await tryAll(Object.entries(endpoints), async ([path, [, state]]) => {
        const url = `${origin}/${path}`;
        // No short timeout for the endpoints that respond, because the machine may be busy.
        const timeout = state.source.includes("no response") ? ["--timeout", "0.7"] : [];
        const called = await run([...program, "call", url, ...timeout], { cwd });
        const examined = await run([...program, "doctor", url, ...timeout], { cwd });
        const words = ["install", url, "--client", "cursor", "--file", "c.json", "--header", "x=y"];
        const installed = INSTALLED.includes(path) ? await run([...program, ...words], { cwd }) : undefined;
        return [
          ...called.code === 1 && state.test(called.stderr) ? [] : [`call: ${called.code} ${called.stderr}`],
          ...examined.code === 1 && /problem/.test(examined.stdout)
            ? []
            : [`doctor: ${examined.code} ${examined.stdout} ${examined.stderr}`],
          // `install` accepts this URL, because the client sends the credentials itself.
          ...!installed || installed.code === (path === "basic" ? 0 : 2)
            ? []
            : [`install: ${installed.code} ${installed.stderr}`],
          ...[called, examined, ...installed && path !== "basic" ? [installed] : []].flatMap((each) =>
            findFault(each) ?? []
          ),
        ].map((failure) => `${path}: ${failure}`);
      });
      assertEquals(listNames(cwd), ["c.json"]);
      assertEquals(Object.keys(JSON.parse(await Deno.readTextFile(`${cwd}/c.json`)).mcpServers).length, 1);
    });
  });

  testProcesses(`${name}: the error for a failed connection names the cause`, async () => {
    const rude = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    (async () => {
      for await (const connection of rude) connection.close();
    })().catch(() => {});
    await using web = serve(() => reply("", "text/plain"));
    const { port } = new URL(web.url);
    const cases: readonly (readonly [url: string, state: string])[] = [
      [
        `http://127.0.0.1:${rude.addr.port}/mcp`,
        "closed the connection or sent something other than HTTP; use https://",
      ],
      [`https://127.0.0.1:${port}/mcp`, "does not speak TLS; use http:// instead"],
      ["http://nobody.invalid/mcp", "the host name nobody.invalid has no address; check the spelling"],
    ];
    await tryAll(cases, async ([url, state]) => {
      const called = await run([...program, "call", url, "--timeout", "5"]);
      const installed = await run([...program, "install", url, "--client", "cursor", "--dry-run"]);
      return [called, installed].flatMap((each) =>
        each.code === 2 && each.stderr.includes(state) && !findFault(each)
          ? []
          : [`${url}: ${each.code} ${each.stderr}`]
      );
    });
    rude.close();
  });

  testProcesses(`${name}: check, call and install report a problem in a file`, async () => {
    const texts = Object.fromEntries(Object.entries(files).map(([file, [text]]) => [file, text]));
    await withFiles({ ...texts, ...good }, async (cwd) => {
      await Deno.remove(`${cwd}/loop.ts`);
      await Deno.symlink("loop.ts", `${cwd}/loop.ts`);
      const before = listNames(cwd);
      await tryAll(Object.entries(files), async ([file, [, state]]) => {
        const checked = await run([...program, "check", file], { cwd });
        const called = await run([...program, "call", file], { cwd });
        const words = ["install", file, "--client", "cursor", "--allow-none"];
        const installed = INSTALLED.includes(file) ? [await run([...program, ...words], { cwd })] : [];
        return [checked, called, ...installed].flatMap((each, i) =>
          each.code === 2 && (i === 2 || state.test(each.stderr)) && !findFault(each)
            ? []
            : [`${file}: ${each.code} ${findFault(each)} ${each.stderr.slice(0, 500)}`]
        );
      });
      assertEquals(listNames(cwd), before);
      for (const file of ["promise.ts", "noisy.ts"]) {
        const { code, stdout } = await run([...program, "call", file, "hi"], { cwd });
        assertEquals([code, stdout], [0, "Hi!\n"]);
      }
      await using waiting = await start([...program, "call", "waits.ts"], { cwd });
      await waiting.waitFor(/^Waiting for waits\.ts: it has not finished loading; check the top-level await/);
    });
  });

  testProcesses(
    `${name}: options that contradict each other are refused, and list options can be repeated`,
    async () => {
      await withFiles(good, async (cwd) => {
        const install = ["install", "good.ts", "--allow-none", "--client"];
        const cases: readonly (readonly [words: readonly string[], message: RegExp])[] = [
          [
            [...install, "cursor", "--client", "zed"],
            /^Cannot use --client twice: the option takes one value; remove one of the two values\n/,
          ],
          [[...install, "cursor", "--name", "a", "--name", "b"], /^Cannot use --name twice/],
          [[...install, "cursor", "--name", "__proto__"], /^Cannot install good\.ts: the name cannot be a key/],
          [[...install, "cursor", "--name", EVIL], /^Cannot install good\.ts: the name cannot be a key/],
          [
            [...install, "cursor", "--name", "x".repeat(65)],
            /^Cannot install good\.ts: the name has more than 64 char/,
          ],
          [
            [...install, "cursor", "--file", "/proc/self/mem"],
            /^Cannot read \/proc\/self\/mem: .*; check the file.s permissions/,
          ],
          [["call", "good.ts", "hi", "--timeout", "1", "--timeout", "2"], /^Cannot use --timeout twice/],
          [
            ["call", "good.ts", "hi", "--answer", "accept", "--answer", "decline"],
            /^Cannot answer both accept and decline: /,
          ],
          [
            ["call", "good.ts", "hi", "--root", "gone"],
            /^Cannot use the root gone: there is no folder .*; check the path/,
          ],
          [["call", "good.ts", "hi", "--root", "good.ts"], /^Cannot use the root good\.ts: there is no folder/],
          [["call", "--", ""], /^Cannot call a server: the command after -- is empty; write the command/],
          [
            ["--http", "--path", "/a/{b}"],
            /^Cannot serve at \/a\/\{b\}: it is not a valid path; write a path such as \/mcp\n/,
          ],
          [["--http", "--path", "/a:b"], /^Cannot serve at \/a:b: it is not a valid path/],
        ];
        await tryAll(cases, async ([words, message]) => {
          const tried = await run([...program, ...words], { cwd });
          const isFine = tried.code === 2 && message.test(tried.stderr) && !findFault(tried);
          return isFine ? [] : [`${words.join(" ")}: ${tried.code} ${tried.stderr}`];
        });
        const many = ["--env", "HOME", "--env", "NO_COLOR", "--allow-env", "HOME", "--allow-env", "NO_COLOR,A"];
        const dry = [...install.slice(0, 2), "--client", "claude-code", "--no-check", "--dry-run", ...many];
        const { stdout } = await run([...program, ...dry], { cwd });
        const { env, args } = JSON.parse(stdout).mcpServers.good;
        assertEquals(Object.keys(env), ["HOME", "NO_COLOR"]);
        assertEquals(args.includes("--allow-env=A,HOME,NO_COLOR"), name === "deno");
        const once = await run([...program, "call", "good.ts", "hi", "--timeout", "9", "--timeout", "9"], { cwd });
        assertEquals([once.code, once.stdout], [0, "Hi!\n"]);
      });
    },
  );

  testProcesses(`${name}: new writes both files or neither file, and an empty list is reported as empty`, async () => {
    await withFiles(good, async (cwd) => {
      await Deno.symlink("nowhere/x.ts", `${cwd}/weather_test.ts`);
      const linked = await run([...program, "new", "weather"], { cwd });
      assertEquals([linked.code, linked.stderr.split(";")[0]], [2, "Cannot write weather_test.ts: it already exists"]);
      assertEquals(listNames(cwd).includes("weather.ts"), false);
      // Not even root can write to /proc.
      const nowhere = await run([...program, "new", "weather"], { cwd: "/proc" });
      assertEquals([nowhere.code, findFault(nowhere)], [2, undefined]);
      assert(/^Cannot write weather\.ts: .*; check the folder\n$/.test(nowhere.stderr), nowhere.stderr);
      for (const [command, kind] of [["prompt", "prompts"], ["read", "resources"]]) {
        const { code, stdout, stderr } = await run([...program, command, "good.ts"], { cwd });
        assertEquals([code, stdout, stderr], [0, "", `The server has no ${kind}.\n`]);
      }
      const help = await run([...program, "help", "call"], { cwd });
      assertEquals(help.stdout, (await run([...program, "call", "--help"], { cwd })).stdout);
    });
  });

  testProcesses(`${name}: check writes the schema that a config file refers to`, async () => {
    const config = { $schema: "./mcp.schema.json", name: "c", tools: { t: { description: "Lists", run: ["ls"] } } };
    await withFiles({ "sub/mcp.jsonc": config, ...good }, async (cwd) => {
      const written = await run([...program, "check", "sub/mcp.jsonc", "--write-schema"], { cwd });
      assertEquals([written.code, findFault(written)], [0, undefined], written.stderr);
      const text = await Deno.readTextFile(`${cwd}/sub/mcp.schema.json`);
      assertEquals(text, await Deno.readTextFile(new URL("../../mcp.schema.json", import.meta.url)));
      const wrong = await run([...program, "check", "good.ts", "--write-schema"], { cwd });
      assertEquals([wrong.code, listNames(cwd).includes("mcp.schema.json")], [2, false], wrong.stderr);
    });
  });

  testProcesses(`${name}: concurrent installations lose no entry and leave no partially written file`, async () => {
    for (const before of ['{"mcpServers":{"old":{"command":"x"}}, // kept\n "other": 1}', undefined]) {
      await withFiles({ ...good, ...before !== undefined && { "c.json": before } }, async (cwd) => {
        const words = ["install", "good.ts", "--allow-none", "--client", "cursor", "--file", "c.json", "--no-check"];
        const tried = await Promise.all(
          Array.from({ length: 8 }, (_, i) => run([...program, ...words, "--name", `n${i}`], { cwd })),
        );
        const added = tried.flatMap(({ code, stderr }, i) => {
          if (code === 0) return [`n${i}`];
          assert(
            /^Cannot change .*: another program (is writing|has just written) the file; run /.test(stderr),
            stderr,
          );
          return [];
        });
        assert(added.length);
        const text = await Deno.readTextFile(`${cwd}/c.json`);
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
}
