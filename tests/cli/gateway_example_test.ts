// The example of a gateway, with published servers, as the Dockerfile starts it.
import { assert, assertEquals } from "@std/assert";
import { copyFile } from "node:fs/promises";
import notes from "../../examples/notes.ts";
import { connect } from "../../src/client/client.ts";
import { textOf } from "../support/behaviour.ts";
import { testProcesses, withFiles } from "../support/command_line.ts";
import { root, run } from "../support/processes.ts";
import { allRuntimes } from "./runtimes.ts";

testProcesses("the example of a gateway serves two programs and a server over HTTP, on every runtime", async () => {
  const lines = (await Deno.readTextFile(`${root}examples/gateway/Dockerfile`)).trim().split("\n");
  const read = (word: string) => lines.find((line) => line.startsWith(`${word} `))?.slice(word.length + 1) ?? "";
  const remote = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, (request) => notes.fetch(request));
  await withFiles({}, async (cwd) => {
    const [...names] = read("COPY").split(" ").slice(0, -1);
    for (const name of names) await copyFile(`${root}examples/gateway/${name}`, `${cwd}/${name}`);
    const { code, stderr } = await run(["sh", "-c", read("RUN")], { cwd });
    assertEquals(code, 0, stderr);
    const words: readonly string[] = JSON.parse(read("CMD")).slice(3);
    const env = { NOTES_URL: `http://127.0.0.1:${remote.addr.port}/mcp` };
    const checked = await run([
      ...allRuntimes[0].program,
      "check",
      "--locked",
      "--servers",
      "servers.json",
      "--env",
      "NOTES_URL",
    ], {
      cwd,
      env,
    });
    assertEquals(checked.code, 0, checked.stdout + checked.stderr);
    for (const { name: runtime, program } of allRuntimes) {
      const [command, ...args] = program;
      await using client = await connect({ command, args: [...args, ...words], cwd, env });
      assertEquals((await client.listTools()).map(({ name }) => name), ["search_tools", "call_tool"]);
      for (const [query, name] of [["graph", "memory_read_graph"], ["directory", "files_list_directory"]]) {
        const found = textOf(await client.callTool("search_tools", { query }));
        assert(found.includes(name), found);
      }
      const called = await client.callTool("call_tool", { name: "files_list_directory", arguments: { path: "." } });
      assert(textOf(called).includes("servers.json"), textOf(called));
      const wrote = { name: "notes_write", arguments: { title: `by_${runtime}`, text: "A gateway" } };
      const written = await client.callTool("call_tool", wrote);
      assert(!written.isError, textOf(written));
    }
  });
  await remote.shutdown();
});
