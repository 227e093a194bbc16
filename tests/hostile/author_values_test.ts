// Options and return values of the server's author that are missing, copied or of the wrong type. Such values must not
// grant access. Rejected promises must not end the process, which would fail the test run.
import { assert, assertEquals, assertRejects, assertStringIncludes, assertThrows } from "@std/assert";
import {
  createServer,
  extension,
  group,
  prompt,
  resource,
  resourceProvider,
  type ServerOptions,
  service,
  tool,
} from "../../mod.ts";
import { guard, type GuardOptions } from "../../src/layers/layers.ts";
import { z } from "zod";
import { connectTest, McpError } from "../../src/testing/testing.ts";
import { oauth } from "../../src/auth/oauth/oauth.ts";
import { behaviour } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";
import { toRequest } from "../support/requests.ts";
import { start, toCall } from "./attack.ts";
import { openServer } from "../support/servers.ts";

/** Options without type checks, as in plain JavaScript. */
// deno-lint-ignore no-explicit-any
type Untyped = any;

const secret = tool({ name: "secret", tags: ["admin"], run: () => "the secret" });
const reject = () => Promise.reject(new Error("nobody awaits this"));

/** Waits until the runtime has reported unhandled rejections. */
async function reportRejections(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve));
}

async function toText(options: Partial<ServerOptions>, request = toCall("secret")): Promise<string> {
  const server = start({ handlers: [secret], ...options });
  const response = await server.fetch(request);
  const text = `${response.status} ${await response.text()}`;
  await reportRejections();
  return text;
}

const copied: Readonly<Record<string, Untyped>> = {
  tool: secret,
  resource: resource({ uri: "x:a", name: "a", tags: ["admin"], read: () => "the secret" }),
  prompt: prompt({ name: "a", run: () => "the secret" }),
  group: group("g", [secret]),
};

for (const [kind, handler] of Object.entries(copied)) {
  Deno.test(`a copy of a ${kind} with changed options is refused as a handler, because the changes would be ignored`, async () => {
    const copies = [
      { ...handler, allow: () => false },
      Object.assign({}, handler, { scopes: ["admin"] }),
      Object.create(handler, { allow: { value: () => false, enumerable: true } }),
    ];
    for (const copy of copies) {
      assertThrows(() => start({ handlers: [copy] }), TypeError, sentence("tool()"));
      assertThrows(() => group("g", [copy]), TypeError, sentence("g"));
      await using server = start({});
      assertThrows(() => server.handlers.add(copy), TypeError, sentence("tool()"));
    }
  });

  Deno.test(`the options of a ${kind} cannot be changed after its creation`, () => {
    assertThrows(() => handler.allow = () => false, TypeError);
    assertThrows(() => handler.scopes = ["admin"], TypeError);
    assert(Object.isFrozen(handler));
  });
}

Deno.test("options that are class instances are refused, because copies would lose inherited fields", () => {
  class Options {
    name = "secret";
    run = () => "the secret";
    get scopes() {
      return ["admin"];
    }
  }
  const inherited = Object.create({ scope: ["admin"] }, Object.getOwnPropertyDescriptors(new Options()));
  for (const options of [new Options(), inherited]) {
    assertThrows(() => tool(options), TypeError, sentence());
  }
  // Objects without a prototype are accepted as plain objects.
  const bare = Object.assign(Object.create(null), { name: "a", run: () => "" });
  assertEquals(tool(bare).name, "a");
  assertThrows(() => tool(Object.assign(bare, { scope: ["admin"] })), TypeError, sentence("scope", "scopes"));
  const auth = Object.assign(Object.create(null), { authenticate: () => undefined, satisfy: () => false });
  assertThrows(() => start({ auth }), TypeError, sentence("auth.satisfy"));
});

