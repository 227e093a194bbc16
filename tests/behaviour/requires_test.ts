// The server checks the capabilities that a handler requires before the handler runs and before the response status is
// sent.
import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { z } from "zod";
import { type ClientCapabilities, prompt, type Requirement, resource, tool } from "../../mod.ts";
import { McpError } from "../../src/testing/testing.ts";
import { behaviour, LEGACY_VERSIONS, textOf } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";
import { readReply } from "../support/requests.ts";

const NEEDS: readonly (readonly [requires: readonly Requirement[], wanted: ClientCapabilities])[] = [
  [["elicitation"], { elicitation: { form: {} } }],
  [["elicitation.url"], { elicitation: { url: {} } }],
  [["elicitation", "elicitation.url"], { elicitation: { form: {}, url: {} } }],
  [["sampling"], { sampling: {} }],
  [["sampling", "sampling.tools"], { sampling: { tools: {} } }],
  [["sampling.tools", "sampling.context", "sampling"], { sampling: { tools: {}, context: {} } }],
  [["roots"], { roots: {} }],
  [["roots", "sampling", "elicitation"], { roots: {}, sampling: {}, elicitation: { form: {} } }],
];

behaviour(
  "a handler does not run for a client that lacks a required capability",
  async (connect, { era, transport }) => {
    const ran: string[] = [];
    const handlers = NEEDS.flatMap(([requires], i) => [
      tool({ name: `t${i}`, requires, run: () => void ran.push(`t${i}`) }),
      prompt({
        name: `p${i}`,
        requires,
        run() {
          ran.push(`p${i}`);
          return "p";
        },
      }),
      resource({
        uri: `x://r${i}`,
        name: "r",
        requires,
        read() {
          ran.push(`r${i}`);
          return "r";
        },
      }),
      resource({
        uri: `y${i}://{id}`,
        name: "r",
        requires,
        read() {
          ran.push(`y${i}`);
          return "r";
        },
      }),
    ]);
    const seen: string[] = [];
    const use = [async (call: { method: string }, next: () => Promise<Record<string, unknown>>) => {
      seen.push(call.method);
      return await next();
    }];
    const { client, join } = await connect({ handlers, use }, { capabilities: {} });
    seen.length = 0;
    for (const [i, [, requiredCapabilities]] of NEEDS.entries()) {
      const attempts = [
        () => client.callTool(`t${i}`),
        () => client.getPrompt(`p${i}`),
        () => client.readResource(`x://r${i}`),
        () => client.readResource(`y${i}://1`),
      ];
      for (const attempt of attempts) {
        const error = await assertRejects(attempt, McpError, sentence(JSON.stringify(requiredCapabilities)));
        assertEquals(error.code, era === "modern" ? -32021 : -32600);
        assertEquals(error.data, { requiredCapabilities });
        assertEquals(error.status, transport === "pipe" ? undefined : era === "modern" ? 400 : 200);
      }
    }
    assertEquals([ran, seen], [[], []], "a handler or middleware ran");
    assertEquals(
      (await client.listTools()).length,
      NEEDS.length,
      "the list lacks a handler that the client cannot call",
    );
    for (const [i, [, capabilities]] of NEEDS.entries()) {
      const able = await join({ capabilities });
      await able.callTool(`t${i}`);
      await able.getPrompt(`p${i}`);
      await able.readResource(`x://r${i}`);
      await able.readResource(`y${i}://1`);
    }
    assertEquals(ran.length, 4 * NEEDS.length);
  },
  { versions: LEGACY_VERSIONS },
);

