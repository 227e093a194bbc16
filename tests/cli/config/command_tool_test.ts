// Tools in config files that run a program.
import { assert, assertEquals, assertMatch, assertRejects, assertStringIncludes } from "@std/assert";
import { load } from "../../../src/cli/load.ts";
import { connectTest } from "../../../src/testing/testing.ts";
import { system, toOutcome, withFolder, withServer } from "../folder.ts";
import { until } from "../../support/behaviour.ts";
import { sentence } from "../../support/messages.ts";
import { withoutSignals } from "../../support/signals.ts";

/** Returns a config file with one tool, `it`. */
function withTool(tool: Record<string, unknown>, properties: Record<string, unknown> = {}) {
  return { "mcp.jsonc": { tools: { it: { description: "Does it", input: { properties }, ...tool } } } };
}

const text = { type: "string" };
const print = ["printf", "[%s]"];

Deno.test("an argument stays one word, even if a shell would split or expand it", async () => {
  const input = { properties: { a: text }, required: ["a"] };
  const files = withTool({ run: [...print, "{{a}}", "x{{a}}y"], unsafe: true, input });
  await withServer(files, async (client, folder) => {
    for (
      const a of [
        "two words",
        "; touch owned",
        "$(touch owned)",
        "`touch owned`",
        "| touch owned",
        "&& touch owned",
        "> owned",
        "$HOME ${HOME}",
        "'\"",
        "*",
        "~",
        "a\nb",
        "\\",
        "{{a}}",
        "${PATH}",
        "",
        "é 日本 🙂",
      ]
    ) {
      assertEquals(toOutcome(await client.callTool("it", { a })), { text: `[${a}][x${a}y]`, isError: false });
    }
    assertEquals((await system("ls", folder)).trim(), "mcp.jsonc");
  });
});

Deno.test("an argument cannot become an option unless -- ends the options", async () => {
  const input = { properties: { a: text, list: { type: "array", items: text } } };
  await withServer(
    withTool({ run: [...print, { if: "a", words: ["{{a}}"] }], input, unsafe: ["a"] }),
    async (client) => {
      for (const a of ["-x", "--output=/etc/passwd", "-"]) {
        const { text, isError } = toOutcome(await client.callTool("it", { a }));
        assert(isError);
        assertEquals(text, sentence("printf", "a ", '"-"'));
      }
      assertEquals(toOutcome(await client.callTool("it", { a: "a-b" })).text, "[a-b]");
    },
  );
  const list = withTool({ run: [...print, { if: "list", words: ["{{list}}"] }], input, unsafe: ["list"] });
  await withServer(list, async (client) => {
    assertEquals(toOutcome(await client.callTool("it", { list: ["a", "b c"] })).text, "[a][b c]");
    assert(toOutcome(await client.callTool("it", { list: ["a", "-b"] })).isError);
  });
  const safe = withTool({
    run: [...print, "--", "{{a}}", "{{a}}"],
    input: { ...input, required: ["a"] },
    unsafe: ["a"],
  });
  await withServer(safe, async (client) => {
    assertEquals(toOutcome(await client.callTool("it", { a: "-x" })).text, "[--][-x][-x]");
  });
});

Deno.test("optional words are omitted with their argument, defaults apply, and numbers and objects become text", async () => {
  const input = {
    properties: {
      count: { type: "integer", minimum: 0, default: 5 },
      all: { type: "boolean" },
      by: text,
      more: { type: "object" },
    },
  };
  const run = [
    ...print,
    "{{count}}",
    { if: "all", words: ["--all"] },
    { if: "by", words: ["by", "{{by}}"] },
    { if: "more", words: ["more", "{{more}}"] },
  ];
  await withServer(withTool({ run, input, unsafe: ["by", "more"] }), async (client) => {
    for (
      const [args, words] of [
        [{}, "[5]"],
        [{ count: 7, all: true }, "[7][--all]"],
        [{ all: false, by: "ada" }, "[5][by][ada]"],
        [{ by: "" }, "[5][by][]"],
        [{ more: { a: [1] } }, '[5][more][{"a":[1]}]'],
      ] as const
    ) assertEquals(toOutcome(await client.callTool("it", args)).text, words);
  });
});

Deno.test("unknown arguments and NUL characters are rejected", async () => {
  const input = { properties: { a: text }, required: ["a"] };
  await withServer(withTool({ run: [...print, "{{a}}"], input, unsafe: ["a"] }), async (client) => {
    assertEquals(toOutcome(await client.callTool("it", { a: "x", b: 1 })).text, sentence("it", "b:"));
    assertEquals(toOutcome(await client.callTool("it", {})).text, sentence("it", "a:"));
    assertEquals(toOutcome(await client.callTool("it", { a: "x\0y" })).text, sentence("NUL"));
  });
});

