// Tasks on the command line: `mcp call`, `mcp call --task` and `mcp task`.
import { assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { createServer, McpError, tool, ToolError } from "../../mod.ts";
import { task, tasks } from "../../src/extensions/tasks/tasks.ts";
import { z } from "zod";
import { gate } from "../support/behaviour.ts";
import { testProcesses } from "../support/command_line.ts";
import { sentence } from "../support/messages.ts";
import { run, type Running, start } from "../support/processes.ts";
import { throwing } from "../support/throwing.ts";
import { runtimes } from "./runtimes.ts";
import { runHere } from "./run_here.ts";
import { inTerminal, serve } from "./servers.ts";

/**
 * Creates a server whose tools run as tasks. The tool `report` waits for `open`. `onEvent` is called with "cancelled"
 * when a task is cancelled, and with the method of each request.
 */
function createOffice(onEvent: (event: string) => void = () => {}) {
  const { pass, open } = gate();
  const use = [task({ pollIntervalMs: 100 })];
  const report = tool({
    name: "report",
    input: z.object({ title: z.string() }),
    use,
    async run({ title }, ctx) {
      await ctx.progress(1, { message: "Writing\x1b[2J" });
      const cancelled = Promise.withResolvers<void>();
      ctx.signal.addEventListener("abort", () => cancelled.resolve());
      await Promise.race([pass, cancelled.promise]);
      if (ctx.signal.aborted) onEvent("cancelled");
      return `Report ${title}`;
    },
  });
  const ask = tool({
    name: "ask",
    use,
    async run(_input, ctx) {
      const { content } = await ctx.elicit("name", { message: "Who?", schema: z.object({ name: z.string() }) });
      return `Hello ${content?.name}`;
    },
  });
  const fail = tool({
    name: "fail",
    use,
    run: throwing(new McpError(-31001, "No paper")),
  });
  const break_ = tool({
    name: "break",
    use,
    run: throwing(new ToolError("It broke")),
  });
  const quick = tool({ name: "quick", run: () => "quick" });
  const observer = { call: ({ method }: { readonly method: string }) => onEvent(method) };
  const handlers = [tasks(), report, ask, fail, break_, quick];
  return {
    server: createServer({ name: "office", version: "1.0.0", handlers, observer, limits: { calls: { closeMs: 10 } } }),
    open,
  };
}

Deno.test("a call waits for its task, answers its question, and exits with the error of the task", async () => {
  const { server, open } = createOffice();
  open();
  await using served = await serve(server.fetch);
  const call = (...words: string[]) => runHere(["call", served.url, ...words]);
  const [report, answer, failed, broken] = await Promise.all([
    call("report", "title=A"),
    call("ask", "--answer", "name=Ada"),
    call("fail"),
    call("break"),
  ]);
  assertEquals(report, { code: 0, stdout: "Report A\n", stderr: "" });
  assertEquals([answer.code, answer.stdout], [0, "Hello Ada\n"]);
  assertEquals([failed.code, failed.stdout], [1, ""]);
  assertStringIncludes(failed.stderr, "No paper (-31001)");
  assertEquals([broken.code, broken.stdout], [1, "It broke\n"]);
  await server.close();
});

Deno.test("--task prints the task's id, and the task command shows, waits for and cancels the task", async () => {
  const { server, open } = createOffice();
  await using served = await serve(server.fetch);
  const begin = async (...words: string[]) => {
    const { code, stdout, stderr } = await runHere(["call", "--task", served.url, ...words]);
    assertEquals([code, stderr], [0, ""]);
    return stdout.trim();
  };
  const use = (action: string, id: string, ...words: string[]) => runHere(["task", action, served.url, id, ...words]);
  const [report, other, asking] = await Promise.all([
    begin("report", "title=A"),
    begin("report", "title=B"),
    begin("ask"),
  ]);
  assertMatch(report, /^[\w-]{16,}$/);
  const [state, question, cancelled, unknown, dashed, wrong] = await Promise.all([
    use("get", report),
    use("get", asking),
    use("cancel", other),
    use("get", "unknown"),
    use("get", "-NSUB9yi5oyEZXpMu0sNU94bA4TwDKYF"), // an id that another server may make
    use("get", report, "-output"),
  ]);
  assertEquals(state, { code: 0, stdout: "Status: working\nMessage: Writing\\u{1b}[2J\n", stderr: "" });
  assertEquals([question.code, question.stdout], [0, "Status: input_required\nQuestion name: Who?\n"]);
  assertEquals(cancelled, { code: 0, stdout: "", stderr: `${sentence()}\n` });
  assertEquals([unknown.code, unknown.stdout], [1, ""]);
  assertEquals(dashed, unknown);
  assertEquals([wrong.code, wrong.stdout], [2, ""]);
  assertStringIncludes(wrong.stderr, sentence("-output", "--output"));
  open();
  const [result, lost, answered, json] = await Promise.all([
    use("wait", report),
    use("wait", other),
    use("wait", asking, "--answer", "name=Bo"),
    use("get", report, "--json"),
  ]);
  assertEquals(result, { code: 0, stdout: "Report A\n", stderr: "" });
  assertEquals(lost.code, 1);
  assertStringIncludes(lost.stderr.replace(other, "TASK_ID"), sentence("TASK_ID"));
  assertEquals([answered.code, answered.stdout], [0, "Hello Bo\n"]);
  assertEquals(JSON.parse(json.stdout).taskId, report);
  await server.close();
});

Deno.test("a call without a task ignores --task, and usage errors are explained", async () => {
  const { server } = createOffice();
  await using served = await serve(server.fetch);
  const [quick, action, id, extra] = await Promise.all([
    runHere(["call", "--task", served.url, "quick"]),
    runHere(["task", "stop", served.url, "1"]),
    runHere(["task", "get", served.url]),
    runHere(["task", "get", served.url, "1", "2"]),
  ]);
  assertEquals(quick, {
    code: 0,
    stdout: "quick\n",
    stderr: `${sentence()}\n`,
  });
  assertEquals([action.code, id.code, extra.code], [2, 2, 2]);
  assertStringIncludes(action.stderr, sentence("task stop", "task get", "task wait", "task cancel"));
  assertStringIncludes(id.stderr, sentence("ID", "--task"));
  assertStringIncludes(extra.stderr, sentence("1", "2", "ID"));
  await server.close();
});

for (const { name, program } of runtimes) {
  const test = (what: string, fn: () => Promise<void>) => testProcesses(`${name}: ${what}`, fn);

  test("a terminal shows the status messages of a task as progress", async () => {
    let polls = 0;
    const { server, open } = createOffice((method) => {
      if (method === "tasks/get" && ++polls === 4) open();
    });
    await using served = await serve(server.fetch);
    const { code, stdout } = await run(inTerminal([...program, "call", served.url, "report", "title=A"]));
    assertEquals(code, 0);
    assertStringIncludes(stdout, "1  Writing\\u{1b}[2J");
    assertStringIncludes(stdout, "Report A");
    await server.close();
  });

  test("Ctrl-C during a call cancels its task, and Ctrl-C during task wait only ends the wait", async () => {
    const cancelled = Promise.withResolvers<void>();
    let polled = Promise.withResolvers<void>();
    const { server } = createOffice((event) => {
      if (event === "cancelled") cancelled.resolve();
      if (event === "tasks/get") polled.resolve();
    });
    // Rejects if the program exits, with the program's output. There is no timeout, because the program may take long
    // to start.
    const untilPolled = (program: Running) =>
      Promise.race([
        polled.promise,
        program.finished.then(({ code, stderr }) =>
          Promise.reject(new Error(`The program exited with ${code}: ${stderr}`))
        ),
      ]);
    await using served = await serve(server.fetch);
    await using calling = await start([...program, "call", served.url, "report", "title=A"]);
    await untilPolled(calling);
    calling.kill("SIGINT");
    assertEquals((await calling.finished).code, 130);
    await cancelled.promise;
    const { stdout } = await run([...program, "call", "--task", "--json", served.url, "report", "title=B"]);
    const { taskId, status } = JSON.parse(stdout);
    assertEquals(status, "working");
    polled = Promise.withResolvers();
    await using waiting = await start([...program, "task", "wait", served.url, taskId]);
    await untilPolled(waiting).finally(() => waiting.kill("SIGINT"));
    const { code, stderr } = await waiting.finished;
    assertEquals(code, 130);
    assertStringIncludes(stderr, `task wait ${served.url} ${taskId}`);
    assertStringIncludes((await run([...program, "task", "get", served.url, taskId])).stdout, "Status: working");
    await server.close();
  });
}
