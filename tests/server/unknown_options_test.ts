// Options of unknown names, which a file without a type checker may have: in development and in `mcp check` they are
// reported, because they are ignored otherwise.
import { assertEquals, assertMatch, assertStringIncludes, assertThrows } from "@std/assert";
import {
  createServer,
  extension,
  group,
  type Handler,
  mount,
  prompt,
  resource,
  resourceProvider,
  type Server,
  type ServerOptions,
  service,
  tool,
} from "../../mod.ts";
import { apiKey } from "../../src/auth/auth.ts";
import { INTERNALS } from "../../src/core/internals.ts";
import { limits } from "../../src/limits/limits.ts";
import { createServer as createModernServer } from "../../src/modern.ts";
import { connect } from "../../src/testing/testing.ts";
import { behaviour } from "../support/behaviour.ts";
import { runtimes, testProcesses, withFiles } from "../support/command_line.ts";
import { run } from "../support/processes.ts";
import { collectWarnings } from "../support/warnings.ts";

/** Options that are not type-checked, as from JavaScript. */
const wrong = (options: object) => options as never; // As above.

const text = () => "";

async function develop(options: Partial<ServerOptions>): Promise<string[]> {
  const server = createServer({ name: "s", version: "1.0.0", ...options });
  const warnings = await collectWarnings(() => server[INTERNALS].develop());
  await server.close();
  return warnings.map((text) => text.replace(/^Cannot use the option /, ""));
}

const serviceOf = (options: object) =>
  tool({ name: "t", services: { tx: service("tx", () => 1, wrong(options)) }, run: text });

/** The extension of the attribute below. */
const views = extension({ id: "com.example/views" });

const audit = extension(wrong({
  id: "com.example/audit",
  setting: {},
  methods: { "audit/get": { input: {}, run: () => ({}) } },
  listen: { auditIds: { filter: { type: "object" }, grants: text } },
}));

/** Handlers with wrong options, and what is reported. */
const handlers: readonly (readonly [handler: Handler, reported: readonly string[]])[] = [
  [tool(wrong({ name: "t", inputSchema: {}, outputSchema: {}, handler: text, run: text })), [
    'inputSchema of tool "t": there is no such option; write input instead',
    'outputSchema of tool "t": there is no such option; write output instead',
    'handler of tool "t": there is no such option; write run instead',
  ]],
  [tool(wrong({ name: "t", descripton: "d", execute: text, colour: 1, run: text })), [
    'descripton of tool "t": there is no such option; did you mean description?',
    'execute of tool "t": there is no such option; write run instead',
    'colour of tool "t": there is no such option; remove it',
  ]],
  [tool(wrong({ name: "t", readOnlyHint: true, annotations: { readOnly: true, openWorldHints: true }, run: text })), [
    'readOnlyHint of tool "t": there is no such option; write annotations.readOnlyHint instead',
    'annotations.readOnly of tool "t": there is no such option; write annotations.readOnlyHint instead',
    'annotations.openWorldHints of tool "t": there is no such option; did you mean annotations.openWorldHint?',
  ]],
  [tool(wrong({ name: "t", toString: 1, extensions: [views.attribute(wrong({ require: true }))], run: text })), [
    'toString of tool "t": there is no such option; remove it',
    'require of attribute of com.example/views for tool "t": there is no such option; did you mean required?',
  ]],
  [prompt(wrong({ name: "p", arguments: [], callback: text, run: text })), [
    'arguments of prompt "p": there is no such option; write input instead',
    'callback of prompt "p": there is no such option; write run instead',
  ]],
  [resource(wrong({ uri: "config://app", name: "r", uriTemplate: "x", list: text, read: text })), [
    'uriTemplate of resource "config://app": there is no such option; write uri instead',
    'list of resource "config://app": there is no such option; write a uri with variables, such as note://{id}',
  ]],
  [resource(wrong({ uri: "note://{id}", name: "r", completer: {}, subscribe: text, read: text })), [
    'completer of resource "note://{id}": there is no such option; did you mean complete?',
    'subscribe of resource "note://{id}": there is no such option; use resourceProvider()',
  ]],
  [resourceProvider(wrong({ scheme: "note", name: "r", title: "R", mimetype: "text/plain", read: text })), [
    'title of resource "note:": there is no such option; return it with each resource of list',
    'mimetype of resource "note:": there is no such option; did you mean mimeType?',
  ]],
  [serviceOf({ perCall: true }), ['perCall of service "tx": there is no such option; write per: "call" instead']],
  [serviceOf({ per: "call", max: 3 }), [
    'max of service "tx": there is no such option; set per to a function that returns a key',
  ]],
  [serviceOf({ per: () => "k", max: 3, idle: 5 }), ['idle of service "tx": there is no such option; remove it']],
  [group("g", [group("h", [tool(wrong({ name: "t", args: {}, run: text }))])]), [
    'args of tool "g_h_t": there is no such option; write input instead',
  ]],
  [audit, [
    'setting of extension "com.example/audit": there is no such option; did you mean settings?',
    'methods.audit/get.input of extension "com.example/audit": there is no such option; write methods.audit/get.params ' +
    "instead",
    'listen.auditIds.grants of extension "com.example/audit": there is no such option; did you mean ' +
    "listen.auditIds.grant?",
  ]],
];

