// Usage errors: each command prints the cause and the remedy, and exits with the right code.
import { assert, assertEquals, assertMatch, assertRejects, assertStringIncludes } from "@std/assert";
import { createServer, prompt, tool } from "../../mod.ts";
import { call } from "../../src/cli/call.ts";
import { check } from "../../src/cli/check.ts";
import { createCompletions } from "../../src/cli/completions.ts";
import { doctor } from "../../src/cli/doctor.ts";
import { toHelp } from "../../src/cli/help.ts";
import { inspect } from "../../src/cli/inspect.ts";
import { install } from "../../src/cli/install.ts";
import { create } from "../../src/cli/new.ts";
import { prompt as promptCommand } from "../../src/cli/prompt.ts";
import { read } from "../../src/cli/read.ts";
import { serve as serveCommand } from "../../src/cli/serve.ts";
import { describeType } from "../../src/cli/client/schema_text.ts";
import { listNames, testProcesses, withFiles } from "../support/command_line.ts";
import { sentence } from "../support/messages.ts";
import { waitForLine } from "./lines.ts";
import { runHere } from "./run_here.ts";
import { runtimes } from "./runtimes.ts";
import { serve } from "./servers.ts";
import { type Finished, root, start } from "../support/processes.ts";
import { throwing } from "../support/throwing.ts";
import { assertRefused } from "./refused.ts";
import { readArgs } from "../../src/cli/args.ts";
import { UsageError } from "../../src/cli/cli_error.ts";
import { toFlags } from "../../src/cli/command.ts";
import { openapi } from "../../src/cli/openapi.ts";
import { pack } from "../../src/cli/pack.ts";
import { token } from "../../src/cli/token.ts";
import { explainConnectionError } from "../../src/cli/connection_errors.ts";

const LONG = "x".repeat(5000);
const EVIL = "\x1b[2J\u202e\u{e0041}";

/** Returns command lines of one word. */
function each(...words: readonly string[]): readonly (readonly [words: readonly string[]])[] {
  return words.map((word) => [[word]]);
}

