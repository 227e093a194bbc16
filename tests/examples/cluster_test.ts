// Three instances behind a proxy. A change on one instance applies to the other instances, killing an instance causes
// no error for clients, another instance continues its tasks, and all instances can be stopped together.
import { assertEquals, assertMatch } from "@std/assert";
import process from "node:process";
import { connect } from "../../src/client/client.ts";
import { taskClient } from "../../src/extensions/tasks/client/tasks.ts";
import { testProcesses } from "../support/command_line.ts";
import { until } from "../support/behaviour.ts";
import { system, withFolder } from "../support/folder.ts";
import { findFreePort, run, start } from "../support/processes.ts";
import { missingRedis } from "../support/redis/server.ts";
import { needs, requireAll } from "../support/required.ts";
import { runtimes } from "../support/runtimes.ts";

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

for (const { name: runtime, file: command } of runtimes) {
  const { name, ignore } = needs(
    `three instances start with one command on ${runtime}, act as one server, and end with the command`,
    missingRedis,
  );
  testProcesses(name, async () => {
    requireAll(missingRedis);
    const port = findFreePort();
    await using running = await start([...command, "examples/cluster/main.ts", `${port}`], { timeoutMs: 120_000 });
    const url = `http://127.0.0.1:${port}/mcp`;
    const isServed = async () => {
      const response = await fetch(url).catch(() => undefined);
      await response?.body?.cancel();
      return response !== undefined;
    };
    await until(isServed, "the proxy");
    const pids: number[] = [];
    for (const era of ["modern", "legacy"] as const) {
      await using client = await connect(url, {
        era,
        onElicit: () => ({ action: "accept", content: { item: "tea" } }),
        onWarning: () => {},
        extensions: [taskClient()],
      });
      const call = async (name: string, args = {}) => JSON.stringify((await client.callTool(name, args)).content);
      const first = await call("add", { item: era, key: era });
      for (let i = 0; i < 5; i++) assertEquals(await call("add", { item: era, key: era }), first);
      assertMatch(await call("suggest"), /tea/);
      const seen = new Set<string>();
      for (let i = 0; i < 6; i++) seen.add(await call("where"));
      assertEquals(seen.size, era === "modern" ? 3 : 2);
      if (era === "legacy") continue;
      const args = ["-P", `${running.pid}`, "-f", "examples/cluster/server.ts"];
      const listed = await new Deno.Command("pgrep", { args }).output();
      pids.push(...new TextDecoder().decode(listed.stdout).split("\n").filter(Boolean).map(Number).filter(isAlive));
      assertEquals(pids.length, 3, `${pids}`);
      let begun = "";
      const ordered = client.callTool("order", {}, { onProgress: ({ message = "" }) => void (begun ||= message) });
      await until(() => begun !== "", "the task has begun");
      const [, instance] = /, on (.+)$/.exec(begun) ?? [];
      const environments = await Promise.all(pids.map((pid) => Deno.readTextFile(`/proc/${pid}/environ`)));
      const [killed] = pids.filter((_, at) => environments[at].split("\0").includes(`INSTANCE=${instance}`));
      process.kill(killed, "SIGKILL");
      await until(() => !isAlive(killed), "the killed instance");
      assertMatch(JSON.stringify((await ordered).content), /modern: ordered by instance/);
      const { contents: [list] } = await client.readResource("list://shopping");
      assertEquals("text" in list && list.text, "- modern");
    }
    running.kill("SIGINT");
    await running.finished;
    await until(() => pids.every((pid) => !isAlive(pid)), "the other instances have ended");
  }, { ignore });
}

for (const { name: runtime, file: command } of runtimes) {
  testProcesses(`the command reports on ${runtime} that one of its programs has ended`, async () => {
    await withFolder({ "redis-server": "#!/bin/sh\necho out of memory >&2\nexit 3\n" }, async (folder) => {
      await system("chmod", "+x", `${folder}/redis-server`);
      const env = { PATH: `${folder}:${process.env.PATH}` };
      const { code, stderr } = await run([...command, "examples/cluster/main.ts"], { env });
      assertEquals(code, 1);
      assertMatch(stderr, /out of memory\n+Cannot start Redis: the program has ended; see its errors above/);
    });
  });
}