Deno.test("development reports unknown options of every kind of handler, with the option to use", async () => {
  for (const [handler, reported] of handlers) assertEquals(await develop({ handlers: [handler, views] }), reported);
});

Deno.test("development reports unknown options of a server", async () => {
  const options = { tools: [], resources: [], onToolError: text, instruction: "x", timeoutMs: 5, port: 3000 };
  assertEquals(await develop(wrong({ ...options, cors: { origins: [], credential: true } })), [
    'tools of server "s": there is no such option; write handlers instead',
    'resources of server "s": there is no such option; write handlers instead',
    'onToolError of server "s": there is no such option; write describeError instead',
    'instruction of server "s": there is no such option; did you mean instructions?',
    'timeoutMs of server "s": there is no such option; write limits.calls.timeoutMs instead',
    'port of server "s": there is no such option; remove it',
    'cors.credential of server "s": there is no such option; did you mean cors.credentials?',
  ]);
});

Deno.test("an unknown option that would leave a server open is refused at once", () => {
  const about = { name: "s", version: "1.0.0" };
  const auth = apiKey({ keys: { ada: "ada-2f6c1e0b9d4a7853" } });
  const one = createServer(about);
  const mistakes: readonly (readonly [make: () => unknown, message: string])[] = [
    [() => createServer(wrong({ ...about, authentication: auth })), "server: authentication is ignored; write auth"],
    [
      () => createServer(wrong({ ...about, authenticate: () => undefined })),
      "server: authenticate is ignored; write auth",
    ],
    [() => createServer(wrong({ ...about, authorization: () => undefined })), "authorization is ignored; write auth"],
    [() => createServer(wrong({ ...about, oauth: { issuer: "https://a.example" } })), "oauth is ignored; write auth"],
    [() => createServer(wrong({ ...about, authToken: "ada-2f6c1e0b9d4a7853" })), "authToken is ignored; write auth"],
    [() => createModernServer(wrong({ ...about, security: auth })), "server: security is ignored; write auth"],
    [() => mount([one], wrong({ auth })), "Cannot mount: there is no option auth; give it to each server"],
    [
      () => group("g", [], wrong({ scopes: ["a"] })),
      'group "g": there is no option scopes; a group has use, tags and allow',
    ],
  ];
  for (const [make, message] of mistakes) assertThrows(make, TypeError, message);
  // Options that were computed, and are not set.
  createServer(wrong({ ...about, authenticate: undefined, auth }));
  createServer(wrong({ ...about, author: "Ada", authors: ["Ada"], requireAuth: false }));
  // An object with several jobs, which is used as what it is.
  const gate = Object.create({ authenticate: () => undefined });
  createServer({ ...about, auth: gate, observer: gate });
  group("g", [], wrong({ scopes: undefined }));
  mount([one], wrong({ auth: undefined }));
});

Deno.test("known options, and unknown ones that are undefined, are not reported", async () => {
  const tx = service("tx", () => 1, { per: "call", dispose: text });
  const cart = service("cart", () => 1, { per: () => "k", idleMs: 5, max: 3, dispose: text });
  const options = { services: { tx, cart }, tags: [], needs: [], scopes: [], use: [], allow: () => true, guards: {} };
  const reported = await develop({
    title: "S",
    capabilities: { logging: false },
    cors: { origins: "*" },
    handlers: [
      tool(
        wrong({ ...options, name: "t", annotations: { title: "T", readOnlyHint: true }, extra: undefined, run: text }),
      ),
      prompt({ ...options, name: "p", title: "P", complete: {}, run: text }),
      resource({ ...options, uri: "config://app", name: "c", size: 3, ttlMs: 5, read: text }),
      resource({ ...options, uri: "note://{id}", name: "n", complete: { id: () => [] }, list: () => [], read: text }),
      resourceProvider({ ...options, scheme: "x", name: "x", subscribe() {}, unsubscribe() {}, read: text }),
      group("g", [tool({ ...options, name: "t", description: "d", run: text })], { use: [], tags: [] }),
    ],
  });
  assertEquals(reported, []);
});