Deno.test("the environment of a program consists of PATH and the variables in env", async () => {
  await withServer(withTool({ run: ["env"] }), async (client) => {
    const names = toOutcome(await client.callTool("it")).text.split("\n").map((line) => line.split("=")[0]);
    assertEquals(names, ["PATH"]);
  });
  const env = ["HOME", "LANG=C", "BOTH=${HOME}:${MCP_NOT_SET:-else}", "MCP_NOT_SET", "PLAIN=\\${HOME}"];
  await withServer(withTool({ run: ["env"], env }), async (client) => {
    const lines = toOutcome(await client.callTool("it")).text.split("\n").filter((line) => !line.startsWith("PATH="));
    const home = lines.find((line) => line.startsWith("HOME="))?.slice(5);
    assert(home);
    assertEquals(lines.sort(), [`BOTH=${home}:else`, `HOME=${home}`, "LANG=C", "PLAIN=${HOME}"]);
  });
});

Deno.test("a program runs in the folder of the config file, or in cwd", async () => {
  await withServer(withTool({ run: ["pwd"] }), async (client, folder) => {
    assertEquals(toOutcome(await client.callTool("it")).text, folder);
  });
  const files = { ...withTool({ run: ["pwd"], cwd: "sub/deep" }), "sub/deep/a": "" };
  await withServer(files, async (client, folder) => {
    assertEquals(toOutcome(await client.callTool("it")).text, `${folder}/sub/deep`);
  });
});

Deno.test("a program in the folder can be run by its path", async () => {
  await withFolder(
    { ...withTool({ run: ["./hello", "x"] }), "hello": "#!/bin/sh\necho hello $1\n" },
    async (folder) => {
      await system("chmod", "+x", `${folder}/hello`);
      await using server = (await load(`${folder}/mcp.jsonc`)).server;
      await using client = await connectTest(server);
      assertEquals(toOutcome(await client.callTool("it")).text, "hello x");
    },
  );
});

Deno.test("stdin passes an argument on the program's standard input", async () => {
  const input = { properties: { a: text }, required: ["a"] };
  await withServer(withTool({ run: ["cat"], stdin: "<{{a}}>", input, unsafe: true }), async (client) => {
    const a = "long ".repeat(60_000);
    const { text, isError } = toOutcome(await client.callTool("it", { a: "-x; $(y)" }));
    assertEquals({ text, isError }, { text: "<-x; $(y)>", isError: false });
    assert(toOutcome(await client.callTool("it", { a })).isError, "output of more than 262144 bytes was accepted");
  });
  // A program that does not read its input must still be able to exit.
  await withServer(withTool({ run: ["true"], stdin: "{{a}}", input, unsafe: true }), async (client) => {
    assertEquals(toOutcome(await client.callTool("it", { a: "x".repeat(1_000_000) })).isError, false);
  });
});

Deno.test("an unlisted exit code is a failure that contains the whole output", async () => {
  const sh = (code: string) => ["sh", "-c", code];
  await withServer(withTool({ run: sh("echo out; echo err >&2; exit 3") }), async (client) => {
    assertEquals(toOutcome(await client.callTool("it")), {
      text: `out\nerr\n${sentence("sh", 3)}`,
      isError: true,
    });
  });
  const listed = withTool({ run: sh("echo out; echo err >&2; exit 1"), okExitCodes: [0, 1] });
  await withServer(listed, async (client) => {
    assertEquals(toOutcome(await client.callTool("it")), { text: "out", isError: false });
  });
  await withServer(withTool({ run: sh("echo only >&2") }), async (client) => {
    assertEquals(toOutcome(await client.callTool("it")), { text: "only", isError: false });
  });
});

Deno.test("a missing program and a file that is not executable are reported", async () => {
  await withServer(withTool({ run: ["no-such-program-here"] }), async (client) => {
    const { text, isError } = toOutcome(await client.callTool("it"));
    assert(isError);
    assertEquals(text, sentence("no-such-program-here: "));
  });
  await withServer({ ...withTool({ run: ["./data"] }), data: "x" }, async (client, folder) => {
    const { text, isError } = toOutcome(await client.callTool("it"));
    assert(isError);
    assertEquals(text, sentence(`${folder}/data: `));
  });
});

Deno.test("a command line that is too long for the system is reported", async () => {
  await withServer(
    withTool({
      run: [...print, "{{a}}"],
      input: { properties: { a: text }, required: ["a"] },
      unsafe: ["a"],
    }),
    async (client) => {
      const { text, isError } = toOutcome(await client.callTool("it", { a: "x".repeat(3_000_000) }));
      assert(isError);
      assertEquals(text, sentence("printf: "));
    },
  );
});