behaviour("the error names the missing capabilities, and omits the declared capabilities", async (connect) => {
  const all: Requirement[] = [
    "elicitation",
    "elicitation.url",
    "sampling",
    "sampling.tools",
    "sampling.context",
    "roots",
  ];
  const { join } = await connect({ handlers: [tool({ name: "all", requires: all, run: () => "ok" })] });
  const cases: [ClientCapabilities, ClientCapabilities | undefined][] = [
    [{ elicitation: {}, sampling: {}, roots: {} }, {
      elicitation: { url: {} },
      sampling: { tools: {}, context: {} },
    }],
    [{ elicitation: { url: {} }, sampling: { tools: {} }, roots: {} }, {
      elicitation: { form: {} },
      sampling: { context: {} },
    }],
    [{ elicitation: { form: {}, url: {} }, sampling: { tools: {}, context: {} } }, { roots: {} }],
    // A capability that is not an object counts as not declared.
    [JSON.parse('{"elicitation":{"form":true,"url":1},"sampling":[],"roots":null}'), {
      elicitation: { form: {}, url: {} },
      sampling: { tools: {}, context: {} },
      roots: {},
    }],
    [{ elicitation: { form: {}, url: {} }, sampling: { tools: {}, context: {} }, roots: {} }, undefined],
  ];
  for (const [capabilities, requiredCapabilities] of cases) {
    const client = await join({ capabilities });
    if (!requiredCapabilities) assertEquals(textOf(await client.callTool("all")), "ok");
    else assertEquals((await assertRejects(() => client.callTool("all"), McpError)).data, { requiredCapabilities });
  }
});

behaviour(
  "`allow` runs before the check of required capabilities, which runs before the validation of arguments",
  async (connect, { era }) => {
    const missing = era === "modern" ? -32021 : -32600;
    const handlers = [
      tool({ name: "hidden", requires: ["sampling"], allow: () => false, run: () => "x" }),
      tool({ name: "late", requires: ["sampling"], allow: () => Promise.resolve(true), run: () => "x" }),
      tool({ name: "strict", requires: ["sampling"], input: z.object({ a: z.string() }), run: () => "x" }),
    ];
    const { client } = await connect({ handlers }, { capabilities: {} });
    const codes = await Promise.all(["hidden", "unknown", "late", "strict"].map(async (name) => {
      return (await assertRejects(() => client.callTool(name, { a: 1 }), McpError)).code;
    }));
    assertEquals(codes, [-32602, -32602, missing, missing]);
  },
);

behaviour("a header that differs from its parameter is reported before a missing capability", async (connect, way) => {
  const region = { type: "string", "x-mcp-header": "Region" } as const;
  const input = { type: "object", properties: { region } } as const;
  const { client } = await connect({
    handlers: [tool({ name: "t", requires: ["roots"], input, run: () => "x" })],
  }, { capabilities: {} });
  const params = { name: "t", arguments: { region: "eu" } };
  const send = (value: string) => client.request("tools/call", params, { headers: { "Mcp-Param-Region": value } });
  assertEquals((await assertRejects(() => send("us"), McpError)).code, -32020);
  assertEquals((await assertRejects(() => send("eu"), McpError)).code, -32021);
  assert(way);
}, { eras: ["modern"], transports: ["http"] });

behaviour(
  "a client without a session counts as having none of the capabilities that a handler can require",
  async (connect) => {
    const { server } = await connect({ handlers: [tool({ name: "t", requires: ["roots"], run: () => "x" })] });
    const response = await server.fetch(
      new Request("http://localhost/mcp", {
        method: "POST",
        headers: {
          "content-type": "application/json",
          accept: "application/json, text/event-stream",
          host: "localhost",
        },
        body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "t" } }),
      }),
    );
    assertEquals((await readReply(response)).error.code, -32600);
  },
  { eras: ["legacy"], transports: ["memory"] },
);

Deno.test("creating a handler with an unknown requirement throws", () => {
  for (const need of ["tasks", "elicitation.form", "sampling.", "__proto__", "toString", "", 1, null]) {
    const requires = [need] as Requirement[];
    assertThrows(() => tool({ name: "t", requires, run: () => "x" }), TypeError, sentence('tool "t"', "requires"));
    assertThrows(() => prompt({ name: "p", requires, run: () => "x" }), TypeError, sentence('prompt "p"', "requires"));
    assertThrows(
      () => resource({ uri: "x://r", name: "r", requires, read: () => "x" }),
      TypeError,
      sentence('resource "x://r"', "requires"),
    );
  }
  // @ts-expect-error: the list may contain only known words
  assertThrows(() => tool({ name: "t", requires: ["root"], run: () => "x" }), TypeError);
  tool({ name: "t", requires: [], run: () => "x" });
});