behaviour("each unknown option is reported once, also of a handler that is added later", async (join) => {
  const old = tool(wrong({ name: "old", handler: text, run: text }));
  const added = tool(wrong({ name: "new", handler: text, run: text }));
  const warnings = await collectWarnings(async () => {
    const { client, server, join: again } = await join({ handlers: [old] });
    await again();
    server.handlers.add(added);
    server.handlers.remove(added);
    server.handlers.add(added);
    await client.callTool("new");
  });
  assertEquals(
    warnings,
    ["old", "new"].map((name) =>
      `Cannot use the option handler of tool "${name}": there is no such option; write run instead`
    ),
  );
});

Deno.test("handlers of a concrete path are reported when the path is first used", async () => {
  const handlers = () => [tool(wrong({ name: "t", handler: text, run: text }))];
  const server = createServer({ name: "s", version: "1.0.0", path: "/:tenant/mcp", handlers });
  const warnings = await collectWarnings(async () => {
    for (const tenant of ["a", "b"]) await (await connect(server, { transport: "pipe", params: { tenant } })).close();
  });
  assertEquals(warnings.length, 1, warnings.join("\n"));
  assertStringIncludes(warnings[0], 'the option handler of tool "t"');
  await server.close();
});

Deno.test("mounted servers are reported too, and development: false reports nothing", async () => {
  const make = (name: string, development?: boolean): Server =>
    createServer(wrong({ name, version: "1.0.0", path: `/${name}`, tools: [], development }));
  const mounted = mount([make("a"), make("b"), make("c", false)]);
  const warnings = await collectWarnings(() => mounted[INTERNALS].develop());
  assertEquals(warnings.map((text) => text.slice(0, 41)), [
    'Cannot use the option tools of server "a"',
    'Cannot use the option tools of server "b"',
  ]);
  assertEquals((await mounted[INTERNALS].findUnknownOptions()).map(({ name }) => name), ["a", "b", "c"]);
  await mounted.close();
});

Deno.test("limits of a handler have known names only", () => {
  const cases: readonly (readonly [options: object, state: string])[] = [
    [{ timeout: 5 }, "there is no limit timeout; did you mean timeoutMs?"],
    [{ perMs: 5, rate: undefined }, "there is no limit perMs; use timeoutMs, concurrency, rate, resultBytes, onLarge"],
    [{ rate: { calls: 1, perMs: 5, bursts: 2 } }, "there is no limit rate.bursts; did you mean rate.burst?"],
    [{ concurrency: { calls: 1, queue: 2 } }, "there is no limit concurrency.queue; use calls, waiting"],
  ];
  for (const [options, state] of cases) {
    assertStringIncludes(assertThrows(() => limits(wrong(options)), TypeError).message, `Cannot make limits: ${state}`);
  }
});

const file = `import { createServer, service, tool } from "@x/mcp";
const tx = service("tx", () => 1, { perCall: true });
const add = tool({ name: "add", description: "Adds", inputSchema: { type: "object" }, services: { tx }, run: () => 3 });
export default createServer({ name: "calc", version: "1.0.0", tools: [add], colour: 1, handlers: [add] });`;

const tenants = `import { createServer, tool } from "@x/mcp";
const add = tool({ name: "add", description: "Adds", handler: () => 3, run: () => 3 });
export default createServer({ name: "calc", version: "1.0.0", path: "/:tenant/mcp", handlers: () => [add] });`;

for (const { name, program } of runtimes) {
  testProcesses(`${name}: check reports unknown options, and --watch warns of them`, async () => {
    await withFiles({ "server.js": file, "tenants.js": tenants }, async (cwd) => {
      const found = await run([...program, "check", "server.js"], { cwd });
      assertEquals(found.code, 1);
      const [, report] = found.stdout.split("\n\n");
      assertEquals(report.trim().split("\n"), [
        "error: server calc: there is no option tools; write handlers instead",
        "warning: server calc: there is no option colour; remove it",
        "error: tool add: there is no option inputSchema; write input instead",
        'error: service tx: there is no option perCall; write per: "call" instead',
      ]);
      const { findings } = JSON.parse((await run([...program, "check", "--json", "server.js"], { cwd })).stdout);
      assertEquals(findings.length, 4);
      const entered = await run([...program, "check", "tenants.js", "--param", "tenant=a"], { cwd });
      assertStringIncludes(entered.stdout, "error: tool add: there is no option handler; write run instead");
      const watched = await run([...program, "--stdio", "--watch", "server.js"], { cwd });
      assertMatch(
        watched.stderr,
        /^Cannot use the option tools of server "calc": there is no such option; write handle/,
      );
      assertEquals(watched.stdout, "");
      const served = await run([...program, "--stdio", "server.js"], { cwd });
      assertEquals(served.stderr, "");
    });
  });
}
