// Files with several servers, and servers with path parameters, on the command line.
import { assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { connect } from "../../src/client/client.ts";
import { connectRaw } from "../hostile/raw.ts";
import { textOf, until } from "../support/behaviour.ts";
import { _meta, testProcesses, toRequestLine, withFiles } from "../support/command_line.ts";
import { sentence } from "../support/messages.ts";
import { waitForLine } from "./lines.ts";
import { runtimes } from "./runtimes.ts";
import { runHere } from "./run_here.ts";
import { ask, root, run, start } from "../support/processes.ts";
import { assertRefused } from "./refused.ts";

const app = (tool = "who") =>
  `import { createServer, mount, tool } from "@x/mcp";
const ping = tool({ name: "ping", description: "Answers", run: () => "pong" });
const one = createServer({ name: "notes", version: "1.0.0", path: "/notes/mcp", handlers: [ping] });
const who = (tenant) => tool({ name: "${tool}", description: "Tells the tenant", run: () => tenant });
const handlers = ({ tenant }) => [who(tenant)];
const pathSchema = { type: "object", properties: { tenant: { type: "string", pattern: "^[a-z]+$" } } };
const many = createServer({ name: "tenants", version: "1.0.0", path: "/:tenant/mcp", pathSchema, handlers });
export default mount([one, many]);
`;
const files = { "app.ts": app() };

for (
  const [words, message] of [
    ["app.ts --stdio", sentence("app.ts", "notes, tenants", "--server")],
    ["app.ts --stdio --server nobody", sentence("app.ts", "nobody", "notes, tenants")],
    ["app.ts --stdio --server tenants", sentence("app.ts", "/:tenant/mcp", "--param tenant=")],
    ["app.ts --stdio --server notes --param a=1", sentence("app.ts", "/notes/mcp", "--param a")],
    ["app.ts --stdio --server tenants --param tenant=A", sentence("app.ts", "/:tenant/mcp", '{"tenant":"A"}')],
    [
      "app.ts --http --port 0 --server tenants --param tenant=a/b",
      sentence("app.ts", "/:tenant/mcp", "tenant", '"a/b"'),
    ],
    ["app.ts --http --port 0 --param tenant=..", sentence("app.ts", "/:tenant/mcp", "tenant", '".."')],
    ["app.ts --stdio --server tenants --param tenant", sentence("--param tenant", "--param NAME=VALUE")],
    ["app.ts --http --port 0 --inspect", sentence("--inspect", "app.ts", "notes, tenants")],
    ["app.ts --http --port 0 --path /x", sentence("--path", "app.ts", "notes, tenants")],
    ["app.ts --http --port 0 --path /x --server tenants", sentence("--path", "app.ts")],
    ["call app.ts ping", sentence("app.ts", "notes, tenants", "--server")],
    ["call http://127.0.0.1:1/mcp ping --server a", sentence("--server")],
    ["check app.ts --server tenants", sentence("app.ts", "/:tenant/mcp", "--param tenant=")],
  ]
) {
  Deno.test(`mcp ${words}`, async () => {
    await withFiles(files, async (cwd) => {
      await assertRefused(runHere([...words.split(" ")], { cwd }), message);
    });
  });
}

for (const { name, program } of runtimes) {
  testProcesses(`${name}: --http serves all servers of a file`, async () => {
    await withFiles(files, async (cwd) => {
      await using served = await start([...program, "app.ts", "--http", "--port", "0"], { cwd });
      const [, origin] = await served.waitFor(
        /app\.ts .*(http:\/\/127\.0\.0\.1:\d+)\/notes\/mcp\n.*http:\/\/127\.0\.0\.1:\d+\/:tenant\/mcp\n/,
      );
      await using notes = await connect(`${origin}/notes/mcp`);
      await using acme = await connect(`${origin}/acme/mcp`);
      assertEquals([textOf(await notes.callTool("ping")), textOf(await acme.callTool("who"))], ["pong", "acme"]);
    });
  });

  testProcesses(`${name}: --http prints commands only for endpoints whose URL is complete`, async () => {
    const single = app().replace("mount([one, many])", "many");
    await withFiles({ "app.ts": app(), "single.ts": single }, async (cwd) => {
      for (
        const [words, call, install] of [
          ["app.ts", "/notes/mcp", "app.ts --server notes"],
          ["app.ts --server tenants", "/TENANT/mcp", "app.ts --server tenants --param tenant=TENANT"],
          ["app.ts --server tenants --param tenant=acme", "/acme/mcp", "app.ts --server tenants --param tenant=acme"],
          ["single.ts", "/TENANT/mcp", "single.ts --param tenant=TENANT"],
        ]
      ) {
        await using served = await start([...program, ...words.split(" "), "--http", "--port", "0"], { cwd });
        const [notice] = await served.waitFor(/^[^]*Ctrl-C.*\n/);
        assertMatch(notice, new RegExp(` call http://127\\.0\\.0\\.1:\\d+${call}\n`));
        // Without this flag, Deno would ask for permissions when the client starts the server.
        const permissions = name === "deno" ? " --allow-none" : "";
        assertStringIncludes(notice, ` install ${install} --client claude-desktop${permissions}\n`);
      }
    });
  });

  testProcesses(`${name}: --path does not change the response to a method that a new request cannot have`, async () => {
    await withFiles({ "one.ts": app().replace("mount([one, many])", "one") }, async (cwd) => {
      const answers: unknown[] = [];
      const paths = [[[], "/notes/mcp", "/x"], [["--path", "/x"], "/x", "/notes/mcp"]] as const;
      for (const [options, path, others] of paths) {
        await using served = await start([...program, "one.ts", "--http", "--port", "0", ...options], { cwd });
        const [, port] = await served.waitFor(/http:\/\/127\.0\.0\.1:(\d+)\//);
        for (const method of ["PUT", "TRACE", "TRACK", "get"]) {
          for (const target of [path, others]) {
            const connection = await connectRaw(Number(port));
            await connection.write(`${method} ${target}?a=1 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n`);
            const answer = await connection.read();
            connection.close();
            answers.push([method, target === path, answer?.status, answer?.headers.get("allow"), answer?.body]);
          }
        }
      }
      assertEquals(answers.slice(8), answers.slice(0, 8));
    });
  });

  testProcesses(`${name}: over stdio, options select the server and the path parameters`, async () => {
    await withFiles(files, async (cwd) => {
      const input = toRequestLine("tools/call", { name: "who", _meta });
      const words = ["app.ts", "--stdio", "--server", "tenants", "--param", "tenant=acme"];
      const { stdout } = await ask([...program, ...words], { cwd, input });
      assertEquals(JSON.parse(stdout).result.content, [{ type: "text", text: "acme" }]);
      const called = await run([...program, "call", "app.ts", "ping", "--server", "notes"], { cwd });
      assertEquals(called.stdout.trim(), "pong");
    });
  });
}

const [{ program }] = runtimes;

testProcesses("the inspector shows the endpoint that the options select", async () => {
  await withFiles(files, async (cwd) => {
    const words = ["app.ts", "--http", "--port", "0", "--inspect", "--server", "tenants", "--param", "tenant=acme"];
    await using served = await start([...program, ...words], { cwd });
    const [, origin] = await served.waitFor(/(http:\/\/127\.0\.0\.1:\d+)\/acme\/mcp/);
    await using acme = await connect(`${origin}/acme/mcp`);
    assertEquals(textOf(await acme.callTool("who")), "acme");
    assertStringIncludes(await (await fetch(origin)).text(), "/acme/mcp");
  });
});

testProcesses("check reports on all servers, and install writes the selecting options into the entry", async () => {
  await withFiles(files, async (cwd) => {
    const checked = await run([...program, "check", "app.ts", "--param", "tenant=acme"], { cwd });
    assertEquals(checked.code, 0);
    assertMatch(checked.stdout, /^app\.ts, server notes: 1 tool[^]*^app\.ts, server tenants: 1 tool/m);
    const options = [
      "--server",
      "tenants",
      "--param",
      "tenant=acme",
      "--client",
      "cursor",
      "--dry-run",
      "--allow-none",
    ];
    const installed = await run([...program, "install", "app.ts", ...options], { cwd });
    assertStringIncludes(installed.stderr, sentence("1 tool", "who"));
    assertStringIncludes(installed.stderr, "app.ts --server tenants --param tenant=acme");
  });
});

testProcesses(
  "a file with several servers is reloaded after a change, unless its handlers depend on path parameters",
  async () => {
    const source = (text: string, second = "two") =>
      `import { createServer, mount, tool } from "@x/mcp";
    const say = tool({ name: "say", run: () => "${text}" });
    const observer = { close: () => console.error("Closed one of ${text}") };
    const one = createServer({ name: "one", version: "1", path: "/one/mcp", observer, handlers: [say] });
    const second = createServer({ name: "${second}", version: "1", path: "/${second}/mcp", handlers: [say] });
    export default mount([one, second]);`;
    await withFiles({ "app.ts": source("before"), "many.ts": app() }, async (cwd) => {
      await using served = await start([...program, "app.ts", "--http", "--port", "0", "--watch"], { cwd });
      const [, origin] = await served.waitFor(/(http:\/\/127\.0\.0\.1:\d+)\/one\/mcp/);
      const write = (file: string, text: string) =>
        Deno.writeTextFile(`${cwd}/${file}`, text.replaceAll('"@x/mcp"', JSON.stringify(`${root}mod.ts`)));
      await write("app.ts", source("after"));
      for (const path of ["/one/mcp", "/two/mcp"]) {
        await using client = await connect(origin + path);
        await until(async () => textOf(await client.callTool("say")) === "after", "the file has been reloaded");
      }
      await write("app.ts", source("wrong", "three"));
      await served.waitFor(/Closed one of wrong/);
      assertStringIncludes(await waitForLine(served, "app.ts", "three"), sentence("app.ts", "three"));
      await using client = await connect(`${origin}/one/mcp`);
      assertEquals(textOf(await client.callTool("say")), "after");
      await using many = await start([...program, "many.ts", "--http", "--port", "0", "--watch"], { cwd });
      await many.waitFor(/many\.ts/);
      await write("many.ts", app("other"));
      assertStringIncludes(await waitForLine(many, "many.ts:"), sentence("many.ts"));
    });
  },
);
