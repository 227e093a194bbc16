// A server file whose key is not set loads. Commands that serve it name the key.
import { assertEquals, assertStringIncludes } from "@std/assert";
import { withFiles } from "../support/command_line.ts";
import { root } from "../support/processes.ts";
import { sentence } from "../support/messages.ts";
import { runHere } from "./run_here.ts";

const source = `import { createServer, tool } from "@x/mcp";
import { apiKey } from "${root}src/auth/auth.ts";
const unset: Record<string, string | undefined> = {};
const auth = apiKey({ keys: { ada: unset.ADA_KEY } });
const hello = tool({ name: "hello", description: "Greets", run: () => "Hello!" });
export default createServer({ name: "me", version: "1.0.0", auth, handlers: [hello] });`;

const commands = {
  check: ["check", "server.ts"],
  "serve over HTTP": ["server.ts", "--http", "--port", "0"],
  "serve over stdio": ["server.ts", "--stdio"],
};

Deno.test("commands that serve name a key that is not set", async () => {
  await withFiles({ "server.ts": source }, async (cwd) => {
    for (const [command, words] of Object.entries(commands)) {
      const { code, stderr } = await runHere(words, { cwd });
      assertEquals(code, 2, `${command}: ${stderr}`);
      assertStringIncludes(stderr, sentence('"ada"', "environment variable"), command);
    }
  });
});
