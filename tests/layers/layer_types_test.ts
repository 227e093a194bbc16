// The callbacks of layers get the types of the handler's input and services, in every order of the options. The
// compiler checks this file; each function that it does not check fails to compile.
import { assertEquals } from "@std/assert";
import { z } from "zod";
import { type Context, type Middleware, service, tool } from "../../mod.ts";
import { cache, confirm, idempotent, type Layer, layer } from "../../src/layers/layers.ts";
import { type Mistake, testTypeErrors } from "../support/type_errors.ts";

const toUrl = (path: string) => new URL(`../../${path}`, import.meta.url).href;

const input = z.object({ amount: z.number() });
const tx = service("tx", () => 1, { per: "call" });
const db = service("db", () => ({ ask: (amount: number) => `Pay ${amount}?` }));
const audit: Middleware = (_ctx, next) => next();

/** A layer of a third party, whose callback gets the input and the services. */
function limit<Input, Services>(read: (input: Input, ctx: Context<Services>) => number): Layer<Input, Services> {
  return layer<Input, Services>(() => ({
    name: "limit",
    run: ({ input, ctx }, next) => read(input, ctx) > 10 ? "too much" : next(),
  }));
}

const toWords = (amount: number) => `Pay ${amount.toFixed(2)}?`;

Deno.test("callbacks of layers are typed in every order of a tool's options", () => {
  const flag = input === undefined;
  const tools = [
    tool({ name: "a", input, use: [confirm(({ amount }) => toWords(amount))], run: ({ amount }) => amount }),
    tool({ name: "b", use: [confirm(({ amount }) => toWords(amount))], input, run: ({ amount }) => amount }),
    tool({ name: "c", run: ({ amount }) => amount, use: [confirm(({ amount }) => toWords(amount))], input }),
    tool({
      name: "d",
      use: [audit, confirm(({ amount }) => toWords(amount)), limit(({ amount }) => amount)],
      input: z.object({ amount: z.number() }),
      run: ({ amount }) => amount,
    }),
    tool({
      name: "e",
      use: [confirm(({ amount }) => toWords(amount))],
      input: z.object({ amount: z.string().transform(Number) }),
      run: ({ amount }) => amount,
    }),
    tool({
      name: "f",
      use: [confirm(({ amount }) => toWords(amount))],
      input,
      run({ amount }) {
        return amount;
      },
    }),
    tool({ name: "g", use: [confirm(({ amount }) => toWords(amount))], input, run: () => 1 }),
    tool({
      name: "h",
      use: [confirm(({ amount }) => toWords(amount))],
      input: { type: "object", properties: { amount: { type: "number" } }, required: ["amount"] },
      run: ({ amount }) => amount,
    }),
    tool({
      name: "i",
      services: { db },
      use: [confirm(({ amount }, { services: { db } }) => db.ask(amount))],
      input,
      run: ({ amount }) => amount,
    }),
    tool({
      name: "j",
      use: [
        confirm(({ amount }, { services: { db } }) => db.ask(amount)),
        limit(({ amount }, ctx) => ctx.services.db.ask(amount).length),
      ],
      input,
      services: { db },
      run: ({ amount }) => amount,
    }),
    tool({
      name: "k",
      annotations: { readOnlyHint: true },
      use: [...[audit], flag ? audit : confirm(({ amount }) => toWords(amount)), cache({ ttlMs: 5 }), confirm("Pay?")],
      input,
      run: ({ amount }) => amount,
    }),
    tool({
      name: "l",
      services: { db, tx },
      use: [
        confirm(({ amount }, { services: { tx } }) => toWords(amount + tx)),
        idempotent(({ amount }, { services: { db } }) => db.ask(amount)),
      ],
      input,
      run: ({ amount }) => amount,
    }),
    tool({ name: "m", use: [idempotent({ key: ({ amount }) => toWords(amount), ttlMs: 5 })], input, run: () => 1 }),
    tool({
      name: "n",
      run: ({ amount }) => amount,
      use: [idempotent({ rerun: true, key: async ({ amount }) => await Promise.resolve(toWords(amount)) })],
      input,
    }),
    tool({
      name: "o",
      run: ({ amount }) => amount,
      use: [idempotent(({ amount }, { services: { db } }) => db.ask(amount))],
      input,
      services: { db },
    }),
  ];
  assertEquals(tools.length, 15);
});

const mistakes: readonly Mistake[] = [
  {
    name: "a layer of another input",
    code: `tool({ name: "t", input, use: [other], run: () => 1 })`,
    line: "Property 'other' is missing in type '{ amount: number; }' but required in type '{ other: string; }'.",
    most: 12,
  },
  {
    name: "a layer of services that the tool does not declare",
    code: `tool({ name: "t", input, use: [needing], run: () => 1 })`,
    line: "Property 'db' is missing in type",
    most: 14,
  },
  {
    name: "a service that lives for one call in the function for an idempotency key",
    code: `tool({ name: "t", input, services, use: [idempotent((_, { services }) => services.tx)], run: () => 1 })`,
    line: "Property 'tx' does not exist on type",
    most: 2,
  },
  {
    name: "a wrong property of the input in the callback of a layer",
    code: `tool({ name: "t", use: [confirm(({ amuont }) => amuont)], input, run: () => 1 })`,
    line: "Property 'amuont' does not exist on type '{ amount: number; }'.",
    most: 2,
  },
];

testTypeErrors(
  `import { z } from "zod";
import { service, tool } from "${toUrl("mod.ts")}";
import { confirm, idempotent, type Layer } from "${toUrl("src/layers/layers.ts")}";
const input = z.object({ amount: z.number() });
const other = confirm(({ other }: { other: string }) => other);
declare const needing: Layer<unknown, { readonly db: string }>;
const services = { tx: service("tx", () => "", { per: "call" }) };
void [tool, confirm, idempotent, input, other, needing, services];`,
  mistakes,
);
