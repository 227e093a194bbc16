// Code of the author gets results, entries of lists and facts about clients. What it changes for one caller, it changes
// for no other caller. The tests try to change every nested object that middleware, layers, observers, handlers and
// extensions get, and compare what callers get before and after.
import { assert, assertEquals, assertRejects } from "@std/assert";
import { z } from "zod";
import {
  type Context,
  createServer,
  extension,
  type Handler,
  type Middleware,
  prompt,
  promptProvider,
  resource,
  resourceProvider,
  type Server,
  type ServerOptions,
  tool,
  toolProvider,
  transform,
} from "../../mod.ts";
import { clientExtension } from "../../src/client/client.ts";
import { app, ui } from "../../src/extensions/apps/apps.ts";
import { skills } from "../../src/extensions/skills/skills.ts";
import { task, tasks } from "../../src/extensions/tasks/tasks.ts";
import { cache, idempotent, layer } from "../../src/layers/layers.ts";
import { toolSearch } from "../../src/ready/search/search.ts";
import { type Connection, connectTest } from "../../src/testing/testing.ts";
import { ID } from "../tasks/declared.ts";
import { LEGACY_VERSIONS } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";

let changes = 0;

/** Tries to change every object and array in a value. Ignores instances of classes. */
function spoil(value: unknown, seen: Set<unknown> = new Set()): void {
  if (typeof value !== "object" || value === null || seen.has(value)) return;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (!Array.isArray(value) && prototype !== Object.prototype && prototype !== null) return;
  seen.add(value);
  for (const each of Object.values(value)) spoil(each, seen);
  for (const name of Object.keys(value)) {
    const part: unknown = Reflect.get(value, name);
    if (typeof part === "string" && Reflect.set(value, name, `${part} SPOILED`)) changes++;
  }
  if (Reflect.set(value, Array.isArray(value) ? value.length : "spoiled", "SPOILED")) changes++;
}

const spoilContext = ({ client, principal, session, pathParams, params }: Context): void => {
  for (const part of [client, principal, session(), params]) spoil(part);
  void pathParams;
};

/** Which code changes what it gets. */
interface Spoiler {
  isOn: boolean;
}

const icons = [{ src: "https://example.com/icon.png", sizes: ["48x48"] }];
const _meta = { "com.example/marks": { list: ["a", { deep: ["b"] }] } };
const schema = {
  type: "object",
  properties: {
    a: { type: "string", enum: ["x", "y"], examples: ["x"] },
    b: { type: "array", items: { type: "number" } },
  },
  required: ["a"],
} as const;
const annotations = { readOnlyHint: true, title: "Hint" };
const shared = { icons, _meta };

