// Promises that no code awaits, in programs that use `serve`, on Deno, Bun and Node.
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { connect } from "../../src/client/client.ts";
import { until } from "../support/behaviour.ts";
import { NODE_VERSIONS } from "../support/node_versions.ts";
import { type Running, start } from "../support/processes.ts";
import { open, RUNTIMES, testOn, toProgram } from "./processes.ts";

const file = toProgram("rejections_program.ts");
const isFault = /^fault /m;

/** Waits for a fault, and returns its server, its mark, its text, and its method and subject, if known. */
async function waitForFault({ waitFor }: Running, text: string): Promise<readonly unknown[]> {
  const [, fault] = await waitFor(new RegExp(`^fault (.*"${text}".*)$`, "m"));
  return JSON.parse(fault);
}

for (const name of RUNTIMES) {
  const test = (title: string, run: Parameters<typeof testOn>[2]) => testOn(name, `${title}, on ${name}`, run);
  /** Whether the first rejection already names its handler, and whether later rejections do. */
  const namesFirst = name === `node ${NODE_VERSIONS.at(-1)}`;
  const namesLater = name !== "bun";
  const toPlace = (subject: string, isNamed: boolean) => isNamed ? ["tools/call", subject] : [null, null];

  for (const mode of ["serve", "mount"]) {
    test(`a promise that no code awaits is a fault, and the process lives on, with ${mode}`, async (words) => {
      await using running = await open(words, file, mode);
      await using client = await connect(running.url);
      // Without the call, the fault belongs to the first server.
      const toServer = (isNamed: boolean) => mode === "mount" && !isNamed ? "zero" : "first";
      await client.callTool("lose", { what: "a" });
      assertEquals(await waitForFault(running, "cannot save all a"), [
        ...[toServer(namesFirst), true, "cannot save all a"],
        ...toPlace("lose", namesFirst),
      ]);
      const calls = [
        ["forget", { what: "b" }, "cannot save b", "forget"],
        ["lose", { what: "c" }, "cannot save all c", "lose"],
        ["reject", {}, "a text", "reject"],
        ["outer", {}, "cannot save the inner call", "forget"],
      ] as const;
      for (const [tool, args, text, subject] of calls) {
        await client.callTool(tool, args);
        assertEquals(await waitForFault(running, text), [
          ...[toServer(namesLater), true, text],
          ...toPlace(subject, namesLater),
        ]);
      }
      assertEquals((await client.callTool("ping")).content, [{ type: "text", text: "pong" }]);
    });
  }

  test("without an observer, the server prints the rejection, with its stack", async (words) => {
    await using running = await open(words, file, "log");
    await using client = await connect(running.url);
    await client.callTool("lose", { what: "a" });
    const place = namesFirst ? 'tools/call of "lose"' : "logged";
    await running.waitFor(
      new RegExp(`Error \\w{8} in ${place}, in a promise .*:\\s+Error: cannot save all a\\s+at saveAll`),
    );
  });

  test("jsonLog marks the rejection", async (words) => {
    await using running = await open(words, file, "json");
    await using client = await connect(running.url);
    await client.callTool("lose", { what: "a" });
    const [line] = await running.waitFor(/^.*"event":"fault".*$/m);
    const { isUnawaited, name, stack } = JSON.parse(line);
    assertEquals([isUnawaited, name], [true, namesFirst ? "lose" : undefined]);
    assert(stack.some((frame: string) => frame.includes("saveAll")));
  });

  test("an uncaught exception ends the process", async (words) => {
    await using running = await open(words, file, "serve");
    const client = await connect(running.url);
    await client.callTool("crash").catch(() => {});
    const { code, stderr } = await running.finished;
    assert(code !== 0);
    assertStringIncludes(stderr, "an uncaught exception");
    await client.close().catch(() => {});
  });

  for (const mode of ["early", "closed", "fetch"]) {
    test(`a rejection ends the process if nothing is served: ${mode}`, async (words) => {
      await using running = await start([...words, file, mode], { timeoutMs: 60_000 });
      const { code, stderr } = await running.finished;
      assert(code !== 0);
      assert(!isFault.test(stderr));
    });
  }

  // Only Node passes rejections to a listener for exceptions.
  for (const mode of name.startsWith("node") ? ["listener", "exception"] : ["listener"]) {
    test(`the program's own listener gets the rejections, and the server reports none: ${mode}`, async (words) => {
      await using running = await open(words, file, mode);
      await using client = await connect(running.url);
      await client.callTool("forget", { what: "a" });
      await running.waitFor(/own cannot save a/);
      assertEquals((await client.callTool("ping")).content, [{ type: "text", text: "pong" }]);
      running.kill("SIGTERM");
      assert(!isFault.test((await running.finished).stderr));
    });
  }

  if (name !== "deno") {
    test("with a flag for rejections, the runtime decides", async ([command]) => {
      await using running = await open([command, "--unhandled-rejections=strict"], file, "serve");
      const client = await connect(running.url);
      await client.callTool("forget", { what: "a" }).catch(() => {});
      const { code, stderr } = await running.finished;
      assert(code !== 0);
      assert(!isFault.test(stderr));
      await client.close().catch(() => {});
    });
  }
}

Deno.test("a listener that has prevented the default gets the rejections on Deno", {
  ignore: typeof Deno === "undefined",
}, async () => {
  const { serve } = await import("../../src/server/serve.ts");
  const { default: server } = await import("./rejections_program.ts");
  const seen: unknown[] = [];
  const listener = (event: PromiseRejectionEvent) => {
    event.preventDefault();
    seen.push(event.reason);
  };
  globalThis.addEventListener("unhandledrejection", listener);
  await using served = await serve(server, { port: 0, signals: false });
  await using client = await connect(served.url);
  await client.callTool("reject");
  await until(() => seen.length, "the listener is called");
  assertEquals(seen, ["a text"]);
  globalThis.removeEventListener("unhandledrejection", listener);
});
