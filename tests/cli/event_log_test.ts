// `mcp serve --log`: a server's events on standard error.
import { assert, assertEquals, assertMatch } from "@std/assert";
import { _meta, testProcesses, toRequestLine } from "../support/command_line.ts";
import { sentence } from "../support/messages.ts";
import { root, run } from "../support/processes.ts";
import { runtimes } from "./runtimes.ts";
import { assertRefused } from "./refused.ts";

const input = toRequestLine("tools/call", { name: "add", arguments: { a: 27182818284, b: 3 }, _meta });

testProcesses("the log has one line per call, as JSON or as text, and never contains arguments", async () => {
  for (const { program: words } of runtimes) {
    const json = await run([...words, "serve", "--stdio", "--log=json"], { input, cwd: root });
    const records = json.stderr.trim().split("\n").filter((line) => line[0] === "{").map((line) => JSON.parse(line));
    const calls = records.filter(({ event }) => event === "call");
    assertEquals(calls.map(({ method, name, outcome }) => [method, name, outcome]), [["tools/call", "add", "result"]]);
    const pretty = await run([...words, "serve", "--stdio", "--log=pretty"], { input, cwd: root });
    assertMatch(pretty.stderr, /^\d\d:\d\d:\d\d info {2}call tools\/call add result [\d.]+ ms .*revision=2026-07-28/m);
    assert(!/27182818284/.test(json.stderr + pretty.stderr));
    await assertRefused(
      run([...words, "serve", "--stdio", "--log=xml"], { input, cwd: root }),
      sentence('"xml"', "json", "pretty"),
    );
  }
});