function createHandlers(spoiler: Spoiler): readonly Handler[] {
  const spoils = (value: unknown) => void (spoiler.isOn && spoil(value));
  const audit = extension({
    id: "com.example/audit",
    settings: { marks: ["a", { deep: ["b"] }] },
    methods: { "audit/get": { run: () => ({ marks: ["a", { deep: true }] }) } },
  });
  const spoiling = layer((handler) => {
    spoil([handler.annotations, handler.scopes]);
    return {
      name: "spoiling",
      async inside(ctx, next) {
        if (spoiler.isOn) spoilContext(ctx);
        const result = await next();
        spoils(result);
        return result;
      },
      onOutput: (output) => {
        spoils(output);
        return output;
      },
    };
  });
  const watched = audit.layer({
    async around({ handler, ctx, declared }, next) {
      spoils([handler.inputSchema, handler.outputSchema, declared]);
      if (spoiler.isOn) spoilContext(ctx);
      const result = await next();
      spoils(result);
      return result;
    },
  });
  const lists = ["tools", "prompts", "resources", "resourceTemplates"] as const;
  const listing = tool({
    name: "listing",
    async run(_input, ctx) {
      for (const list of lists) spoils(await ctx.list(list as "tools"));
      spoils(await ctx.callTool("kept", { a: "x" }));
      spoils(await ctx.getPrompt("greet", { name: "Ada" }));
      spoils(await ctx.readResource("note://a"));
      return "done";
    },
  });
  const foreign = { name: "foreign", inputSchema: schema, outputSchema: schema, annotations, ...shared };
  const raw = tool({ name: "raw", input: schema, annotations, ...shared, use: [spoiling], run: () => "raw" });
  const dice = app({ uri: "ui://dice", html: "<!doctype html><title>Dice</title>" });
  return [
    audit,
    tasks(),
    dice,
    skills({ dir: new URL("../../examples/skills", import.meta.url) }),
    listing,
    raw,
    tool({
      name: "typed",
      input: z.object({ a: z.enum(["x", "y"]), b: z.array(z.number()).optional() }),
      output: z.object({ list: z.array(z.string()) }),
      ...shared,
      scopes: ["read"],
      use: [watched, spoiling],
      run: () => ({ list: ["a"] }),
    }),
    tool({
      name: "varied",
      input: schema,
      annotations,
      forCaller: () => ({ description: "Varied", annotations }),
      ...shared,
      run: () => "varied",
    }),
    tool({
      name: "kept",
      input: schema,
      annotations,
      use: [spoiling, cache({ ttlMs: 60_000, shared: true })],
      run: () => ({ list: ["a", { deep: ["b"] }] }),
    }),
    tool({ name: "slow", use: [task({ required: true })], run: () => "slow" }),
    tool({ name: "once", use: [idempotent({ key: () => "key" })], run: () => ({ list: ["a"] }) }),
    tool({ name: "shown", use: [ui(dice)], ...shared, run: () => "shown" }),
    tool.from(foreign, () => ({ content: [] })),
    transform(raw, { name: "changed", description: "Changed" }),
    toolProvider({
      list: () => [tool({ name: "provided", input: schema, annotations, ...shared, run: () => "" })],
      find: (name) =>
        name === "provided" ? tool({ name, input: schema, annotations, ...shared, run: () => "" }) : undefined,
    }),
    prompt({
      name: "greet",
      input: z.object({ name: z.string().describe("A name") }),
      complete: { name: () => ["Ada", "Eve"] },
      ...shared,
      use: [spoiling],
      run: ({ name }) => ({
        messages: [{ role: "user", content: { type: "text", text: `Hello ${name}` } }],
        _meta: { a: [1] },
      }),
    }),
    promptProvider({
      list: () => [prompt({ name: "found", ...shared, run: () => "" })],
      find: (name) => name === "found" ? prompt({ name, ...shared, run: () => "" }) : undefined,
    }),
    resource({
      uri: "note://a",
      name: "a",
      annotations: { audience: ["user"], priority: 0.5 },
      ...shared,
      use: [spoiling],
      read: () => ({ contents: [{ uri: "note://a", text: "a", _meta: { a: ["b"] } }] }),
    }),
    resource({
      uri: "page://{id}",
      name: "page",
      ...shared,
      complete: { id: () => ["1", "2"] },
      list: () => PAGES,
      read: ({ id }) => `page ${id}`,
    }),
    resourceProvider({
      scheme: "any",
      name: "any",
      list: () => ({ resources: PAGES.map((page) => ({ ...page, uri: "any:1" })) }),
      read: () => "any",
    }),
  ];
}

/** A list that the author's function returns to every caller. */
const PAGES = [{ uri: "page://1", name: "1", annotations: { audience: ["user" as const] }, ...shared }];

