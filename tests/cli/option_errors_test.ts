// Errors for unknown options in served files, and for operands that a command does not take.
import { assert, assertEquals, assertMatch, assertRejects, assertStringIncludes } from "@std/assert";
import { readArgs } from "../../src/cli/args.ts";
import { check } from "../../src/cli/check.ts";
import { UsageError } from "../../src/cli/cli_error.ts";
import { toFlags } from "../../src/cli/command.ts";
import { createCompletions } from "../../src/cli/completions.ts";
import { doctor } from "../../src/cli/doctor.ts";
import { install } from "../../src/cli/install.ts";
import { create } from "../../src/cli/new.ts";
import { openapi } from "../../src/cli/openapi.ts";
import { pack } from "../../src/cli/pack.ts";
import { token } from "../../src/cli/token.ts";
import { withFiles } from "../support/command_line.ts";
import { sentence } from "../support/messages.ts";
import { runHere } from "./run_here.ts";

const file = `import { createServer, tool } from "@x/mcp";
const add = tool({ name: "add", description: "Adds", requiredScopes: ["a"], run: () => 3 });
export default createServer({ name: "calc", version: "1.0.0", handlers: [add] });`;

Deno.test("check and serve refuse a file with an unknown option, and name the line of the option", async () => {
  await withFiles({ "server.js": file }, async (cwd) => {
    for (const words of [["check", "server.js"], ["--stdio", "server.js"]]) {
      const { code, stderr } = await runHere(words, { cwd });
      assert(code > 0, stderr);
      assertStringIncludes(stderr, sentence('"add"', "requiredScopes", "scopes?"));
      assertMatch(stderr, /server\.js:2/);
    }
  });
});

const completions = createCompletions(() => Promise.resolve([]));

for (const command of [check, completions, doctor, install, create, openapi, pack, token]) {
  Deno.test(`${command.name} refuses a second operand, and names both operands`, async () => {
    const [first, second] = ["https://one.example/a", "https://one.example/b"];
    const args = await readArgs([first, second], toFlags(command.options));
    const { message } = await assertRejects(async () => await command.run(args), UsageError);
    assertEquals(message, sentence(`${first} and ${second}`));
  });
}

Deno.test("doctor --store refuses a second operand, and names both operands", async () => {
  const args = await readArgs(["--store", "a.ts", "b.ts"], toFlags(doctor.options));
  const { message } = await assertRejects(async () => await doctor.run(args), UsageError);
  assertEquals(message, sentence("a.ts and b.ts"));
});
