// The compiler's errors for the most frequent mistakes. One line names the missing or incorrect part.
import { type Mistake, testTypeErrors } from "../support/type_errors.ts";

const library = new URL("../../mod.ts", import.meta.url).href;
const layers = new URL("../../src/layers/layers.ts", import.meta.url).href;

/** Programs with a mistake, each with a line of the compiler's error. */
const mistakes: readonly Mistake[] = [
  {
    name: "a resource without a name",
    code: `resource({ uri: "config://app", read: () => "x" });`,
    line: `Property 'name' is missing in type '{ uri: "config://app"; read: () => string; }' but required in type ` +
      `'ResourceFixedOptions<NoServices>'.`,
    most: 2,
  },
  {
    name: "an entry of a list without a name",
    code: `resourceProvider({
      scheme: "note",
      name: "notes",
      list: async () => ({ resources: [{ uri: "note://1" }] }),
      read: () => "x",
    });`,
    line: "Property 'name' is missing in type '{ uri: string; }' but required in type 'ResourceEntry'.",
    most: 7,
  },
  ...[
    `({ role: "system", content: "x" })`,
    `[{ role: "system", content: "x" }]`,
    `({ messages: [{ role: "system", content: { type: "text", text: "x" } }] })`,
  ].map((value) => ({
    name: `a message of the wrong role: ${value}`,
    code: `prompt({ name: "ask", run: () => ${value} });`,
    line: `Type '"system"' is not assignable to type '"user" | "assistant"'.`,
    most: 1,
  })),
  {
    name: "an idempotency key that is a number",
    code: `tool({ name: "t", use: [idempotent(() => 7)], run: () => "" });`,
    line: "Type 'number' is not assignable to type 'string | Promise<string | undefined> | undefined'.",
    most: 3,
  },
  {
    name: "an idempotency key without its function",
    code: `tool({ name: "t", use: [idempotent({ rerun: true })], run: () => "" });`,
    line: "Property 'key' is missing in type",
    most: 2,
  },
  {
    name: "a value that is not a service",
    code: `tool({ name: "t", services: { db: () => 1 }, run: () => "" });`,
    line: "Type '() => number' is not assignable to type 'Service<unknown, Lifetime>'.",
    most: 1,
  },
  {
    name: "a service that the handler does not declare",
    code: `tool({ name: "t", services: { db: service("db", () => 1) }, run: (_, { services }) => services.tx });`,
    line: "Property 'tx' does not exist on type '{ readonly db: number; }'.",
    most: 1,
  },
  {
    name: "a service of a handler that declares no services",
    code: `tool({ name: "t", run: (_, { services }) => services.db });`,
    line: "Property 'db' does not exist on type '{}'.",
    most: 1,
  },
  ...[
    `tool({ name: "t", services, allow: ({ services }) => services.tx, run: () => "" });`,
    `resource({ uri: "x://{id}", name: "x", services, list: ({ services }) => services.tx, read: () => "" });`,
    `resourceProvider({ scheme: "x", name: "x", services, list: (_, { services }) => services.tx, read: () => "" });`,
  ].map((code) => ({
    name: `a service for one call where there is no call: ${code}`,
    code: code.replace(
      "services,",
      `services: { db: service("db", () => 1), tx: service("tx", () => true, { per: "call" }) },`,
    ),
    line: "Property 'tx' does not exist on type '{ readonly db: number; }'.",
    most: 1,
  })),
  {
    name: "the context in a service that outlives its call",
    code: `service("db", ({ ctx }) => ctx);`,
    line: "Property 'ctx' does not exist on type 'ServiceScope'.",
    most: 1,
  },
  {
    name: "a context in the position of its services, as an editor shows it",
    code: `tool({ name: "t", services: { db: service("db", () => 1) }, run: (_, ctx) => ctx satisfies string });`,
    line: "Type 'Context<{ readonly db: number; }>' does not satisfy the expected type 'string'.",
    most: 1,
  },
  ...[
    ["observer: { onCall() {} }", "'onCall' does not exist in type 'Observer | readonly Observer[]'"],
    ["observer: [{ refusd() {} }]", "Did you mean to write 'refused'?"],
    ["observer: { call(e) { e.duration } }", "Did you mean 'durationMs'?"],
    ["onError() {}", "'onError' does not exist in type 'PathServerOptions<TextParams, readonly Handler[]>'"],
  ].map(([option, line]) => ({
    name: `the mistake in ${option}`,
    code: `createServer({ name: "s", version: "1", ${option} });`,
    line,
    most: 3,
  })),
];

testTypeErrors(
  `import { createServer, prompt, resource, resourceProvider, service, tool } from "${library}";
import { idempotent } from "${layers}";
void [createServer, prompt, resource, resourceProvider, service, tool, idempotent];`,
  mistakes,
);
