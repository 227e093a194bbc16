// Promises that no code awaits, in servers that the CLI serves.
import { assert, assertEquals } from "@std/assert";
import { type Client, connect } from "../../src/client/client.ts";
import { until } from "../support/behaviour.ts";
import { testProcesses } from "../support/command_line.ts";
import { root, start } from "../support/processes.ts";
import { runtimes } from "./runtimes.ts";

const file = `${root}tests/serve/rejections_program.ts`;
const VERSIONS = ["2026-07-28", "2025-11-25"] as const;

/** Calls tools whose promises reject later, and checks that the server reports the rejections and lives on. */
async function callForgetful(client: Client): Promise<void> {
  const call = async (name: string, args = {}) => Object((await client.callTool(name, args)).content[0]).text;
  for (const [count, tool] of ["forget", "lose", "forget"].entries()) {
    await call(tool, { what: "a file" });
    await until(async () => (await call("faults")).split(",").filter(Boolean).length > count, `${tool} is reported`);
  }
  assertEquals(await call("ping"), "pong");
}

for (const { name, program } of runtimes) {
  for (const version of VERSIONS) {
    testProcesses(`${name}: a promise that no code awaits does not end serve --http, in ${version}`, async () => {
      await using running = await start([...program, file, "--http", "--port", "0"]);
      const [, url] = await running.waitFor(/at (http\S+)/);
      await using client = await connect(url, { revisions: [version] });
      await callForgetful(client);
      await running.waitFor(/^fault .*cannot save a file/m);
    });

    testProcesses(`${name}: a promise that no code awaits does not end serve --stdio, in ${version}`, async () => {
      const [command, ...args] = program;
      await using client = await connect({ command, args: [...args, file, "--stdio"] }, { revisions: [version] });
      await callForgetful(client);
    });
  }

  testProcesses(`${name}: an uncaught exception ends serve --http`, async () => {
    await using running = await start([...program, file, "--http", "--port", "0"]);
    const [, url] = await running.waitFor(/at (http\S+)/);
    const client = await connect(url);
    await client.callTool("crash").catch(() => {});
    assert((await running.finished).code !== 0);
    await client.close().catch(() => {});
  });
}