const requests: readonly (readonly [method: string, params?: Record<string, unknown>])[] = [
  ["tools/list"],
  ["prompts/list"],
  ["resources/list"],
  ["resources/templates/list"],
  ["tools/call", { name: "raw", arguments: { a: "x" } }],
  ["tools/call", { name: "typed", arguments: { a: "x" } }],
  ["tools/call", { name: "varied", arguments: { a: "x" } }],
  ["tools/call", { name: "kept", arguments: { a: "x" } }],
  ["tools/call", { name: "once", arguments: {} }],
  ["tools/call", { name: "listing", arguments: {} }],
  ["tools/call", { name: "foreign", arguments: { a: "x" } }],
  ["tools/call", { name: "changed", arguments: { a: "x" } }],
  ["tools/call", { name: "provided", arguments: { a: "x" } }],
  ["tools/call", { name: "shown", arguments: {} }],
  ["prompts/get", { name: "greet", arguments: { name: "Ada" } }],
  ["prompts/get", { name: "found" }],
  ["resources/read", { uri: "note://a" }],
  ["resources/read", { uri: "page://1" }],
  ["resources/read", { uri: "any:1" }],
  ["resources/read", { uri: "ui://dice" }],
  ["completion/complete", { ref: { type: "ref/prompt", name: "greet" }, argument: { name: "name", value: "" } }],
  ["completion/complete", { ref: { type: "ref/resource", uri: "page://{id}" }, argument: { name: "id", value: "" } }],
  ["audit/get"],
  ["server/discover"],
  ["ping"],
  ["logging/setLevel", { level: "error" }],
  ["tools/call", { name: "search_tools", arguments: { query: "raw kept shown" } }],
];

/** Declares the extension, and returns the ids of tasks. */
const tasksOfClient = clientExtension({
  id: ID,
  subjects: { "tasks/get": "taskId" },
  results: {
    task: { schema: z.object({ taskId: z.string() }), finish: ({ taskId }) => ({ content: [], _meta: { taskId } }) },
  },
});

/** Members that differ between two requests. */
const VARYING = ["nextCursor", "taskId", "createdAt", "lastUpdatedAt"];

const claims = { id: "ada", scopes: ["read"], claims: { groups: ["a", { deep: ["b"] }] } };

/** What a caller gets from every method. */
async function walk(server: Server, way: { readonly era: "modern" | "legacy"; readonly version: string }) {
  const found: Record<string, unknown> = {};
  await using client = await connectTest(server, {
    era: way.era,
    transport: "http",
    revisions: [way.version],
    principal: claims,
    extensions: [clientExtension({ id: "com.example/audit" }), tasksOfClient],
    info: { name: "test", version: "1.0.0", icons: [{ src: "https://example.com/a.png" }] },
  }).catch(() => undefined) ?? { [Symbol.asyncDispose]: async () => {} } as unknown as Connection; // The cast is safe, because such a client is not used.
  if (!client.request) return found;
  found.connection = [client.handshake, client.server];
  for (const [method, params] of requests) {
    const answer = await client.request(method, params).catch((error) => `error ${error.code}`);
    found[`${method} ${JSON.stringify(params?.name ?? params?.uri ?? "")}`] = JSON.parse(
      JSON.stringify(answer, (name, value) => VARYING.includes(name) ? undefined : value),
    );
  }
  if (way.era === "modern") {
    const params = { name: "slow", arguments: {} };
    const created = Object(await client.request("tools/call", params).catch(() => undefined));
    const taskId = String(Object(created._meta).taskId);
    const read = () => client.request("tasks/get", { taskId }).catch(() => undefined);
    let task = await read();
    while (task && Object(task).status === "working") task = await read();
    found.task = JSON.parse(JSON.stringify(task ?? {}, (name, value) => VARYING.includes(name) ? undefined : value));
  }
  return found;
}

const EVENTS = [
  ...["message", "start", "call", "asked", "refused", "limit", "fault", "session", "notification", "subscription"],
  ...["stream", "service", "store", "auth", "handlers"],
];

const record = (seen: unknown[]): Middleware => async (call, next) => {
  seen.push([call.client, call.principal, call.session()]);
  return await next();
};

