// The callbacks of layers get the types of the handler's input and services, in every order of the options. The
// compiler checks this file; each function that it does not check fails to compile.
import { assertEquals } from "@std/assert";
import { z } from "zod";
import {
  type Context,
  createServer,
  group,
  type Middleware,
  prompt,
  resource,
  resourceProvider,
  service,
  tool,
} from "../../mod.ts";
import {
  cache,
  confirm,
  guard,
  idempotent,
  type InputGuard,
  type Layer,
  layer,
  type OutputGuard,
  planned,
} from "../../src/layers/layers.ts";
import { connect } from "../../src/client/client.ts";
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

Deno.test("planned() types the input of plan, both names, the arguments and what changes", async () => {
  const pay = tool({ name: "pay", input, services: { db }, run: ({ amount }) => amount });
  const handlers = [
    ...planned(pay, { plan: async ({ amount }, { services: { db } }) => ({ pays: await db.ask(amount) }) }),
    ...planned(tool({ name: "clear", run: () => "" }), { plan: () => ["all"] }),
  ] as const;
  const server = createServer({ name: "s", version: "1.0.0", handlers });
  await using client = await connect<typeof server>(server);
  const { structuredContent } = await client.callTool("plan_pay", { amount: 7 });
  const { plan, changes: { pays } } = structuredContent ?? { plan: "", changes: { pays: "" } };
  assertEquals(pays.toUpperCase(), "PAY 7?");
  await client.callTool("pay", { amount: 7, plan });
  const { structuredContent: cleared } = await client.callTool("plan_clear");
  await client.callTool("clear", { plan: cleared?.plan ?? "" });
  // @ts-expect-error: the plan is missing.
  await client.callTool("pay", { amount: 7 });
});

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

/** A layer for every kind of handler, whose callback gets the input and the services. */
function check<Input, Services>(read: (input: Input, ctx: Context<Services>) => string): Layer<Input, Services> {
  return layer<Input, Services>(() => ({ name: "check", onOutput: (_output, ctx) => read({} as Input, ctx) })); // Never called.
}

Deno.test("callbacks of layers get the variables of a template, the URI of a resource, and a prompt's arguments", () => {
  const uri = "notes://{id}";
  const name = "notes";
  const params = z.object({ id: z.coerce.number() });
  const handlers = [
    resource({ uri, name, use: [check(({ id }) => id.trim())], read: ({ id }) => id }),
    resource({ use: [audit, check(({ id }) => id.trim())], uri, name, read: ({ id }) => id }),
    resource({ read: ({ id }) => id, name, use: [check(({ id }) => id.trim())], uri: "notes://{id}" }),
    resource({ uri, name, variables: params, use: [check(({ id }) => id.toFixed())], read: ({ id }) => id.toFixed() }),
    resource({ read: ({ id }) => id.toFixed(), use: [check(({ id }) => id.toFixed())], uri, name, variables: params }),
    resource({
      uri: "notes://{+path}{?page}",
      name,
      use: [check(({ path, page }, { services: { db } }) => db.ask(path.length) + (page ?? "").trim())],
      services: { db },
      read: ({ path }) => path,
    }),
    resource({ uri: "notes://all", name, use: [check((uri) => uri.trim())], read: (uri) => uri.trim() }),
    resource({
      use: [check((uri, { services: { db } }) => db.ask(uri.length))],
      uri: "notes://a",
      name,
      services: { db },
      read: (uri) => uri,
    }),
    resourceProvider({ scheme: "notes", name, use: [check((uri) => uri.trim())], read: (uri) => uri.trim() }),
    prompt({
      name,
      use: [check(({ amount }) => amount.toFixed())],
      input: { amount: z.coerce.number() },
      run: () => "",
    }),
  ];
  assertEquals(handlers.length, 10);
});

