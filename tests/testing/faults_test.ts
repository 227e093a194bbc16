// The test kit shows why a handler failed, although the server sends no more than in production.
import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { createServer, McpError, mount, prompt, resource, service, tool, ToolError } from "../../mod.ts";
import { guard } from "../../src/layers/layers.ts";
import { connect as connectClient } from "../../src/client/client.ts";
import { taskClient } from "../../src/extensions/tasks/client/tasks.ts";
import { explainFault } from "../../src/ready/files/fault_text.ts";
import { task, tasks } from "../../src/extensions/tasks/tasks.ts";
import { connectTest, fakeClock } from "../../src/testing/testing.ts";
import { behaviour, textOf } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";

const secret = "the key is sk-abc";
function breaks(): never {
  throw new RangeError(secret); // The tests search the stack for this line.
}

const db = service("db", () => ({ query: breaks }));
const handlers = [
  tool({ name: "broken", run: () => breaks() }),
  tool({ name: "later", run: async () => await Promise.resolve().then(breaks) }),
  tool({ name: "service", services: { db }, run: (_input, ctx) => ctx.services.db.query() }),
  tool({ name: "guarded", use: [guard({ output: [breaks] })], run: () => "" }),
  tool({ name: "reads", run: async (_input, ctx) => (await ctx.readResource("note://1"))[0].text }),
  tool({ name: "result", run: () => new WeakMap() as never }),
  tool({ name: "told", run: () => Promise.reject(new ToolError("No flight")) }),
  tool({ name: "words", mapError: () => "The database is down", run: () => breaks() }),
  prompt({ name: "prompt", run: () => breaks() }),
  resource({ uri: "note://1", name: "note", read: () => breaks() }),
];

/** Whether stack frames have line numbers of compiled code. On Node, the tests are compiled before they run. */
const isCompiled = typeof Deno === "undefined" && !("Bun" in globalThis);

behaviour(
  "the text of a failed tool contains the error, and the author's stack frames with their lines",
  async (join) => {
    const { client, takeFaults } = await join({ handlers });
    for (const name of ["broken", "later", "service", "guarded"]) {
      const { isError, content } = await client.callTool(name);
      const [fault] = takeFaults().slice(-1);
      const [first, second, frame, source] = textOf({ content }).split("\n");
      assertEquals([isError, first, second], [true, `${sentence()} (${fault.id})`, `RangeError: ${secret}`], name);
      // One runtime omits the frame of a function that only throws.
      assert(frame.includes("/tests/testing/faults_test.ts:"), frame);
      if (!isCompiled) assertStringIncludes(source, "throw new RangeError(secret);");
      assert(!textOf({ content }).includes("/src/"), textOf({ content }));
      // The response that is transmitted is the same as in production.
      assert(!client.transcript.join("").includes(secret), name);
    }
    assertEquals(textOf(await client.callTool("told")), "No flight");
    assertEquals(textOf(await client.callTool("words")), "The database is down");
    takeFaults();
  },
);

behaviour("a rejection has the thrown error as its cause", async (join) => {
  const { client, takeFaults } = await join({ handlers });
  const requests = {
    // This tool rethrows the resource's error.
    reads: () => client.callTool("reads"),
    result: () => client.callTool("result"),
    prompt: () => client.getPrompt("prompt"),
    note: () => client.readResource("note://1"),
  };
  for (const [name, request] of Object.entries(requests)) {
    const error = await assertRejects(request, McpError, sentence(), name);
    const [fault] = takeFaults();
    assert(error.cause === fault.error && error.cause instanceof Error, name);
    assertEquals([error.data, Object.keys(error).includes("cause")], [{ errorId: fault.id }, false]);
    assert(!client.transcript.join("").includes(secret), name);
  }
});

