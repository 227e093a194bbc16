// Handlers that use more than plain schemas and texts: values that JSON cannot represent, shapes, lenient arguments,
// required capabilities, and forms with choices.
import { z } from "zod";
import { type Handler, prompt, resource, tool } from "../../mod.ts";

function stream(...parts: readonly string[]): ReadableStream<Uint8Array> {
  const chunks = parts.map((part) => new TextEncoder().encode(part));
  return new ReadableStream({
    pull(controller) {
      const chunk = chunks.shift();
      if (chunk) controller.enqueue(chunk);
      else controller.close();
    },
  });
}

async function* steps() {
  for (const step of ["one", new Map([["two", 2n]]), Uint8Array.of(3)]) yield await Promise.resolve(step);
}

/** By name, values that a handler can return. */
export const values: Readonly<Record<string, () => unknown>> = {
  nothing: () => undefined,
  map: () => new Map<string, unknown>([["a", new Set([1n, new Date(0)])], ["__proto__", new URL("a:b")]]),
  numbers: () => Float64Array.of(1, 2.5),
  bytes: () => Uint8Array.of(137, 80, 78, 71),
  blob: () => new Blob(["a"], { type: "image/png" }),
  file: () => new File(["a"], "a.txt", { type: "text/plain" }),
  stream: () => stream("a", "b"),
  response: () => new Response(stream('{"a":', "1}"), { headers: { "content-type": "application/json" } }),
  steps,
  big: () => 2n ** 80n,
};
export const valueNames: readonly string[] = Object.keys(values);

/** Returns the requested value, or an object that contains the value and a copy of the input. */
function toValue({ kind, deep }: { readonly kind: string; readonly deep?: boolean }, input: unknown): unknown {
  const make = Object.hasOwn(values, kind) ? values[kind] : values.nothing;
  return deep ? { of: make() ?? null, list: [make() ?? null], input } : make();
}

export const shapes: readonly Handler[] = [
  tool({
    name: "value",
    input: { kind: z.enum(valueNames), deep: z.boolean().default(false) },
    // The cast is safe for the names in the table, because clients can send these values.
    run: (input) => toValue(input, input) as string,
  }),
  tool({
    name: "shape",
    input: {
      when: z.iso.datetime(),
      size: z.string().regex(/^-?\d{1,100}$/).transform(BigInt).optional(),
      tags: z.array(z.string()).transform((list) => new Set(list)).optional(),
      named: z.record(z.string(), z.number()).transform((all) => new Map(Object.entries(all))).optional(),
      count: z.coerce.number().default(1),
    },
    run: (input) => new Map(Object.entries(input)),
  }),
  tool({
    name: "lenient",
    lenientArguments: true,
    input: {
      type: "object",
      properties: {
        list: { type: "array", items: { type: "integer" } },
        map: { type: "object", additionalProperties: { type: "boolean" } },
        flag: { type: "boolean", default: true },
        either: { anyOf: [{ type: "number" }, { type: "array" }] },
      },
      additionalProperties: false,
    },
    run: (input) => JSON.stringify(input),
  }),
  tool({ name: "needy", requires: ["elicitation", "sampling.tools", "roots"], run: () => "had it all" }),
  tool({
    name: "form",
    async run(_input, ctx) {
      const schema = {
        type: "object",
        properties: {
          mail: { type: "string", format: "email" },
          size: { type: "string", enum: ["s", "m"], default: "m" },
          colours: { type: "array", items: { anyOf: [{ const: "r", title: "Red" }, { const: "g", title: "Green" }] } },
          age: { type: "integer", minimum: 0, maximum: 150 },
          sure: { type: "boolean" },
        },
        required: ["sure"],
      } as const;
      return (await ctx.elicit("form", { message: "Fill it in", schema })).action;
    },
  }),
  resource({
    uri: "value://{kind}",
    name: "value",
    read: ({ kind }) => toValue({ kind: kind === "map" || kind === "numbers" ? "stream" : kind }, undefined) as string,
  }),
  prompt({
    name: "shape",
    input: { count: z.coerce.number(), sure: z.coerce.boolean().optional() },
    run: ({ count, sure }) => [{ role: "user", content: `${count} ${sure}` }],
  }),
];
