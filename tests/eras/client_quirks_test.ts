// Deviations of real clients. Each test reproduces what the client does with a result or a question.
import { assert, assertEquals, assertMatch } from "@std/assert";
import { resource, tool, ToolError } from "../../mod.ts";
import { QUIRKS } from "../../src/server/eras/client_quirks.ts";
import { behaviour, LEGACY_VERSIONS, raise } from "../support/behaviour.ts";

/** The clients with a test below. */
const TESTED = ["gemini-cli-mcp-client", "copilot-cli"];

Deno.test("each quirk has its reason, the version in which it was seen, and a test", () => {
  assertEquals([...QUIRKS.keys()], TESTED);
  for (const { reason, seen, toolResult, elicitation } of QUIRKS.values()) {
    assert(reason.length > 50);
    assertMatch(seen, /^[\w ]+ \d+(\.\d+)+, 20\d\d-\d\d-\d\d$/);
    assert(toolResult ?? elicitation);
  }
});

/** Returns the structured content that Gemini CLI sees: if there is none, the value of the first text, if it is JSON. */
function seenByGemini(
  { content: [first], structuredContent }: { content: readonly unknown[]; structuredContent?: unknown },
) {
  const { text }: { readonly text?: unknown } = Object(first);
  if (structuredContent || typeof text !== "string") return structuredContent;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const RETURNS: Readonly<Record<string, readonly [value: unknown, seen: unknown]>> = {
  number: [5, { result: 5 }],
  negative: [-0.5, { result: -0.5 }],
  zero: ["0", { result: 0 }],
  spaced: [" 7\n", { result: 7 }],
  boolean: [true, { result: true }],
  null: [null, { result: null }],
  list: [[1, "a"], { result: [1, "a"] }],
  quoted: ['"a"', { result: "a" }],
  object: [{ a: 1 }, { a: 1 }],
  json: ['{"a":1}', { a: 1 }],
  text: ["5 apples", undefined],
  word: ["none", undefined],
  nothing: [undefined, undefined],
  full: [{ content: [{ type: "text", text: "9" }], structuredContent: { b: 2 } }, { b: 2 }],
  image: [{ type: "image", data: "aGk=", mimeType: "image/png" }, undefined],
};

behaviour(
  "gemini-cli-mcp-client: the structured content is an object if the text is JSON of another value",
  async (connect) => {
    const handlers = Object.entries(RETURNS).map(([name, [value]]) => tool({ name, run: () => value as never }));
    const failing = tool({ name: "failing", run: () => raise(new ToolError("404")) });
    const { client, join } = await connect({ handlers: [...handlers, failing] });
    const gemini = await join({ info: { name: "gemini-cli-mcp-client", version: "0.61.0" } });
    for (const [name, [, seen]] of Object.entries(RETURNS)) {
      const result = await gemini.callTool(name);
      assertEquals(seenByGemini(result), seen, name);
      // The content is the same for every client.
      assertEquals(result.content, (await client.callTool(name)).content, name);
    }
    assertEquals(seenByGemini(await gemini.callTool("failing")), { result: 404 });
    assertEquals((await client.callTool("number")).structuredContent, undefined);
  },
  { eras: ["legacy"], versions: LEGACY_VERSIONS.slice(0, 2) },
);

behaviour(
  "gemini-cli-mcp-client: a revision in which structured content is any value needs no change",
  async (connect) => {
    const info = { name: "gemini-cli-mcp-client", version: "1.0.0" };
    const { client } = await connect({ handlers: [tool({ name: "five", run: () => 5 })] }, { info });
    assertEquals((await client.callTool("five")).structuredContent, undefined);
  },
  { eras: ["modern"] },
);

behaviour("copilot-cli: an elicitation with a URL has an id, and a form has none", async (connect, { era }) => {
  const link = tool({
    name: "link",
    async run(_, ctx) {
      const first = await ctx.elicitUrl("first", { message: "Open", url: "https://a.test/" });
      const second = await ctx.elicit("second", { message: "Fill in", schema: { type: "object", properties: {} } });
      return `${first.action} ${second.action}`;
    },
  });
  const ids = async (name: string) => {
    const asked: unknown[] = [];
    const { client } = await connect({ handlers: [link] }, {
      info: { name, version: "1.0.102" },
      answer({ params }) {
        asked.push(typeof params.elicitationId);
        return { action: "accept" };
      },
    });
    assertEquals((await client.callTool("link")).content, [{ type: "text", text: "accept accept" }]);
    return asked;
  };
  assertEquals(await ids("copilot-cli"), ["string", "undefined"]);
  // Older revisions define the id for every client.
  assertEquals(await ids("copilot"), [era === "modern" ? "undefined" : "string", "undefined"]);
});

behaviour("a client with a quirk has the rights of any other client", async (connect) => {
  const handlers = [
    tool({ name: "hidden", allow: () => false, run: () => 5 }),
    tool({ name: "scoped", scopes: ["a"], run: () => 5 }),
    resource({ uri: "a://a", name: "a", allow: () => false, read: () => "5" }),
  ];
  const principal = { id: "u", scopes: [] };
  const { join } = await connect({ handlers }, { principal });
  const outcomes: unknown[] = [];
  for (const name of ["other", ...TESTED]) {
    const client = await join({ principal, info: { name, version: "1" } });
    const calls = [client.callTool("hidden"), client.callTool("scoped"), client.readResource("a://a")];
    const codes = (await Promise.allSettled(calls)).map((call) => call.status === "rejected" && call.reason.code);
    outcomes.push([codes, await client.listTools(), client.server.capabilities]);
  }
  const [other] = outcomes;
  assertEquals(outcomes, outcomes.map(() => other));
});
