// Reloads of a watched target: no change is missed, whenever the change happens.
import { assertEquals } from "@std/assert";
import type { Loaded } from "../../src/cli/loaded.ts";
import { watchTarget } from "../../src/cli/target_watcher.ts";
import { platform } from "../../src/cli/platform.ts";
import { connect } from "../../src/client/client.ts";
import { createServer } from "../../mod.ts";
import { textOf, until } from "../support/behaviour.ts";
import { testProcesses, withFiles } from "../support/command_line.ts";
import { root, start } from "../support/processes.ts";
import { withFolder, writeFiles } from "./folder.ts";
import { runtimes } from "./runtimes.ts";

// Fixed wait: reloads that take longer than the interval of the watcher.
const delay = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));
const server = createServer({ name: "watched", version: "1.0.0" });

/** Watches `a.ts` in a folder. Each reload first reads the file, and then takes `reloadMs` more. */
async function watch(reloadMs: number, use: (write: (text: string) => Promise<void>, seen: string[]) => Promise<void>) {
  await withFolder({ "a.ts": "first" }, async (folder) => {
    const path = `${folder}/a.ts`;
    const seen: string[] = [];
    const reload: Loaded["reload"] = async () => {
      seen.push(new TextDecoder().decode(await platform.files.read(path, 1000)));
      await delay(reloadMs);
      return [path];
    };
    const stop = watchTarget("a.ts", { server, files: [path], reload }, Date.now());
    try {
      // By now, the watcher has read the first version.
      await delay(700);
      await use((text) => writeFiles(folder, { "a.ts": text }), seen);
    } finally {
      stop();
    }
  });
}

for (const [title, reloadMs] of [["long", 1500], ["short", 100]] as const) {
  Deno.test(`a change during a ${title} reload is loaded by the next reload`, async () => {
    await watch(reloadMs, async (write, seen) => {
      await write("the second");
      await until(() => seen.includes("the second"), "the first reload has read the file");
      await write("the third one");
      await until(() => seen.includes("the third one"), "the second reload has read the file");
      // A slow watcher may also load the first version.
      assertEquals(seen.filter((text) => text !== "first"), ["the second", "the third one"]);
    });
  });
}

const toText = (version: string) => `export const text = "import ${version}";`;
const toServer = (version: string, begin = "") =>
  `import { createServer, tool } from ${JSON.stringify(`${root}mod.ts`)};
  import { text } from "./text.ts";
  ${begin}
  const say = tool({ name: "say", run: () => text + ", file ${version}" });
  export default createServer({ name: "say", version: "1.0.0", handlers: [say] });`;

for (const { name, program } of runtimes) {
  testProcesses(`${name}: changes of a file and of its imports while the file is loaded are served`, async () => {
    const begin = `const { writeFileSync } = await import("node:fs");
      writeFileSync("text.ts", ${JSON.stringify(toText("new"))});
      writeFileSync("server.ts", ${JSON.stringify(toServer("new"))});`;
    await withFiles({ "text.ts": toText("old"), "server.ts": toServer("old", begin) }, async (cwd) => {
      await using served = await start([...program, "server.ts", "--http", "--port", "0", "--watch"], { cwd });
      const [, url] = await served.waitFor(/(http:\/\/127\.0\.0\.1:\d+\/mcp)/);
      await using client = await connect(url);
      await until(
        async () => textOf(await client.callTool("say")) === "import new, file new",
        "the changes are served",
      );
    });
  });
}
