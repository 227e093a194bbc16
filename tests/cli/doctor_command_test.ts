// `mcp doctor` in real processes with real connections.
import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { testProcesses } from "../support/command_line.ts";
import { runtimes } from "./runtimes.ts";
import { root, run, start } from "../support/processes.ts";

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
    for (const { program: server } of runtimes.filter((each) => each.name !== name)) {
      await using served = await start([...server, "--http", "--port", "0"]);
      const [, url] = await served.waitFor(/at (http:\S+)\n/);
      const words = [...program, "doctor", url, "--json", "--header", "x-key=a=b"];
      const { code, stdout, stderr } = await run(words);
      assertEquals({ code, stderr }, { code: 0, stderr: "" }, stdout);
      const { url: told, problems, findings } = JSON.parse(stdout);
      assertEquals({ told, problems }, { told: url, problems: 0 });
      const host = findings.find(({ check }: { check: string }) => check === "foreign host");
      assertEquals(host, {
        level: "ok",
        check: "foreign host",
        message: "a request for the host stranger.invalid is rejected with 403",
      });
    }
  });

  testProcesses(`${name}: doctor explains why a connection fails`, async () => {
    using mute = listen();
    using rude = listen("220 ready\r\n");
    const gone = listen();
    gone[Symbol.dispose]();
    const expected = [
      [`http://${gone.host}/mcp`, `nothing listens at ${gone.host}\n`],
      ["http://nobody.invalid/mcp", "the host name nobody.invalid has no address\n"],
      [`https://${rude.host}/mcp`, `${rude.host} does not speak TLS\n`],
      [`http://${rude.host}/mcp`, `${rude.host} closed the connection or sent something other than HTTP\n`],
      [`http://${mute.host}/mcp`, "the server did not respond within 0.3 s\n", "0.3"],
    ];
    await Promise.all(expected.map(async ([url, told, seconds = "60"]) => {
      const { code, stdout } = await run([...program, "doctor", url, "--timeout", seconds]);
      assertEquals(code, 1);
      assert(stdout.startsWith(`problem  connection  ${told}                     -> `), stdout);
      assertMatch(stdout, /\n\n1 problem\.\n$/);
    }));
  });

  testProcesses(`${name}: doctor stops on Ctrl-C, and prints that it was stopped`, async () => {
    using mute = listen();
    await using process = await start([...program, "doctor", `http://${mute.host}/mcp`, "--timeout", "60"]);
    await mute.reached;
    process.kill("SIGINT");
    const { code, stderr } = await process.finished;
    assertEquals(code, 130);
    assertMatch(stderr, /^Stopping after the current test/);
  });
}

testProcesses("doctor refuses targets that cannot be examined, and never prints a token", async () => {
  const program = ["bun", `${root}mod.ts`, "doctor"];
  const expected = [
    [[], "Cannot examine a server: no URL is named; write the server's URL, such as http:"],
    [
      ["mcp.jsonc"],
      "Cannot examine mcp.jsonc: it is a file; use the check command, add --store to examine the store, or serve the file with --http and name the URL",
    ],
    [["localhost:1/mcp"], "Cannot examine localhost:1/mcp: it has no scheme; write http:// before it"],
    [["ftp://x"], "Cannot examine ftp://x: it is not an HTTP URL; write the server's URL, such as http:"],
    [["--", "server"], "Cannot examine a command: it does not serve HTTP; use the inspect command, or name a URL"],
    [
      ["http://a", "http://b"],
      "Cannot examine http://a and http://b: doctor examines one server; remove one of the two",
    ],
    [["http://a", "--header", "secret"], "Cannot send a header: it has no name and value; write --header name=value"],
    [["http://a", "--header", "x(y=secret"], "Cannot send the header x(y: the name or value contains characters"],
    [
      ["http://a", "--timeout", "soon"],
      "Cannot use --timeout soon: it is not a number of seconds up to 600; write a number",
    ],
    [
      ["http://a", "--origin", "a.example"],
      "Cannot use the origin a.example: it does not consist of a scheme and a host",
    ],
  ] as const;
  await Promise.all(expected.map(async ([words, told]) => {
    const { code, stdout, stderr } = await run([...program, ...words]);
    assertEquals({ code, stdout }, { code: 2, stdout: "" });
    assertStringIncludes(stderr, told);
    assert(!stderr.includes("secret"), stderr);
  }));
});