for (
  const selection of [
    undefined,
    null,
    "secret",
    {},
    { tool: undefined },
    { tool: null },
    { tool: "" },
    { tool: secret },
    { tag: ["admin"] },
    { tags: "admin" },
    { ...secret },
  ] as Untyped[]
) {
  const shown = JSON.stringify(selection, (_key, value) => value ?? `${value}`);
  Deno.test(`disable throws for a selection that matches nothing: ${shown}`, async () => {
    await using server = start({ handlers: [secret] });
    assertThrows(() => server.handlers.disable(selection), TypeError, sentence());
  });
}

const wrong: readonly (readonly [options: Untyped, state: string])[] = [
  [{ hosts: [] }, sentence("hosts")],
  [{ secret: [] }, sentence("secret")],
  [{ secret: null }, sentence("secret")],
  [{ secret: false }, sentence("secret")],
  [{ secret: [undefined] }, sentence("secret")],
  [{ encoders: [undefined] }, sentence("encode")],
  [{ encoders: [{ test: () => true }] }, sentence("encode")],
  [{ clock: null }, sentence("clock", "now()")],
  [{ clock: {} }, sentence("clock", "now()")],
];

for (const [options, state] of wrong) {
  Deno.test(`createServer throws for ${JSON.stringify(options)}`, () => {
    assertThrows(() => createServer({ name: "s", version: "1.0.0", ...options }), TypeError, state);
  });
}

for (const decided of [true, false]) {
  behaviour(`an input guard that returns ${decided} refuses the call`, async (join) => {
    const guards: Untyped = { input: [() => decided] };
    const own = tool({ name: "own", use: [guard(guards)], run: () => "the secret" });
    const { client, takeFaults } = await join({ handlers: [own] });
    const result = await client.callTool("own");
    assertEquals(result.isError, true);
    assert(!JSON.stringify(result).includes("the secret"));
    assertEquals(`${takeFaults()[0].error}`, sentence(String(decided), "ToolError"));
  }, { transports: ["memory", "http", "pipe"] });
}

for (const decided of [true, false]) {
  behaviour(`an input guard that returns ${decided} refuses the call if the input is not an object`, async (join) => {
    const guards: Untyped = { input: [() => decided] };
    const text = tool({
      name: "text",
      input: z.object({ path: z.string() }).transform(({ path }) => path),
      use: [guard(guards)],
      run: () => "the secret",
    });
    const list = tool({
      name: "list",
      input: z.object({}).transform(() => ["a"]),
      use: [guard(guards)],
      run: () => "the secret",
    });
    const files = resourceProvider({ scheme: "file", name: "files", use: [guard(guards)], read: () => "the secret" });
    const { client, takeFaults } = await join({ handlers: [text, list, files] });
    const results = [
      await client.callTool("text", { path: "/etc/passwd" }),
      await client.callTool("list"),
      await client.readResource("file:a").catch((error) => `${error}`),
    ];
    assert(!JSON.stringify(results).includes("the secret"), JSON.stringify(results));
    const faults = takeFaults().map(({ error }) => `${error}`);
    assertEquals(faults.length, 3);
    for (const fault of faults) assertEquals(fault, sentence(String(decided), "ToolError"));
  }, { transports: ["memory", "http", "pipe"] });
}

behaviour("an input guard can replace an input that is true or false", async (join) => {
  const own = tool({
    name: "own",
    input: z.object({ yes: z.boolean() }).transform(({ yes }) => yes),
    use: [guard({ input: [(yes) => !yes] })],
    run: (yes) => `${yes}`,
  });
  const { client } = await join({ handlers: [own] });
  assertEquals((await client.callTool("own", { yes: true })).content, [{ type: "text", text: "false" }]);
});

behaviour("a tool list fails if publishSchema returns no schema", async (join) => {
  for (const publishSchema of [() => undefined, () => Promise.resolve({}), reject, () => 0] as Untyped[]) {
    const hidden = tool({ name: "a", input: { type: "object", properties: { internal: {} } }, run: () => "" });
    const { client, takeFaults } = await join({ handlers: [hidden], publishSchema });
    await assertRejects(() => client.listTools(), McpError, sentence());
    assertEquals(`${takeFaults()[0].error}`, sentence("publishSchema"));
  }
}, { transports: ["memory", "http"] });