Deno.test("guards get the input of the handler, and input guards only the services that outlive the call", () => {
  const tx = service("tx", () => ({ commit: () => true }), { per: "call" });
  const hide: OutputGuard = (value, _ctx, part) => part === "log" ? "hidden" : value;
  const low: InputGuard<{ readonly amount: number }> = ({ amount }) => amount > 5 ? { amount: 5 } : undefined;
  const services = { db, tx };
  const run = ({ amount }: { readonly amount: number }) => amount;
  const handlers = [
    tool({
      name: "a",
      input,
      use: [guard({ input: [({ amount }) => ({ amount: amount + 1 }), low], output: [hide] })],
      run,
    }),
    tool({
      name: "b",
      use: [guard({ output: [hide], input: [async ({ amount }) => void await toWords(amount)] })],
      input,
      run,
    }),
    tool({
      name: "c",
      use: [
        guard({
          input: [({ amount }, { services }) => void services.db.ask(amount)],
          output: [(value, { services }) => services.tx.commit() ? services.db.ask(1) : value],
        }),
      ],
      input,
      services,
      run,
    }),
    resource({
      uri: "notes://{id}",
      name: "d",
      use: [guard({ input: [({ id }) => ({ id: id.trim() })] })],
      read: ({ id }) => id,
    }),
    resource({ uri: "notes://all", name: "e", use: [guard({ input: [(uri) => uri.trim()] })], read: (uri) => uri }),
    prompt({
      name: "f",
      input: { amount: z.coerce.number() },
      use: [guard({ input: [low] })],
      run: ({ amount }) => toWords(amount),
    }),
    group("g", [tool({ name: "h", run: () => 1 })], {
      use: [guard({ input: [(_input, { method }) => void method], output: [hide] })],
    }),
  ];
  assertEquals(handlers.length, 7);
  createServer({ name: "s", version: "1.0.0", use: [guard({ input: [(given) => void given], output: [hide] })] });
});

const mistakes: readonly Mistake[] = [
  {
    name: "a middleware without return",
    code: `tool({ name: "t", use: [async (_ctx, next) => { await next(); }], run: () => 1 })`,
    line: "is not assignable to type 'CallMiddleware'.",
    most: 4,
  },
  {
    name: "a middleware without return and async, beside a layer",
    code: `tool({ name: "t", use: [confirm("Pay?"), (_ctx, next) => { next(); }], run: () => 1 })`,
    line: "is not assignable to type 'CallMiddleware'.",
    most: 4,
  },
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
  {
    name: "a service that lives for one call in an input guard",
    code:
      `tool({ name: "t", services, use: [guard({ input: [(_input, { services }) => services.tx] })], run: () => 1 })`,
    line: "Property 'tx' does not exist on type",
    most: 2,
  },
  {
    name: "an input guard that returns another input",
    code:
      `tool({ name: "t", input, use: [guard({ input: [({ amount }) => ({ amount: amount > 1 })] })], run: () => 1 })`,
    line: "Type 'boolean' is not assignable to type 'number'.",
    most: 6,
  },
  {
    name: "an input guard that returns whether it allows the call",
    code: `tool({ name: "t", input, use: [guard({ input: [({ amount }) => amount > 1] })], run: () => 1 })`,
    line: "Type 'boolean' is not assignable to type",
    most: 6,
  },
  {
    name: "a layer of another input than the variables of a template",
    code: `resource({ uri: "notes://{id}", name: "t", use: [other], read: () => "" })`,
    line: "Property 'other' is missing in type",
    most: 3,
  },
  {
    name: "a layer of variables around a resource without variables",
    code: `resource({ uri: "notes://all", name: "t", use: [other], read: () => "" })`,
    line: "Type 'string' is not assignable to type '{ other: string; }'.",
    most: 14,
  },
  {
    name: "a wrong variable in the callback of a layer",
    code: `resource({ uri: "notes://{id}", name: "t", use: [checked(({ ib }) => ib)], read: () => "" })`,
    line: "Property 'ib' does not exist on type",
    most: 2,
  },
  {
    name: "a wrong argument in the function of a plan",
    code: `planned(tool({ name: "t", input, run: () => 1 }), { plan: ({ amout }) => amout })`,
    line: "Property 'amout' does not exist on type",
    most: 2,
  },
  {
    name: "a plan for a resource",
    code: `planned(resource({ uri: "notes://all", name: "t", read: () => "" }), { plan: () => "" })`,
    line: "Argument of type 'FixedResource<",
    most: 10,
  },
];

testTypeErrors(
  `import { z } from "zod";
import { resource, service, tool } from "${toUrl("mod.ts")}";
import { confirm, guard, idempotent, type Layer, planned } from "${toUrl("src/layers/layers.ts")}";
const input = z.object({ amount: z.number() });
const other = confirm(({ other }: { other: string }) => other);
declare const needing: Layer<unknown, { readonly db: string }>;
declare function checked<Input>(read: (input: Input) => string): Layer<Input>;
const services = { tx: service("tx", () => "", { per: "call" }) };
void [services, planned, guard, tool, resource, confirm, idempotent, input, other, needing, checked];`,
  mistakes,
);
