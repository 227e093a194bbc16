// `mcp doctor` in real processes with real connections.
import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { testProcesses } from "../support/command_line.ts";
import { allRuntimes, runtimes } from "./runtimes.ts";
import { root, run, start } from "../support/processes.ts";
import { sentence } from "../support/messages.ts";

/** Listens on a port, and sends a text and closes each connection, or never sends anything. */
function listen(say?: string): Disposable & { readonly host: string; readonly reached: Promise<void> } {
  const { promise: reached, resolve } = Promise.withResolvers<void>();
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const open: Deno.Conn[] = [];
  (async () => {
    for await (const connection of listener) {
      open.push(connection);
      resolve();
      if (say !== undefined) await connection.write(new TextEncoder().encode(say)).catch(() => {});
      if (say !== undefined) connection.close();
    }
  })().catch(() => {});
  return {
    reached,
    host: `127.0.0.1:${listener.addr.port}`,
    [Symbol.dispose]() {
      listener.close();
      for (const connection of say === undefined ? open : []) connection.close();
    },
  };
}

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

  testProcesses(`${name}: doctor explains why a connection fails`, async () => {
    using mute = listen();
    using rude = listen("220 ready\r\n");
    const gone = listen();
    gone[Symbol.dispose]();
    const expected = [
      [`http://${gone.host}/mcp`, sentence(gone.host)],
      ["http://nobody.invalid/mcp", sentence("nobody.invalid")],
      [`https://${rude.host}/mcp`, sentence(rude.host)],
      [`http://${rude.host}/mcp`, sentence(rude.host)],
      [`http://${mute.host}/mcp`, sentence("0.3 s"), "0.3"],
    ];
    const examined = await Promise.all(
      expected.map(([url, , seconds = "60"]) => run([...program, "doctor", url, "--timeout", seconds])),
    );
    examined.forEach(({ code, stdout }, i) => {
      assertEquals(code, 1);
      const [problem, fix] = stdout.split("\n");
      assertEquals(problem, `problem  connection  ${expected[i][1]}`);
      assertMatch(fix, /^ {21}-> /);
      assertMatch(stdout, /\n\n1 .*\n$/);
    });
  });

  testProcesses(`${name}: doctor stops on Ctrl-C, and prints that it was stopped`, async () => {
    using mute = listen();
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