// The test replaces URL with the URL of a running server. The expected exit code defaults to 2.
const inputs: Readonly<Record<string, readonly (readonly [words: readonly string[], code?: number])[]>> = {
  install: [
    [[]],
    [[""]],
    [["s.ts"]],
    [["s.ts", "t.ts"]],
    [["s.ts", "--client"]],
    [["s.ts", "--client", ""]],
    [["s.ts", "--client", "emacs"]],
    [["s.ts", "--client", "curser"]],
    [["gone.ts", "--client", "cursor", "--allow-none"]],
    [["s.ts", "--client", "cursor", "t.ts"]],
    [["s.ts", "--client", "cursor", "--allow-nt", "x"]],
    [[LONG, "--client", "cursor"]],
    [["s.ts", "--client", "cursor", "--allow-none", "--env", "NOT_SET_X"]],
    [["s.ts", "--client", "cursor", "--allow-none", "--env", "A B"]],
    [["s.ts", "--client", "cursor", "--allow-none", "--header", "a=b"]],
    [["s.ts", "--client", "cursor", "--allow-none", "--file", "folder"]],
    [["s.ts", "--client", "cursor", "--allow-none", "--file", "bad.json"]],
    [["s.ts", "--client", "codex", "--allow-none", "--file", "bad.json"]],
    [["s.ts", "--client", "goose", "--allow-none", "--file", "bad.json"]],
    [["s.ts", "--client", "cursor", "--allow-none", "--file", "s.ts/x.json"]],
    [["s.ts", "--client", "cursor", "--allow-none", "--name", " "]],
    [["s.ts", "--client", "cursor", "--allow-none", "--name"]],
    [["s.ts", "--client", "cursor", "--dry-run=yes"]],
    [["--client", "cursor"]],
    [["http://", "--client", "cursor"]],
    [["http://127.0.0.1:1/mcp", "--client", "cursor"]],
    [["http://x.example/", "--client", "claude-desktop"]],
    [["http://a:b@x.example/", "--client", "cursor"]],
    [["http://x.example/", "--client", "cursor", "--allow-none"]],
    [["http://x.example/", "--client", "cursor", "--env", "A"]],
    [["http://x.example/", "--client", "vscode", "--header", "authorization=abc"]],
    [["http://x.example/", "--client", "zed", "--header", "authorization=${NOT_SET_X}"]],
    [["http://x.example/", "--client", "codex", "--header", "authorization=x ${A} y"]],
    [["http://x.example/", "--client", "cursor", "--header", "nothing"]],
    [["http://x.example/", "--client", "cursor", "--header", "a b=c"]],
    [["jsr:@a/b", "--client", "cursor", "--allow-none"]],
    [["npm:a@latest", "--client", "cursor", "--allow-none"]],
    [["bad.json", "--client", "cursor"]],
    [["bad.jsonc", "--client", "cursor"]],
    [["throws.ts", "--client", "cursor", "--allow-none"]],
    [["empty.ts", "--client", "cursor", "--allow-none"]],
    [["s.ts", EVIL, "--client", "cursor"]],
    [[EVIL, "--client", "cursor"]],
    [["s.ts", "--client", EVIL]],
    [["-x"]],
    [["s.ts", "-c", "cursor"]],
    [["s.ts", "--", "--client", "cursor"]],
    [["folder/none", "--client", "cursor"]],
    [["folder/none.jsonc", "--client", "cursor"]],
    [["s.ts", "--client", "cursor", "--allow-read", "a", "--allow-net"]],
  ],
  new: [
    // Characters that a shell interprets.
    ...[..."/;$\\,=+|&<>#%^!`{}["].map((sign) => [[`a${sign}b`]] as const),
    [[]],
    ...each("", "a b", "1a", "-a", "--a", "a.ts", "../a", ".", "é", "s", LONG),
    ...each(EVIL, "a\n", "a\t", "_a", "a@1", "x".repeat(65), "/abs", "~", "a*"),
    ...each("a?", "'a'", "a:", "C:", "(a)", "日本", "-"),
    [["a", "b"]],
    [["a", "--force"]],
    [["a", "--http"]],
  ],
  check: [
    [["a.ts", "b.ts"]],
    ...each("gone.ts", "gone.jsonc", "bad.json", "bad.jsonc", "throws.ts"),
    ...each("empty.ts", "code.jsonc", "key.jsonc", "list.jsonc", "twice.ts"),
    ...each("strange.ts", "syntax.ts", "imports.ts", "../gone.ts", "./bad.jsonc"),
    ...each("s.ts/x.jsonc", "utf16.jsonc", "deep.jsonc", "env.jsonc"),
    ...each("include.jsonc", "circle.jsonc", "module.jsonc", "outside.jsonc"),
    ...each("prompt.jsonc", "empty.jsonc"),
    [[""]],
    [["s.ts", "--max-tokens"]],
    [["s.ts", "--max-tokens", "x"]],
    [["s.ts", "--max-tokens", "-1"]],
    [["s.ts", "--max-tokens", "1.5"]],
    [["s.ts", "--max-tokens="]],
    [["s.ts", "--max-tokens", EVIL]],
    [["s.ts", "--strickt"]],
    [["s.ts", "--json=1"]],
    [["s.ts", "--max-tokens", "0"], 1],
    [["s.ts", "--strict"], 1],
    [["nameless.ts"], 1],
    [[LONG]],
    [[EVIL]],
    [["s.ts", EVIL]],
    [["http://127.0.0.1:1/mcp"]],
    [["ftp://x/"]],
    [["jsr:"]],
    [["folder/none"]],
    [["-"]],
    [["-s"]],
    [["s.ts", "--http"]],
    [["s.ts", "--help=1"]],
    [["s.ts/x"]],
  ],
  doctor: [
    [[]],
    [[""]],
    [["s.ts"]],
    ...each("localhost", "localhost:1", "localhost:1/mcp", "http://", "http:"),
    ...each("https://", "http://[", "http://a:b:c/", "ftp://x/", "file:///x"),
    ...each("//x", "/mcp", "http//x", "http://x x/"),
    [["http://x/", "http://y/"]],
    [["http://x/", "--header"]],
    [["http://x/", "--header", "a"]],
    [["http://x/", "--header", "=b"]],
    [["http://x/", "--header", "a b=c"]],
    [["http://x/", "--header", "a=日本"]],
    ...["x", "http://x/", "http://x/y", "", "null"].map((value) => [["http://x/", "--origin", value]] as const),
    ...["x", "0", "-1", "601", "1e3", "", "1..2", "."].map((value) => [["http://x/", "--timeout", value]] as const),
    ...["x", "0", "NaN", "Infinity"].map((value) => [["http://x/", "--heartbeat", value]] as const),
    [["http://x/", "--heartbeat"]],
    [["http://x/", "--jsn"]],
    [["http://x/", "--json=1"]],
    [["http://x/", "-v"]],
    [[EVIL]],
    [[LONG]],
    [["http://x/", EVIL]],
    [["http://127.0.0.1:1/mcp", "--timeout", "2"], 1],
    [["http://127.0.0.1:1/mcp", "--timeout", "2", "--json"], 1],
    [["--timeout", "1"]],
  ],
  call: [
    [[]],
    [[""]],
    [["--"]],
    [["--", "no-such-program-x"]],
    [["--", "sh", "-c", "exit 3"], 1],
    [["localhost:1/mcp"]],
    [["http://"]],
    [["http://127.0.0.1:1/mcp"]],
    [["gone.ts"]],
    [["bad.jsonc"]],
    [["throws.ts"]],
    [["URL", "ad"]],
    [["URL", EVIL]],
    [["URL", "add"]],
    [["URL", "add", "a"]],
    [["URL", "add", "a=x", "b=1"]],
    [["URL", "add", "a=1"]],
    [["URL", "add", "a=1", "b=1", "c=1"]],
    [["URL", "add", "a=1", "a=2", "b=1"]],
    [["URL", "add", "=1"]],
    [["URL", "add", "{"]],
    [["URL", "add", "{}"], 1],
    [["URL", "add", "{]}"]],
    [["URL", "add", "[1]"]],
    [["URL", "add", "a@=gone.txt"]],
    [["URL", "add", "a@=folder"]],
    [["URL", "add", "a=1.5", "b=1"]],
    [["URL", "add", `a=${EVIL}`, "b=1"]],
    [["URL", "fails"], 1],
    [["URL", "breaks"], 1],
    [["URL", "add", "--answer", "x"]],
    [["URL", "add", "--answer", "=x"]],
    [["URL", "add", "--answer"]],
    [["URL", "add", "--log", "loud"]],
    [["URL", "add", "--log"]],
    [["URL", "add", "--timeout", "x"]],
    [["URL", "add", "--timeout", "-1"]],
    [["URL", "--revision", "2020-01-01"]],
    [["URL", "--revision"]],
    [["URL", "--header", "x"]],
    [["URL", "--header", "a b=c"]],
    [["s.ts", "--header", "a=b"]],
    [["URL", "--env", "HOME"]],
    [["--env", "NOT_SET_X", "--", "true"]],
    [["--env", "A B", "--", "true"]],
    [["URL", "--jsn"]],
    [["URL", "add", "a=1", "b=1", "--output", "gone/x"]],
    [["URL/nowhere"], 1],
    [["URL", "ask", "--answer", "nmae=x"]],
    [["URL", "add", "-v"]],
  ],
};

