// Attacks with the names, arguments, schemas and results of tools.
import { assert, assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { createServer, prompt, resource, tool } from "../../mod.ts";
import { behaviour, textOf } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";
import { cases, toMessage } from "./http.ts";

const any = { type: "object" } as const;
const person = {
  type: "object",
  properties: { name: { type: "string" }, age: { type: "integer", minimum: 0 } },
  required: ["name"],
  additionalProperties: false,
} as const;

const names: readonly (readonly [what: string, name: unknown])[] = [
  ["a number", 5],
  ["null", null],
  ["missing", undefined],
  ["empty", ""],
  ["an object", { toString: "good" }],
  ["a list", ["good"]],
  ["that every object inherits", "constructor"],
  ["that every prototype has", "__proto__"],
  ["with a NUL", "good\0"],
  ["in other case", "Good"],
  ["with a space", "good "],
  ["1 MB", "x".repeat(1_000_000)],
];
for (const [era, version] of [["modern", undefined], ["legacy", "2025-11-25"]] as const) {
  cases(`a tool that does not exist is refused (${era})`, { version }, () =>
    names.map(([what, name]) => {
      // Encode the name, because a header cannot contain some of these names.
      const text = typeof name === "string" ? name : "";
      const header = `=?base64?${new TextEncoder().encode(text).toBase64()}?=`;
      const isLong = text.length > 1000;
      return {
        name: `the name is ${what}`,
        body: JSON.stringify(toMessage(era, {}, { name })),
        headers: era === "modern" ? { "mcp-name": isLong ? "x" : text ? header : null } : {},
        status: era === "modern" ? 400 : 200,
        // A name without a matching header is refused before the tool is looked up.
        code: era === "modern" && (isLong || name === "") ? -32020 : -32602,
        id: 1,
      };
    }));
}

behaviour(
  "an error result lists the errors in the arguments field by field, with a limited length",
  async (connect) => {
    let runs = 0;
    const greet = tool({ name: "greet", input: person, run: ({ name }) => (runs++, `Hello, ${name}`) });
    const { client } = await connect({ handlers: [greet] });
    const wrong: readonly (readonly [args: Record<string, unknown>, ...names: readonly string[]])[] = [
      [{}, "name"],
      [{ name: 5 }, "name", "string"],
      [{ name: "Ada", age: "old" }, "age", "integer"],
      [{ name: "Ada", age: -1 }, "age", "0"],
      [{ name: "Ada", extra: 1 }, "extra"],
      [JSON.parse('{"name":"Ada","__proto__":{}}'), "__proto__"],
      [Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`k${i}`, i])), "k0"],
    ];
    for (const [args, ...names] of wrong) {
      const result = await client.callTool("greet", args);
      assertEquals(result.isError, true, names[0]);
      assertEquals(textOf(result), sentence(...names));
      assert(textOf(result).length <= 2048, `${textOf(result).length} characters about ${names[0]}`);
    }
    assertEquals(runs, 0);
    assertEquals(textOf(await client.callTool("greet", { name: "Ada" })), "Hello, Ada");
  },
);

behaviour("arguments with the names of inherited object properties are ordinary values", async (connect) => {
  const seen: string[] = [];
  const keys = tool({
    name: "keys",
    input: any,
    run(input) {
      seen.push(JSON.stringify(Object.getOwnPropertyNames(input).sort()));
      return JSON.stringify(input);
    },
  });
  const greet = tool({ name: "greet", input: person, run: ({ name }) => `Hello, ${name}` });
  const { client } = await connect({ handlers: [keys, greet] });
  const args = JSON.parse('{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}},"prototype":1}');
  assertEquals(textOf(await client.callTool("keys", args)), JSON.stringify(args));
  assertEquals(seen, ['["__proto__","constructor","prototype"]']);
  assertEquals(Object.keys(Object.prototype), []);
  assertEquals(Object("").polluted, undefined);
  // An inherited property counts neither as an argument nor as a required argument.
  const inherited = await client.callTool("greet", JSON.parse('{"__proto__":{"name":"Ada"}}'));
  assertEquals(inherited.isError, true);
  assertEquals(textOf(inherited), sentence("name"));
});

Deno.test("schemas with external references, cycles or too much depth are refused when the tool is created", () => {
  let deep: Record<string, unknown> = { type: "object" };
  for (let i = 0; i < 10_000; i++) deep = { type: "object", allOf: [deep] };
  const circle: Record<string, unknown> = { type: "object" };
  circle.allOf = [circle];
  const schemas: readonly (readonly [schema: Record<string, unknown>, expected: string])[] = [
    [
      { type: "object", properties: { a: { $ref: "http://169.254.169.254/latest" } } },
      sentence("http://169.254.169.254/latest"),
    ],
    [{ type: "object", properties: { a: { $ref: "file:///etc/passwd" } } }, sentence("file:///etc/passwd")],
    [{ type: "object", $ref: "#" }, sentence("#")],
    [
      { type: "object", $defs: { a: { $ref: "#/$defs/b" }, b: { $ref: "#/$defs/a" } }, $ref: "#/$defs/a" },
      sentence("#/$defs/a"),
    ],
    [{ type: "object", properties: { a: { $ref: "#/$defs/none" } } }, sentence("#/$defs/none")],
    [deep, sentence()],
    [circle, sentence()],
  ];
  for (const [input, expected] of schemas) {
    assertThrows(() => tool({ name: "bad", input, run: () => "" }), TypeError, expected);
  }
});