Deno.test("a program that runs too long or prints too much is killed, even if it ignores SIGTERM", async () => {
  const ignoring = ["sh", "-c", "trap '' TERM; echo begun; while :; do sleep 0.05; done"];
  await withServer(withTool({ run: ignoring, timeoutMs: 2000 }), async (client) => {
    assertEquals(toOutcome(await client.callTool("it")), {
      text: `begun\n${sentence("2000 ms", "timeoutMs")}`,
      isError: true,
    });
  });
  await withServer(withTool({ run: ["yes"], maxBytes: 1000 }), async (client) => {
    const { text, isError } = toOutcome(await client.callTool("it"));
    assert(isError);
    assertEquals(text, "y\n".repeat(500) + sentence(1000, "maxBytes"));
  });
  // A child process of the program keeps the output open.
  await withServer(withTool({ run: ["sh", "-c", "echo done; sleep 30 &"] }), async (client) => {
    assertEquals(toOutcome(await client.callTool("it")), { text: "done", isError: false });
  });
});

Deno.test("a call ends although its program cannot be killed", async () => {
  await withServer(withTool({ run: ["sh", "-c", "echo begun; exec sleep 30"], timeoutMs: 100 }), async (client) => {
    await withoutSignals(async () => {
      assertEquals(toOutcome(await client.callTool("it")), {
        text: `begun\n${sentence("100 ms", "timeoutMs")}`,
        isError: true,
      });
    });
  });
});

Deno.test("cancelling a call ends its program", async () => {
  await withServer(withTool({ run: ["sh", "-c", "echo $$ > pid; exec sleep 30"] }), async (client, folder) => {
    const stop = new AbortController();
    const call = client.callTool("it", {}, { signal: stop.signal });
    let pid = "";
    while (!pid) pid = await system("cat", `${folder}/pid`).catch(() => "");
    stop.abort();
    await assertRejects(() => call);
    const isGone = () => system("kill", "-0", pid).then(() => false, () => true);
    await until(isGone, "the program has ended");
  });
});

Deno.test("a JSON result becomes structured content, and is validated against `output`", async () => {
  const output = { type: "object", properties: { n: { type: "number" } }, required: ["n"] };
  const json = (printed: string) => withTool({ run: ["printf", "%s", printed], format: "json", output });
  await withServer(json('{"n":1}'), async (client) => {
    assertEquals((await client.callTool("it")).structuredContent, { n: 1 });
  });
  await withServer(json("oops"), async (client) => {
    assertEquals(toOutcome(await client.callTool("it")), {
      text: `oops\n${sentence("printf")}`,
      isError: true,
    });
  });
});

for (
  const [title, tool, ...names] of [
    ["an argument as the program", { run: ["{{a}}"] }, "tools.it.run[0]: "],
    ["an unknown argument", { run: ["x", "{{b}}"] }, "tools.it.run[1]: ", "{{b}}"],
    [
      "an optional argument in a required word",
      { run: ["x", "{{o}}"], input: { properties: { o: text } } },
      "tools.it.run[1]: ",
      "{{o}}",
      "required",
    ],
    ["an unknown condition", { run: ["x", { if: "b", words: ["y"] }] }, "tools.it.run[1].if: ", "b "],
    ["a malformed argument", { run: ["x", "{{a b}}"] }, "tools.it.run[1]: ", "{{ "],
    [
      "a variable that is not set",
      { run: ["x", "${MCP_NOT_SET}"] },
      "tools.it.run[1]: ",
      "MCP_NOT_SET",
      "${MCP_NOT_SET:-default}",
    ],
    ["a variable that is not set", { run: ["x"], env: ["A=${MCP_NOT_SET}"] }, "tools.it.env[0]: ", "MCP_NOT_SET"],
    ["a variable that is not set", { run: ["x"], stdin: "${MCP_NOT_SET}" }, "tools.it.stdin: ", "MCP_NOT_SET"],
    ["a cwd out of the folder", { run: ["x"], cwd: "../.." }, "tools.it.cwd: "],
    ["a program out of the folder", { run: ["../x"] }, "tools.it.run[0]: "],
    ["a missing cwd", { run: ["x"], cwd: "gone" }, "tools.it.cwd: ", "/gone"],
    ["output without JSON", { run: ["x"], output: { type: "object" } }, "tools.it.output: ", '"format": "json"'],
    ["an invalid schema", { run: ["x"], input: { type: "string" } }, "tools.it: ", '"object"'],
    [
      "a schema that refers to a file",
      { run: ["x"], input: { properties: { a: { $ref: "file:///etc/passwd" } } } },
      "tools.it: ",
      "file:///etc/passwd",
    ],
  ] as const
) {
  Deno.test(`a config file with ${title} (${JSON.stringify(tool).slice(0, 60)}) is rejected with its position`, async () => {
    const input = { properties: { a: text }, required: ["a"] };
    await withFolder(withTool({ input, ...tool }), async (folder) => {
      const error = await assertRejects(() => load(`${folder}/mcp.jsonc`), Error);
      assertMatch(error.message, /\/mcp\.jsonc:1:\d+: /);
      assertStringIncludes(error.message, sentence(...names));
    });
  });
}