const files: Readonly<Record<string, string>> = {
  "s.ts":
    `import { tool } from "@x/mcp";\nexport default [tool({ name: "hi", description: "Hi", input: { type: "object", properties: { a: {} } }, run: () => "Hi!" })];`,
  "nameless.ts": `import { tool } from "@x/mcp";\nexport default [tool({ name: "a.b", run: () => "Hi!" })];`,
  "twice.ts":
    `import { tool } from "@x/mcp";\nconst hi = tool({ name: "hi", run: () => "Hi!" });\nexport default [hi, hi];`,
  "bad.json": '{ "a": ',
  "bad.jsonc": "{ tools: ",
  "throws.ts": "throw new Error('boom\\x1b[2J');",
  "empty.ts": "export {};",
  "strange.ts": "export default [{}];",
  "syntax.ts": "export const a = ;",
  "imports.ts": "import './nowhere.ts';",
  "code.jsonc":
    `{ "tools": { "t": { "description": "x", "run": ["sh", "-c", "{{a}}"], "input": { "properties": { "a": {} }, "required": ["a"] } } } }`,
  "key.jsonc": `{ "tols": {} }`,
  "list.jsonc": "[]",
  "utf16.jsonc": "\ufffe{\0}\0",
  "deep.jsonc": "[".repeat(50_000),
  "env.jsonc": `{ "tools": { "t": { "description": "x", "run": ["ls", "\${NOT_SET_X}"] } } }`,
  "include.jsonc": `{ "include": ["gone.jsonc"] }`,
  "circle.jsonc": `{ "include": ["circle.jsonc"] }`,
  "module.jsonc": `{ "modules": ["gone.ts"] }`,
  "outside.jsonc": `{ "resources": [{ "file": "../x" }] }`,
  "prompt.jsonc": `{ "prompts": ["gone.md"] }`,
  "empty.jsonc": "",
  "folder/a.md": "",
};

