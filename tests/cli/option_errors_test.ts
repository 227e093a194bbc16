// Errors for unknown options in served files.
import { assert, assertMatch, assertStringIncludes } from "@std/assert";
import { testProcesses, withFiles } from "../support/command_line.ts";
import { sentence } from "../support/messages.ts";
import { run } from "../support/processes.ts";
import { runtimes } from "./runtimes.ts";

const file = `import { createServer, tool } from "@x/mcp";
const add = tool({ name: "add", description: "Adds", requiredScopes: ["a"], run: () => 3 });
export default createServer({ name: "calc", version: "1.0.0", handlers: [add] });`;

for (const { name, program } of runtimes) {
  testProcesses(
    `${name}: check and serve refuse a file with an unknown option, and name the line of the option`,
    async () => {
      await withFiles({ "server.js": file }, async (cwd) => {
        for (const words of [["check", "server.js"], ["--stdio", "server.js"]]) {
          const { code, stderr } = await run([...program, ...words], { cwd });
          assert(code > 0, stderr);
          assertStringIncludes(stderr, sentence('"add"', "requiredScopes", "scopes?"));
          assertMatch(stderr, /server\.js:2/);
        }
      });
    },
  );
}
