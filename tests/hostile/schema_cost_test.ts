// Schemas whose validation takes too many steps for a value: on every transport, the value is refused with a remedy.
import { behaviour, textOf } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";
import { resource, tool } from "../../mod.ts";
import { assert, assertEquals, assertRejects } from "../support/std.ts";
import { quota } from "../../src/layers/layers.ts";

/** A schema with 2^28 paths to its last subschema, which matches no string. */
const ladder = Object.fromEntries(
  Array.from({ length: 29 }, (_, i) => {
    const next = { $ref: `#/$defs/s${i + 1}` };
    return [`s${i}`, i === 28 ? { type: "string" } : { allOf: [next, next] }];
  }),
);
const costly = { type: "object", properties: { x: { $ref: "#/$defs/s0" } }, required: ["x"], $defs: ladder } as const;

behaviour(
  "arguments are refused if their validation takes too many steps, and the handler does not run",
  async (connect) => {
    let runs = 0;
    const run = () => void runs++;
    const withDefault = { ...costly, properties: { ...costly.properties, y: { type: "number", default: 1 } } };
    const { client } = await connect({
      handlers: [
        tool({ name: "strict", input: costly, lenientArguments: false, run }),
        tool({ name: "lenient", input: costly, run }),
        tool({ name: "defaults", input: withDefault, lenientArguments: false, run }),
        tool({ name: "fine", input: costly, run: () => "fine" }),
      ],
    });
    for (const name of ["strict", "lenient", "defaults"]) {
      const result = await client.callTool(name, { x: "text" });
      assertEquals([result.isError, textOf(result)], [true, sentence(name)]);
    }
    assertEquals(runs, 0);
    assertEquals(textOf(await client.callTool("fine", {})), sentence("fine", "x"));
  },
);

behaviour(
  "a call fails if validating its result takes too many steps, and the observer receives the cause",
  async (connect) => {
    const { client, takeFaults } = await connect({
      handlers: [tool({ name: "costly", output: costly, run: () => ({ x: "text" }) })],
    });
    const result = await client.callTool("costly").catch((error) => error);
    assert(result instanceof Error || result.isError === true, JSON.stringify(result));
    const [fault, ...more] = takeFaults();
    assertEquals(String(fault?.error), sentence("costly"));
    assertEquals(more, []);
  },
);

behaviour(
  "a client rejects a result whose validation by the server's own schema takes too many steps",
  async (connect) => {
    const { client } = await connect({
      handlers: [tool({ name: "costly", run: () => ({ structuredContent: { x: "text" }, content: [] }) })],
      use: [async (call, next) => {
        const result = await next();
        if (call.method !== "tools/list") return result;
        return { ...result, tools: [{ name: "costly", inputSchema: { type: "object" }, outputSchema: costly }] };
      }],
    });
    await client.listTools();
    await assertRejects(() => client.callTool("costly"), Error, sentence("costly"));
  },
);

// Rate limits of a resource that a tool reads on behalf of its client.

behaviour("the rate limit of a resource also applies when a handler reads the resource", async (join) => {
  const uri = "slow://report";
  const report = resource({
    uri,
    name: "report",
    use: [quota({ rate: { calls: 2, perMs: 600_000 } })],
    read: () => "42",
  });
  const show = tool({ name: "show", run: async (_input, ctx) => Object((await ctx.readResource(uri))[0]).text });
  const { client } = await join({ handlers: [report, show] });
  const codes = [];
  for (let i = 0; i < 3; i++) codes.push(await client.callTool("show").then(() => 0, (error) => error.code));
  codes.push(await client.readResource(uri).then(() => 0, (error) => error.code));
  assertEquals(codes, [0, 0, -31429, -31429]);
}, { perInstance: "limits" });