function createTarget() {
  const number = { type: "integer" } as const;
  const add = tool({
    name: "add",
    input: { type: "object", properties: { a: number, b: number }, required: ["a", "b"], additionalProperties: false },
    run: () => "",
  });
  const fails = tool({ name: "fails", run: () => ({ content: [], isError: true }) });
  const breaks = tool({ name: "breaks", run: throwing(new Error("secret")) });
  const ask = tool({
    name: "ask",
    run: async (_, ctx) => {
      const schema = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
      return (await ctx.elicit("name", { message: "Name?", schema })).action;
    },
  });
  return createServer({ name: "s", version: "1.0.0", handlers: [add, fails, breaks, ask], observer: { fault() {} } });
}

/** Returns the failures of one command line: a wrong exit code, or a message that is missing, unsafe or internal. */
function findFailures(words: readonly string[], expectedCode: number, { code, stdout, stderr }: Finished): string[] {
  const shown = `${JSON.stringify(words).slice(0, 200)} -> ${code} ${stderr}`;
  // `check` and `doctor` explain their exit code in their report on standard output.
  const text = stderr || stdout;
  const failures: readonly (readonly [state: string, isFailed: boolean])[] = [
    ["exit code", code !== expectedCode],
    ["no cause", expectedCode === 2 && !/^(?:.*\n)*?Cannot [^\n]+/.test(stderr)],
    ["no output", !text && words[1] !== "fails"],
    ["unprintable", /[^\P{Cc}\n\t]|\p{Cf}|\p{Cs}/u.test(text)],
    ["a stack", /^\s+at .*src\/cli|Uncaught|undefined is not/m.test(text)],
    ["a secret", text.includes("secret")],
  ];
  return failures.filter(([, isFailed]) => isFailed).map(([state]) => `${state}: ${shown}`);
}

for (const [command, list] of Object.entries(inputs)) {
  Deno.test(`${list.length} mistakes with ${command} get a cause, a remedy and an exit code`, async () => {
    assertEquals(list.length, 50);
    await using server = await serve(createTarget().fetch);
    await withFiles(files, async (cwd) => {
      const before = listNames(cwd);
      const failures = await Promise.all(list.map(async ([words, code = 2]) => {
        const given = words.map((word) => word.replace(/^URL/, server.url));
        return findFailures(words, code, await runHere([command, ...given], { cwd }));
      }));
      assertEquals(listNames(cwd), before);
      assertEquals(failures.flat(), []);
    });
  });
}

Deno.test("errors for unknown names and options suggest the correct name", async () => {
  const expected: readonly (readonly [words: readonly string[], message: string])[] = [
    [["new", "weather.ts"], sentence("weather.ts")],
    [["new", ""], sentence('""')],
    [["call", "htp://x/mcp"], sentence("htp://x/mcp", " htp: ")],
    [["inspect", "s.ts", "--port", "1"], sentence("--port", "--page")],
    [["check", "http://127.0.0.1:1/mcp"], sentence("call", "inspect", "doctor")],
  ];
  await withFiles(files, async (cwd) => {
    for (const [words, message] of expected) await assertRefused(runHere(words, { cwd }), message);
    const twice = await runHere(["install", "throws.ts", "--client", "cursor", "--allow-none"], { cwd });
    assertEquals(twice.stderr.match(/^\S.* throws\.ts: /gm)?.length, 1, twice.stderr);
  });
});

Deno.test("serve refuses arguments after -- that no file can read", async () => {
  const expected: readonly (readonly [words: readonly string[], message: string])[] = [
    [["--http", "--", "npx", "-y", "some server"], sentence("'some server'", "inspect", "bridge")],
    [["serve", "--", "node", "index.js"], sentence("node index.js", "inspect", "bridge")],
    [["serve", "--stdio", "--"], sentence("--")],
    [["folder", "--http", "--", "--verbose"], sentence("-- --verbose")],
    [["--skills", "folder", "--", "x"], sentence("--skills")],
  ];
  // The program serves `server.ts` if no target is named. The arguments must not reach this file by chance.
  await withFiles({ ...files, "server.ts": files["s.ts"] }, async (cwd) => {
    for (const [words, message] of expected) await assertRefused(runHere(words, { cwd }), message);
  });
});