Deno.test("an encoder converts a value only if the encoder's test returns true", async () => {
  for (const test of [() => Promise.resolve(false), reject, () => undefined, () => 1] as Untyped[]) {
    const value = tool({ name: "secret", run: () => ({ value: "the secret" }) });
    const text = await toText({ handlers: [value], encoders: [{ test, encode: () => "replaced" }] });
    assertStringIncludes(text, `"text":"${sentence()} (`);
    assert(!text.includes("secret") && !text.includes("replaced"), text);
  }
});

const page = () => {
  const request = toCall("secret");
  request.headers.set("origin", "https://page.example");
  return request;
};
const failing = tool({
  name: "secret",
  run() {
    throw new Error("the secret");
  },
});
const keyed = tool({
  name: "secret",
  services: { data: service("data", () => 1, { per: reject as Untyped }) },
  run: () => "the secret",
});

const toTenants = (options: Untyped) => ({
  path: "/:tenant",
  auth: oauth({ issuers: ["https://login.example"], ...options }),
});

const strays: Readonly<Record<string, readonly [options: Untyped, request?: Request]>> = {
  cors: [{ cors: reject }, page()],
  challenge: [{ auth: { authenticate: () => undefined, challenge: reject } }],
  satisfies: [{
    auth: { authenticate: () => ({ id: "ada", scopes: ["a"] }), satisfies: reject },
    handlers: [
      tool({ name: "secret", scopes: ["b"], run: () => "the secret" }),
    ],
  }],
  "the scopes of a principal": [{ auth: () => ({ id: "ada", scopes: reject() }) }],
  "the resource of oauth()": [toTenants({ resource: reject })],
  "the audience of oauth()": [toTenants({ resource: () => "https://a.example/acme", audience: reject })],
  "the audience in a list": [toTenants({ resource: () => "https://a.example/acme", audience: () => [reject()] })],
  mapError: [{ mapError: reject, handlers: [failing] }],
  "per of a service": [{ handlers: [keyed] }],
  publishSchema: [
    { publishSchema: reject, handlers: [tool({ name: "a", input: { type: "object" }, run: () => "" })] },
    toRequest("tools/list", {}),
  ],
};

for (const [name, [options, request]] of Object.entries(strays)) {
  Deno.test(`a rejected promise of ${name} neither ends the process nor grants access`, async () => {
    const text = await toText(options, request);
    assert(!text.includes("the secret"), text);
  });
}

// Guards that return `null` instead of `undefined`.

const empty: GuardOptions = { output: [() => null] };

for (const place of ["the handler", "the server"]) {
  Deno.test(`an output guard of ${place} can replace a value with null`, async () => {
    const secret = tool({
      name: "secret",
      use: [guard(place === "the handler" ? empty : {})],
      run: () => "the secret",
    });
    const server = start({ handlers: [secret], use: [guard(place === "the server" ? empty : {})] });
    const text = await (await server.fetch(toCall("secret"))).text();
    assertEquals(text.includes("the secret"), false, text);
  });
}

// Attempts to disable an extension with a rule.

Deno.test("disable() throws for an extension, because the rule would have no effect", async () => {
  const audit = extension({ id: "com.example/audit", methods: { "audit/get": { run: () => ({ calls: 3 }) } } });
  const server = openServer({ handlers: [audit] });
  assertThrows(() => server.handlers.disable(audit), TypeError, sentence(audit.id));
  assertThrows(() => server.handlers.enable(audit), TypeError, sentence(audit.id));
  await using client = await connectTest(server, { capabilities: { extensions: { [audit.id]: {} } } });
  assertEquals((await client.request("audit/get", {})).calls, 3);
  server.handlers.remove(audit);
  await assertRejects(() => client.request("audit/get", {}), McpError, sentence("audit/get"));
});