/** Changes of an entry and of a list in it, in the ways that engines report with different messages. */
// deno-lint-ignore no-explicit-any
const mistakes: Readonly<Record<string, (entry: any) => unknown>> = {
  assign: (entry) => entry.name = "other",
  add: (entry) => entry.added = true,
  delete: (entry) => delete entry.name,
  define: (entry) => Object.defineProperty(entry, "name", { value: "other" }),
  redefine: (entry) => Object.defineProperty(entry, "name", { get: () => "other" }),
  hide: (entry) => Object.defineProperty(entry, "name", { enumerable: false }),
  assignAll: (entry) => Object.assign(entry, { name: "other", added: true }),
  push: ({ icons }) => icons.push({}),
  pop: ({ icons }) => icons.pop(),
  shift: ({ icons }) => icons.shift(),
  splice: ({ icons }) => icons.splice(0, 1),
  reverse: ({ icons }) => icons[0].sizes.reverse(),
  sort: ({ icons }) => icons[0].sizes.sort(),
  empty: ({ icons }) => icons.length = 0,
  deepAssign: ({ icons }) => icons[0].src = "other",
  deepAdd: ({ _meta }) => _meta["com.example/marks"].added = true,
  replaceIndex: ({ icons }) => icons[0].sizes[0] = "any",
};

const sizes = ["48x48", "96x96"];
const listed = { name: "listed", icons: [{ src: "https://example.com/icon.png", sizes }], _meta };
const places = {
  "tools/list": ["tools", "{ ...tool, description }"],
  "prompts/list": ["prompts", "{ ...prompt, description }"],
  "resources/list": ["resources", "{ ...resource, description }"],
  "resources/templates/list": ["resourceTemplates", "{ ...template, description }"],
  "server/discover": ["serverInfo", "{ ...serverInfo, description }"],
} as const;

function createListed(use: Middleware, faults: unknown[]): Server {
  return createServer({
    name: listed.name,
    version: "1.0.0",
    icons: listed.icons,
    handlers: [
      tool({ ...listed, run: () => "" }),
      prompt({ ...listed, run: () => "" }),
      resource({ ...listed, uri: "note://a", read: () => "" }),
      resource({ ...listed, uri: "note://b/{id}", read: () => "" }),
    ],
    use: [use],
    observer: { fault: ({ error }) => void faults.push(error) },
  });
}

for (const [method, [list, line]] of Object.entries(places)) {
  Deno.test(`middleware that changes an entry of ${method} fails, and the report contains the line to write`, async () => {
    const faults: unknown[] = [];
    let mistake: (entry: unknown) => unknown = () => {};
    await using server = createListed(async (call, next) => {
      const result = await next();
      if (call.method === method) {
        const { [list]: entries, _meta } = result as Record<string, unknown>; // The cast is safe, because a result is an object.
        mistake(Array.isArray(entries) ? entries[0] : Object.values(Object(_meta))[0]);
      }
      return result;
    }, faults);
    await using client = await connectTest(server, { era: "modern" });
    const before = JSON.stringify(await client.request(method));
    for (const [name, change] of Object.entries(mistakes)) {
      if (method === "server/discover" && name === "deepAdd") continue; // A server has no `_meta`.
      mistake = change;
      const error = await assertRejects(() => client.request(method), Error);
      assertEquals(Object(error).code, -32603);
      const [fault] = faults.splice(0);
      assert(fault instanceof TypeError && fault.cause instanceof TypeError, `${name}: ${fault}`);
      assertEquals(fault.message, sentence(method, line));
      mistake = () => {};
      assertEquals(JSON.stringify(await client.request(method)), before);
    }
    assertEquals(faults, []);
  });
}

Deno.test("middleware that changes the result of initialize fails, and the report contains the line to write", async () => {
  const faults: unknown[] = [];
  await using server = createListed(async (call, next) => {
    const result = await next();
    if (call.method === "initialize") Object(result.capabilities).tools.listChanged = false;
    return result;
  }, faults);
  await assertRejects(() => connectTest(server, { era: "legacy" }), Error);
  const [fault] = faults;
  assert(fault instanceof TypeError && fault.cause instanceof TypeError, String(fault));
  assertEquals(
    fault.message,
    sentence("initialize", "{ ...result, capabilities: { ...result.capabilities, tools: {} } }"),
  );
});