Deno.test("an unexpected server error is printed with its id, and the exit code is 1", async () => {
  const ids: string[] = [];
  const fail = throwing(new Error("secret"));
  const handlers = [tool({ name: "breaks", run: fail }), prompt({ name: "breaks", run: fail })];
  const options = { name: "s", version: "1.0.0", handlers };
  const target = createServer({ ...options, observer: { fault: ({ id }) => ids.push(id) } });
  await using server = await serve(target.fetch);
  const called = await runHere(["call", server.url, "breaks"]);
  assertEquals([called.code, called.stdout], [1, `Internal error (${ids[0]})\n`]);
  const { code, stderr } = await runHere(["prompt", server.url, "breaks"]);
  assertEquals(code, 1);
  assertStringIncludes(stderr.replace(ids[1], "ERROR_ID"), sentence("ERROR_ID"));
});

for (const { name, program } of runtimes) {
  testProcesses(
    `${name}: serving on all networks prints a warning that the server does not authenticate callers`,
    async () => {
      const serving = await start([...program, "--http", "--port", "0", "--host", "0.0.0.0"]);
      const warning = await waitForLine(serving, "0.0.0.0", "`auth`");
      assertStringIncludes(warning, sentence("0.0.0.0", "`auth`"));
      serving.kill("SIGTERM");
      await serving.finished;
    },
  );
}

Deno.test("the help text is not wider than the terminal, and has the same words at every width", async () => {
  const load = () =>
    Promise.resolve([serveCommand, call, check, doctor, inspect, install, create, promptCommand, read]);
  const commands = [...await load(), createCompletions(load)];
  for (const command of commands) {
    const toWords = (columns: number) =>
      toHelp(command, commands, columns).split(/\s+/).toSorted().join(" ").replaceAll(" ", "");
    for (const columns of [40, 60, 80, 100, 200]) {
      const help = toHelp(command, commands, columns);
      const wide = help.split("\n").filter((line) => line.length > columns);
      assertEquals(wide, [], `${command.name} at ${columns} columns`);
      for (const name of [...Object.keys(command.options), "help", "version"]) {
        assert(help.includes(`  --${name}`), name);
      }
    }
    assertEquals(toWords(80), toWords(100));
    assertMatch(
      toHelp(command, [], 80),
      /^.+\n\nUsage:\n {2}mcp [^]*\n\nOptions:\n[^]*\n\nExamples:\n[^]*\n\n.+:\n {2}0 /,
    );
  }
});

Deno.test("schema bounds that equal the safe integers are not printed", () => {
  const { MIN_SAFE_INTEGER: minimum, MAX_SAFE_INTEGER: maximum } = Number;
  assertEquals(describeType({ type: "integer", minimum, maximum }, {}), "integer");
  assertEquals(describeType({ type: "integer", minimum: 0, maximum }, {}), "integer from 0");
  assertEquals(describeType({ type: "integer", minimum, maximum: 9 }, {}), "integer to 9");
});

// Errors for unknown options in served files, and for operands that a command does not take.

const file = `import { createServer, tool } from "@x/mcp";
const add = tool({ name: "add", description: "Adds", requiredScopes: ["a"], run: () => 3 });
export default createServer({ name: "calc", version: "1.0.0", handlers: [add] });`;

Deno.test("check and serve refuse a file with an unknown option, and name the line of the option", async () => {
  await withFiles({ "server.js": file }, async (cwd) => {
    for (const words of [["check", "server.js"], ["--stdio", "server.js"]]) {
      const { code, stderr } = await runHere(words, { cwd });
      assert(code > 0, stderr);
      assertStringIncludes(stderr, sentence('"add"', "requiredScopes", "scopes?"));
      assertMatch(stderr, /server\.js:2/);
    }
  });
});

const completions = createCompletions(() => Promise.resolve([]));

for (const command of [check, completions, doctor, install, create, openapi, pack, token]) {
  Deno.test(`${command.name} refuses a second operand, and names both operands`, async () => {
    const [first, second] = ["https://one.example/a", "https://one.example/b"];
    const args = await readArgs([first, second], toFlags(command.options));
    const { message } = await assertRejects(async () => await command.run(args), UsageError);
    assertEquals(message, sentence(`${first} and ${second}`));
  });
}