behaviour("validating a matching text of 100 KB with a simple pattern takes linear time", async (connect) => {
  const input = { type: "object", properties: { text: { type: "string", pattern: "^a+$" } } } as const;
  const { client } = await connect({ handlers: [tool({ name: "match", input, run: () => "fits" })] });
  assertEquals(textOf(await client.callTool("match", { text: "a".repeat(100_000) })), "fits");
  assertEquals((await client.callTool("match", { text: "a".repeat(100_000) + "b" })).isError, true);
}, { transports: ["memory"] });

behaviour("a result that does not match the output schema is not sent, and is reported once", async (connect) => {
  const results: readonly (readonly [name: string, result: unknown])[] = [
    ["wrong", { name: 5 }],
    ["missing", undefined],
    ["none", "text"],
    ["content", { content: [{ type: "text", text: "secret-42" }] }],
    ["more", { name: "Ada", secret: "secret-42" }],
    ["structured", { content: [], structuredContent: { name: ["secret-42"] } }],
  ];
  const handlers = results.map(([name, result]) => tool({ name, output: person, run: () => result }));
  const { client, takeFaults } = await connect({ handlers });
  for (const [name] of results) {
    const outcome = await client.callTool(name).then((result) => JSON.stringify(result), (error) => error);
    assertEquals(outcome.code, -32603, name);
    assertEquals(String(outcome.message).includes("secret-42"), false, name);
    const faults = takeFaults();
    assertEquals(faults.map(({ subject }) => subject), [name]);
    assertStringIncludes(String(faults[0].error), `tool ${JSON.stringify(name)}`);
  }
});

behaviour("a result that is too large is not sent, and the error names the limit", async (connect) => {
  const text = tool({ name: "text", run: () => "x".repeat(2_000_000) });
  const items = tool({
    name: "items",
    run: () => Array.from({ length: 50_000 }, () => ({ type: "text", text: "y" })),
  });
  const fits = tool({ name: "fits", run: () => "x".repeat(900_000) });
  const { client, takeFaults } = await connect({
    handlers: [text, items, fits],
    limits: { calls: { resultBytes: 1_000_000 } },
  });
  for (const name of ["text", "items"]) {
    const error = await client.callTool(name).then(() => undefined, (error) => error);
    assertEquals(error?.code, -32603, name);
    const [fault, ...more] = takeFaults();
    assertEquals(more, []);
    assertStringIncludes(String(fault.error), "calls.resultBytes");
  }
  assertEquals(textOf(await client.callTool("fits")).length, 900_000);
});

Deno.test("tool(), resource() and prompt() throw for invalid options with an error that names the handler", () => {
  const good = tool({ name: "same", run: () => "" });
  const info = { name: "author", version: "1.0.0" };
  // Casts a value of the wrong type, because plain JavaScript allows calls that the type checker rejects.
  const wrong = (value: unknown): never => value as never;
  const mistakes: readonly (readonly [make: () => unknown, expected: string])[] = [
    [() => createServer({ ...info, handlers: [good, tool({ name: "same", run: () => "" })] }), sentence("same")],
    [
      () =>
        createServer({
          ...info,
          handlers: [prompt({ name: "p", run: () => "" }), prompt({ name: "p", run: () => "" })],
        }),
      sentence("p"),
    ],
    [() => createServer({ ...info, handlers: [wrong({ name: "x", run() {} })] }), sentence("tool()")],
    [
      () => createServer({ ...info, handlers: [good] }).handlers.add(tool({ name: "same", run: () => "" })),
      sentence("same"),
    ],
    [() => tool({ name: "spaced name", run: () => "" }), sentence("spaced name")],
    [() => tool({ name: "runs", run: wrong(undefined) }), sentence("runs")],
    [() => tool({ name: "listed", input: wrong([]), run: () => "" }), sentence("listed")],
    [() => tool({ name: "texts", input: wrong({ type: "string" }), run: () => "" }), sentence("texts")],
    [() => resource({ uri: "a://{x}{y}", name: "torn", read: () => "" }), sentence("a://{x}{y}")],
    [() => resource({ uri: "a://{", name: "open", read: () => "" }), sentence("a://{")],
    [() => createServer({ name: "", version: "1.0.0" }), sentence("name")],
    [() => createServer({ ...info, limits: wrong({ sesions: { open: 1 } }) }), sentence("limits.sesions")],
    [
      () => createServer({ ...info, limits: { connections: { sessions: -1 } } }),
      sentence("limits.connections.sessions", -1),
    ],
  ];
  for (const [make, expected] of mistakes) assertThrows(make, TypeError, expected);
});