behaviour(
  "`client.faults` and `client.warnings` list everything that was reported while the client was connected",
  async (join) => {
    const forgets = tool({
      name: "forgets",
      run(_input, ctx) {
        void ctx.roots();
        return "";
      },
    });
    const { warn } = console;
    console.warn = () => {};
    try {
      const { client, takeFaults, join: another } = await join(
        { handlers: [...handlers, forgets], clock: fakeClock() },
        {
          roots: () => [],
        },
      );
      await client.callTool("broken");
      const second = await another({ roots: () => [] });
      await second.callTool("words");
      await second.callTool("forgets");
      assertEquals(client.faults.map(({ subject }) => subject), ["broken", "words"]);
      assertEquals(second.faults.map(({ method, subject }) => [method, subject]), [["tools/call", "words"]]);
      assertEquals([client.warnings.length, client.warnings], [1, second.warnings]);
      assertEquals(client.warnings[0], sentence("ctx.roots()", 'tools/call "forgets"'));
      await second.close();
      await client.callTool("broken");
      assertEquals([client.faults.length, second.faults.length], [3, 1]);
      takeFaults();
    } finally {
      console.warn = warn;
    }
  },
  { perInstance: "observer" },
);

Deno.test("a failed handshake has the original error as its cause", async () => {
  const observer = { fault() {} };
  const server = createServer({ name: "s", version: "1.0.0", sessionData: () => breaks(), observer });
  const error = await assertRejects(() => connectTest(server, { era: "legacy" }), McpError, sentence());
  assert(error.cause instanceof RangeError);
  await server.close();
});

Deno.test("the results of a task, of a mounted server and of a concrete path are explained too", async () => {
  const observer = { fault() {} };
  const base = { version: "1.0.0", observer };
  const slow = tool({ name: "broken", use: [task()], run: async () => await Promise.reject(new Error(secret)) });
  const working = createServer({ name: "tasks", ...base, handlers: [tasks(), slow] });
  const paths = createServer({ name: "paths", ...base, path: "/tenants/:tenant/mcp", handlers });
  const mounted = mount([createServer({ name: "mounted", ...base, handlers })]);
  const all = [
    [working, { extensions: [taskClient()] }],
    [paths, { pathParams: { tenant: "acme" } }],
    [mounted, {}],
  ] as const;
  for (const [server, options] of all) {
    await using client = await connectTest(server, options);
    assertStringIncludes(textOf(await client.callTool("broken")), secret);
    await server.close();
  }
});

Deno.test("the library's client gets no details, and with development: false, no client does", async () => {
  const options = { name: "s", version: "1.0.0", handlers, observer: { fault() {} } };
  const plain = createServer(options);
  const developed = createServer({ ...options, development: true });
  const off = createServer({ ...options, development: false });
  await using tested = await connectTest(off);
  for (const client of [await connectClient(plain), await connectClient(developed), tested]) {
    const text = textOf(await client.callTool("broken"));
    const [id] = /[0-9a-f]{8}/.exec(text) ?? [];
    assertEquals(text, `${sentence()} (${id})`);
    const error = await assertRejects(() => client.readResource("note://1"), McpError, sentence());
    assertEquals(error.cause, undefined);
    await client.close();
  }
  assertEquals([tested.faults, tested.warnings], [[], []]);
  await Promise.all([plain.close(), developed.close(), off.close()]);
});

Deno.test("any thrown value is explained, in a text of limited length that cannot control a terminal", () => {
  const deep = new Error("1", { cause: new TypeError("2", { cause: "three" }) });
  assertEquals(explainFault(deep).split("\n").filter((line) => !/^ /.test(line)), [
    "Error: 1",
    sentence("TypeError: 2"),
    sentence("three"),
  ]);
  assertEquals(explainFault(undefined), sentence("undefined"));
  assertEquals(explainFault(new Error("\u001b[31mred")).split("\n")[0], "Error: \\u{1b}[31mred");
  const endless = new Error("again");
  endless.cause = endless; // The cause is the value itself.
  assertEquals(explainFault(endless).match(/Error: again/g)?.length, 5);
  assert(explainFault(new Error("x".repeat(100_000))).length < 20_000);
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  assertEquals(explainFault(proxy), sentence());
  const foreign = new Error("foreign");
  foreign.stack = "Error: foreign\n    at parse (/x/node_modules/zod/parse.js:1:1)\n    at node:fs:1:1";
  assertEquals(
    explainFault(foreign),
    "Error: foreign\n    at parse (/x/node_modules/zod/parse.js:1:1)\n    at node:fs:1:1",
  );
  foreign.stack += "\n    at own (/there/is/no/file.ts:3:4)";
  assertEquals(explainFault(foreign), "Error: foreign\n    at own (/there/is/no/file.ts:3:4)");
});