Deno.test("doctor --store refuses a second operand, and names both operands", async () => {
  const args = await readArgs(["--store", "a.ts", "b.ts"], toFlags(doctor.options));
  const { message } = await assertRejects(async () => await doctor.run(args), UsageError);
  assertEquals(message, sentence("a.ts and b.ts"));
});

// A server file whose key is not set loads. Commands that serve it name the key.

const source = `import { createServer, tool } from "@x/mcp";
import { apiKey } from "${root}src/auth/auth.ts";
const unset: Record<string, string | undefined> = {};
const auth = apiKey({ keys: { ada: unset.ADA_KEY } });
const hello = tool({ name: "hello", description: "Greets", run: () => "Hello!" });
export default createServer({ name: "me", version: "1.0.0", auth, handlers: [hello] });`;

Deno.test("commands that serve name a key that is not set", async () => {
  await withFiles({ "server.ts": source }, async (cwd) => {
    for (const words of ["check server.ts", "server.ts --http --port 0", "server.ts --stdio"]) {
      await assertRefused(runHere(words.split(" "), { cwd }), sentence('"ada"', "environment variable"));
    }
  });
});

// The messages for failed connections are the same on every runtime.

const deno = (text: string, url = "x") =>
  new TypeError("fetch failed", { cause: new Error(`error sending request for url (${url}): client error (${text}`) });
const bun = (code: string, text: string) => Object.assign(new TypeError(text), { code });
const HINT = ". For more information, pass `verbose: true` in the second argument to fetch()";

/** The state that is reported for a URL, with the errors that Deno 2.9 and Bun 1.4 throw. */
const errors: readonly (readonly [url: string, title: string, state: string, errors: readonly Error[]])[] = [
  ["http://x.test:80/", "the host name x.test has no address", sentence("x.test"), [
    deno("Connect): dns error: failed to lookup address information: Name or service not known"),
    bun("ENOTFOUND", "getaddrinfo ENOTFOUND x.test"),
  ]],
  ["http://127.0.0.1:9/", "nothing listens at 127.0.0.1:9", sentence("127.0.0.1:9"), [
    deno("Connect): tcp connect error: Connection refused (os error 111)"),
    bun("ECONNREFUSED", "ECONNREFUSED: Unable to connect. Is the computer able to access the url?"),
  ]],
  ["http://x.test/", "x.test closed the connection or sent something other than HTTP", sentence("x.test"), [
    deno("SendRequest): connection closed before message completed"),
    deno("SendRequest): received unexpected message from connection"),
    new TypeError("fetch failed", {
      cause: new Error(
        "error sending request from 127.0.0.1:5 for http://x.test/ (127.0.0.1:80): client error (SendRequest): invalid " +
          "HTTP version parsed",
      ),
    }),
    bun("ECONNRESET", `ECONNRESET: The socket connection was closed unexpectedly${HINT}`),
    bun("Malformed_HTTP_Response", `Malformed_HTTP_Response fetching "http://x.test/"${HINT}`),
  ]],
  ["https://x.test/", "x.test does not speak TLS", sentence("x.test"), [
    deno("Connect): received corrupt message of type InvalidContentType"),
    bun("EPROTO", "EPROTO: The TLS handshake failed. Does the server speak TLS on this port?"),
  ]],
  [
    "https://x.test/",
    "the certificate is not trusted: invalid peer certificate: UnknownIssuer",
    sentence("UnknownIssuer"),
    [
      deno("Connect): invalid peer certificate: UnknownIssuer"),
    ],
  ],
  [
    "https://x.test/",
    "the certificate is not trusted: self signed certificate (DEPTH_ZERO_SELF_SIGNED_CERT)",
    sentence("DEPTH_ZERO_SELF_SIGNED_CERT"),
    [
      bun("DEPTH_ZERO_SELF_SIGNED_CERT", "self signed certificate"),
    ],
  ],
  ["http://x.test:1/", "this runtime sends no requests to port 1", sentence(1), [
    new TypeError("Fetch failed: Requests to port 1 are blocked"),
  ]],
];

for (const [url, title, expected, each] of errors) {
  Deno.test(`a failed connection to ${url} is explained as: ${title}`, () => {
    for (const error of each) assertEquals(explainConnectionError(error, url).state, expected);
  });
}
