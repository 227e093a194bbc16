// Services in real processes: created before the server listens, and disposed in every kind of shutdown, on both
// runtimes.
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { _meta, testProcesses, toRequestLine, withFiles } from "../support/command_line.ts";
import { sentence } from "../support/messages.ts";
import { runtimes } from "./runtimes.ts";
import { root, start } from "../support/processes.ts";

const program = `${root}tests/transports/services_program.ts`;
const call = toRequestLine("tools/call", { name: "hang", arguments: {}, _meta });

/** Returns the lines about services that a program printed. */
function toLines(stderr: string): string[] {
  return stderr.split("\n").filter((line) => /^(making|made|make|disposed|running|served)/.test(line));
}

for (const { name, file, program: cli } of runtimes) {
  testProcesses(`${name}: serveStdio disposes services when its input ends`, async () => {
    await using running = await start([...file, program], { input: call });
    const { code, stderr } = await running.finished;
    assertEquals(toLines(stderr), [
      "making db",
      "made db",
      "running",
      "disposed tx cancelled",
      "disposed db result",
      "served",
    ]);
    assertEquals(code, 0);
  });

  for (const [signal, wanted] of [["SIGINT", 130], ["SIGTERM", 143]] as const) {
    testProcesses(`${name}: serveStdio disposes services on ${signal}`, async () => {
      await using running = await start([...file, program]);
      await running.waitFor(/made db/);
      running.kill(signal);
      const { code, stderr } = await running.finished;
      assertEquals([toLines(stderr), code], [["making db", "made db", "disposed db result"], wanted]);
    });

    testProcesses(`${name}: the CLI disposes services on ${signal}, over stdio and HTTP`, async () => {
      for (const flags of [["--stdio"], ["--http", "--port", "0"]]) {
        await withFiles({}, async () => {
          await using running = await start([...cli, program, ...flags, "--", "export"]);
          await running.waitFor(flags.includes("--http") ? /http:/ : /made db/);
          // Fixed wait: the CLI prints nothing when it starts to read its input.
          if (flags.includes("--stdio")) await new Promise((resolve) => setTimeout(resolve, 200));
          running.kill(signal);
          const { code, stderr } = await running.finished;
          assertEquals([toLines(stderr), code], [["making db", "made db", "disposed db result"], 0], flags.join(" "));
        });
      }
    });
  }

  testProcesses(`${name}: a signal while a service is being created aborts the creation`, async () => {
    for (const words of [[...file, program, "hang"]]) {
      await using running = await start(words);
      await running.waitFor(/making db/);
      running.kill("SIGTERM");
      const { code, stderr } = await running.finished;
      assertEquals(toLines(stderr), ["making db", "make was aborted", "made db", "disposed db cancelled"]);
      assertEquals(code, 143);
    }
  });

  testProcesses(`${name}: a service that cannot be created stops the server before it listens`, async () => {
    await using running = await start([...file, program, "fail"], { input: call });
    const { code, stdout, stderr } = await running.finished;
    assert(code !== 0);
    assertEquals(stdout, "");
    assertStringIncludes(stderr, "the database is down");
    assertEquals(toLines(stderr), ["making db"]);
  });

  testProcesses(`${name}: the CLI names a service that cannot be created, and exits with 2`, async () => {
    const source = `import { createServer, service, tool } from "@x/mcp";
const db = service("db", () => { throw new RangeError("the database is down"); });
export default createServer({ name: "a", version: "1", handlers: [tool({ name: "t", services: { db }, run: () => 1 })] });
`;
    await withFiles({ "server.ts": source }, async (cwd) => {
      for (const flag of ["--stdio", "--http"]) {
        await using running = await start([...cli, "server.ts", flag], { cwd, input: "" });
        const { code, stdout, stderr } = await running.finished;
        assertStringIncludes(stderr, `${sentence("server.ts")}\nRangeError: the database is down`);
        assertEquals([code, stdout], [2, ""]);
      }
    });
  });

  testProcesses(`${name}: check creates no services`, async () => {
    await using running = await start([...cli, "check", program, "--", "export"], { input: "" });
    const { stderr } = await running.finished;
    assertEquals(toLines(stderr), []);
  });
}