Deno.test("middleware lists changed copies of entries for one caller, and can add and remove entries", async () => {
  const faults: unknown[] = [];
  await using server = createListed(async (call, next) => {
    const result = await next();
    if (call.method !== "tools/list" || call.principal?.id !== "ada") return result;
    const { tools } = result as { tools: { name: string }[] }; // The cast is safe, because the method is tools/list.
    tools.push({ ...tools[0], name: "second" });
    return { ...result, tools: tools.map((tool) => ({ ...tool, description: "for Ada" })) };
  }, faults);
  const list = async (id: string) => {
    await using client = await connectTest(server, { principal: { id } });
    return (await client.listTools()).map(({ name, description }) => `${name} ${description}`);
  };
  assertEquals(await list("ada"), ["listed for Ada", "second for Ada"]);
  assertEquals(await list("eve"), ["listed undefined"]);
  assertEquals(faults, []);
});

Deno.test("an error of middleware that has nothing to do with a result is reported unchanged", async () => {
  const faults: unknown[] = [];
  const own = Object.freeze({ count: 0 });
  await using server = createListed((call, next) => {
    if (call.method === "tools/list") Object(undefined).tools.length = 0;
    if (call.method === "tools/call") Object.assign(own, { count: 1 });
    return next();
  }, faults);
  await using client = await connectTest(server);
  for (const [method, params] of [["tools/list"], ["tools/call", { name: "listed" }]] as const) {
    await assertRejects(() => client.request(method, params), Error);
    const [fault] = faults.splice(0);
    assert(fault instanceof TypeError && fault.cause === undefined, String(fault));
  }
});

for (const kind of ["with middleware", "without middleware", "with a search and middleware"]) {
  const hasMiddleware = kind !== "without middleware";
  for (const version of ["2026-07-28", ...LEGACY_VERSIONS]) {
    const way = { era: version === "2026-07-28" ? "modern" as const : "legacy" as const, version };
    Deno.test(`what one caller's code changes reaches no other caller, ${kind} (${version})`, async () => {
      const spoiler = { isOn: false };
      const seen: unknown[] = [];
      const spoils = (value: unknown) => void (spoiler.isOn && spoil(value));
      const use: Middleware = async (call, next) => {
        if (spoiler.isOn) spoilContext(call);
        const result = await next();
        spoils(result);
        return result;
      };
      const observer = Object.fromEntries(EVENTS.map((event) => [event, spoils]));
      const options: Partial<ServerOptions> = hasMiddleware ? { use: [record(seen), use] } : {};
      await using server = createServer({
        name: "shared",
        version: "1.0.0",
        title: "Shared",
        icons,
        instructions: "Use it.",
        handlers: [...createHandlers(spoiler), ...kind.includes("search") ? [toolSearch({ always: ["raw"] })] : []],
        sessionData: () => ({ list: ["a", { deep: ["b"] }] }),
        observer,
        secret: "a secret of the test server, which is long enough",
        ...options,
      });
      const before = await walk(server, way);
      const failed = Object.keys(before).filter((name) => String(before[name]).startsWith("error"));
      const unknown = way.era === "modern"
        ? ['ping ""', 'logging/setLevel ""']
        : ['audit/get ""', 'server/discover ""'];
      if (!kind.includes("search")) unknown.push('tools/call "search_tools"');
      assertEquals(failed, unknown);
      if (way.era === "modern") assertEquals(Object(before.task).status, "completed");
      const facts = JSON.stringify(seen.splice(0));
      spoiler.isOn = true;
      changes = 0;
      for (let time = 0; time < 2; time++) await walk(server, way);
      assert(changes > 20, `only ${changes} changes`);
      spoiler.isOn = false;
      seen.length = 0;
      assertEquals(await walk(server, way), before);
      assertEquals(JSON.stringify(seen), facts);
      assert(!JSON.stringify([icons, _meta, schema, annotations, PAGES, claims]).includes("SPOILED"));
    });
  }
}
