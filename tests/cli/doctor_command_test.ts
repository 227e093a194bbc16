// `mcp doctor` with real connections.
import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { once } from "node:events";
import { type AddressInfo, createServer as createTcpServer, type Socket } from "node:net";
import { testProcesses } from "../support/command_line.ts";
import { allRuntimes, runtimes } from "./runtimes.ts";
import { runHere } from "./run_here.ts";
import { root, run, start } from "../support/processes.ts";
import { sentence } from "../support/messages.ts";

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
  const refused = await Promise.all(expected.map(([words]) => run([...program, ...words])));
  refused.forEach(({ code, stdout, stderr }, i) => {
    assertEquals({ code, stdout }, { code: 2, stdout: "" });
    assertStringIncludes(stderr, expected[i][1]);
    assert(!stderr.includes("secret"), stderr);
  });
});
