// Options of the wrong type are refused at run time, because programs may not be type-checked. An option that restricts
// access must not be ignored because its value has the wrong type.
import { assert, assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import {
  createServer,
  extension,
  group,
  type Middleware,
  onlyMethods,
  prompt,
  resource,
  resourceProvider,
  service,
  tool,
} from "../../mod.ts";
import { apiKey } from "../../src/auth/api_key.ts";
import { basicAuth } from "../../src/auth/basic.ts";
import { oauth } from "../../src/auth/oauth/oauth.ts";
import { mount } from "../../src/server/mount.ts";
import { cache } from "../../src/layers/cache.ts";
import { circuit } from "../../src/layers/circuit.ts";
import { guard } from "../../src/layers/guard.ts";
import { file } from "../../src/ready/file.ts";
import { folder } from "../../src/ready/folder.ts";
import { retry } from "../../src/layers/retry.ts";
import { quota } from "../../src/layers/layers.ts";
import { sentence } from "../support/messages.ts";

/** Makes a value of the wrong type compile. */
function untyped(value: unknown): never {
  return value as never; // The cast lets any value pass the type check.
}

const run = () => "";
const audit: Middleware = (_call, next) => next();
const about = { name: "x", version: "1.0.0" };

/** The options that clients see. For these options, `null` counts as absent. */
const NULLABLE = ["icons", "annotations"];

/** A factory with the names of its options, grouped by type. */
interface Typed {
  readonly make: (wrong: object) => unknown;
  readonly lists: readonly string[];
  readonly functions: readonly string[];
  readonly objects?: readonly string[];
}

const HANDLER = {
  lists: ["requires", "use", "tags", "icons", "scopes"],
  functions: ["allow", "mapError"],
};

const FACTORIES: Readonly<Record<string, Typed>> = {
  "create a server": {
    make: (wrong) => createServer({ ...about, ...wrong }),
    lists: ["handlers", "use", "icons", "hosts", "proxies", "origins", "encoders"],
    functions: ["admit", "sessionData", "mapError", "publishSchema"],
    objects: ["capabilities"],
  },
  'make tool "t"': {
    ...HANDLER,
    make: (wrong) => tool({ name: "t", run, ...wrong }),
    functions: [...HANDLER.functions, "forCaller"],
    objects: ["annotations"],
  },
  'make prompt "p"': { ...HANDLER, make: (wrong) => prompt({ name: "p", run, ...wrong }) },
  'make resource "x://a"': { ...HANDLER, make: (wrong) => resource({ uri: "x://a", name: "a", read: run, ...wrong }) },
  'make resource "x://{a}"': {
    ...HANDLER,
    make: (wrong) => resource({ uri: "x://{a}", name: "a", read: run, ...wrong }),
    functions: [...HANDLER.functions, "list"],
  },
  'make resource provider "x"': {
    make: (wrong) => resourceProvider({ scheme: "x", name: "a", read: run, ...wrong }),
    lists: ["requires", "use", "tags", "scopes", "uris"],
    functions: [...HANDLER.functions, "list", "templates", "complete", "subscribe", "unsubscribe"],
  },
  'make group "g"': { make: (wrong) => group("g", [], wrong), lists: ["use", "tags"], functions: ["allow"] },
  'make service "s"': { make: (wrong) => service("s", run, wrong), lists: [], functions: ["dispose"] },
  "make limits": { make: (wrong) => quota(untyped(wrong)), lists: [], functions: [], objects: ["rate"] },
  "make a guard": { make: (wrong) => guard(wrong), lists: ["input", "output"], functions: [] },
  "use oauth()": {
    make: (wrong) => oauth({ resource: "https://a.example/mcp", issuers: ["https://login.example"], ...wrong }),
    lists: ["algorithms"],
    functions: ["satisfies", "readScopes"],
  },
};

for (const [action, { make, lists, functions, objects = [] }] of Object.entries(FACTORIES)) {
  const check = (name: string, values: readonly unknown[]) => {
    const isAbsent = (value: unknown) => value === null && NULLABLE.includes(name);
    for (const absent of values.filter(isAbsent)) make({ [name]: absent });
    const messages = values.filter((value) => !isAbsent(value)).map((wrong) =>
      assertThrows(() => make({ [name]: wrong }), TypeError).message
    );
    assertEquals(messages[0], sentence(name));
    // All values of a wrong type have the same remedy.
    for (const message of messages) {
      assertStringIncludes(message, name);
      assertEquals(message.split("; ").at(-1), messages[0].split("; ").at(-1));
    }
  };
  Deno.test(`${action}: every list, function and object option refuses a value of another type, and the error names the option`, () => {
    for (const name of lists) {
      check(name, ["elicitation", { 0: run }, null, 5, true, ...name === "handlers" ? [] : [run]]);
    }
    for (const name of functions) check(name, ["x", {}, null, true, false, 0, ["a"], ...EMPTY]);
    for (const name of objects) check(name, ["x", null, true, 5, [], run]);
  });
}

/** Values that have no fields of their own, so that every option in them would be absent. */
class Hidden {
  get input(): readonly unknown[] {
    return [run];
  }
}
const then = { then: run };
const EMPTY = [Promise.resolve({ input: [run] }), new (class extends Promise<unknown> {})(() => {}), then];

/** All factories whose options the library checks, with the names of options of every kind of rule. */
const PROMISED: Readonly<Record<string, readonly [make: (wrong: object) => unknown, ...names: string[]]>> = {
  "create a server": [
    (wrong) => createServer({ ...about, ...wrong }),
    ...["capabilities", "auth", "store", "limits", "observer", "cors", "text", "handlers", "use", "admit"],
    ...[
      "sessionData",
      "requireSession",
      "secret",
      "clock",
      "instructions",
      "path",
      "pathSchema",
      "icons",
      "routes",
      "revisions",
    ],
  ],
  'make tool "t"': [
    (wrong) => tool({ name: "t", run, ...wrong }),
    ...["input", "output", "services", "annotations", "scopes", "use", "allow"],
    ...["text", "description", "title", "icons", "tags", "requires"],
  ],
  'make prompt "p"': [
    (wrong) => prompt({ name: "p", run, ...wrong }),
    ...["input", "services", "scopes", "use", "complete", "icons"],
  ],
  'make resource "x://a"': [
    (wrong) => resource({ uri: "x://a", name: "a", read: run, ...wrong }),
    ...["annotations", "scopes", "services", "size", "cacheScope", "ttlMs"],
  ],
  'make resource "x://{a}"': [
    (wrong) => resource({ uri: "x://{a}", name: "a", read: run, ...wrong }),
    ...["variables", "complete", "list", "scopes"],
  ],
  'make resource provider "x"': [
    (wrong) => resourceProvider({ scheme: "x", name: "a", read: run, ...wrong }),
    ...["scopes", "services", "list", "subscribe"],
  ],
  'make group "g"': [(wrong) => group("g", [], wrong), "use", "tags", "allow"],
  'make service "s"': [(wrong) => service("s", run, wrong), "dispose", "per"],
  "make a quota": [(wrong) => quota(untyped(wrong)), "rate", "concurrency"],
  'make extension "com.example/a"': [
    (wrong) => extension({ id: "com.example/a", ...wrong }),
    ...["settings", "methods", "listen"],
  ],
  "use oauth()": [
    (wrong) => oauth({ resource: "https://a.example/mcp", issuers: ["https://login.example"], ...wrong }),
    ...["issuers", "resource", "algorithms", "introspection", "exchange", "scopes"],
  ],
  "use apiKey()": [(wrong) => apiKey({ keys: {}, ...wrong }), "keys", "header", "cookie"],
  "use basicAuth()": [(wrong) => basicAuth({ users: {}, ...wrong }), "users", "realm"],
  'make folder "/a"': [
    (wrong) => folder({ path: "/a", ...wrong }),
    "path",
    "exclude",
    "annotations",
    "scopes",
    "hidden",
  ],
  'make file "/a"': [(wrong) => file({ path: "/a", ...wrong }), "annotations", "scopes", "uri"],
  "make a guard": [(wrong) => guard(wrong), "input", "output"],
  "make a circuit breaker": [(wrong) => circuit(wrong), "failures", "retryMs", "errors"],
  "make a cache": [(wrong) => cache({ ttlMs: 1, ...wrong }), "ttlMs", "entries"],
  "make retries": [(wrong) => retry(wrong), "attempts", "delayMs", "errors"],
  "mount": [(wrong) => mount([createServer(about)], wrong), "handlers", "routes"],
};

for (const [action, [make, ...names]] of Object.entries(PROMISED)) {
  Deno.test(`${action}: a promise is not accepted for any option, because it would set nothing`, () => {
    for (const name of names) {
      for (const wrong of EMPTY) {
        const { message } = assertThrows(() => make({ [name]: wrong }), TypeError);
        assertStringIncludes(message, name);
        assert(!message.includes("unknown option"), message);
      }
    }
  });
}

Deno.test("the options of a guard are not read from an object whose fields cannot be checked", () => {
  for (const wrong of [...EMPTY, new Hidden(), new Map([["input", [run]]]), Object.create({ input: [run] })]) {
    assertThrows(() => guard(untyped(wrong)), TypeError, sentence("guard"));
    assertThrows(() => tool({ name: "t", use: [untyped(wrong)], run }), TypeError, sentence('tool "t"', "use"));
  }
  assertThrows(
    () => createServer({ ...about, handlers: [untyped(Promise.resolve(tool({ name: "t", run })))] }),
    TypeError,
    sentence("handler"),
  );
});

const MISTAKES: readonly (readonly [make: () => unknown, message: string])[] = [
  ...[true, "*", "https://a.example", null, [], {}, { origins: "https://a.example" }, { origins: true }].map((cors) =>
    [
      () => createServer({ ...about, cors: untyped(cors) }),
      sentence("cors", "origins", '"*"', '"none"'),
    ] as const
  ),
  [() => createServer({ ...about, use: [untyped("logging")] }), sentence("use", '"logging"')],
  [() => tool({ name: "t", use: [untyped(undefined)], run }), sentence('tool "t"', "use", "undefined")],
  [() => createServer({ ...about, hosts: [untyped(5)] }), sentence("hosts", 5)],
  [() => guard({ input: untyped(run) }), sentence("guard", "input")],
  [() => guard({ output: [untyped({})] }), sentence("guard", "output")],
  [() => tool({ name: "t", scopes: [untyped(5)], run }), sentence('tool "t"', "scopes")],
  [() => tool({ name: "t", scopes: untyped([["a"]]), run }), sentence('tool "t"', "scopes")],
  [
    () => createServer({ ...about, requireSession: untyped("required") }),
    sentence("requireSession", '"required"'),
  ],
  [
    () => createServer({ ...about, cacheScope: untyped("shared") }),
    sentence("cacheScope", '"shared"', '"public"', '"private"'),
  ],
  [
    () => resource({ uri: "x://a", name: "a", cacheScope: untyped("shared"), read: run }),
    sentence('resource "x://a"', "cacheScope", '"public"'),
  ],
  [() => createServer({ ...about, capabilities: { logging: untyped(0) } }), sentence("capabilities.logging", 0)],
  [() => createServer({ ...about, auth: untyped({ authenticate: true }) }), sentence("auth.authenticate", "true")],
  [
    () =>
      createServer({ ...about, auth: { authenticate: () => undefined, credentials: { headers: untyped("x-key") } } }),
    sentence("auth.credentials.headers", '"x-key"'),
  ],
  [() => quota({ rate: untyped({ calls: "5", perMs: 5 }) }), sentence("rate.calls", '"5"')],
  ...[null, false, 0, ""].flatMap((none) => {
    const route = { name: "a", path: "/t/:tenant/mcp", version: "1.0.0", pathSchema: untyped(none) };
    const method = { "a/b": { params: untyped(none), run: () => ({}) } };
    return ([
      [() => tool({ name: "t", input: untyped(none), run }), sentence('tool "t"')],
      [() => tool(untyped({ name: "t", output: none, run })), sentence('tool "t"')],
      [() => prompt({ name: "p", input: untyped(none), run }), sentence('prompt "p"')],
      [
        () => resource({ uri: "x://{a}", name: "a", variables: untyped(none), read: run }),
        sentence('resource "x://{a}"'),
      ],
      [() => createServer(route), sentence("/t/:tenant/mcp")],
      [() => extension({ id: "com.example/a", methods: method }), sentence("a/b", '"com.example/a"')],
      [() => tool(untyped({ name: "t", quota: none, run })), sentence('tool "t"', "quota(…)")],
      [() => tool({ name: "t", use: untyped(none), run }), sentence('tool "t"', "use")],
      [() => createServer({ ...about, store: untyped(none) }), sentence("store")],
      [() => createServer({ ...about, auth: untyped(none) }), sentence("auth")],
      [() => createServer({ ...about, limits: untyped(none) }), sentence("limits")],
      [() => createServer({ ...about, observer: untyped(none) }), sentence("observer")],
    ] as const);
  }),
  [() => onlyMethods(untyped("tools/call"), (_call, next) => next()), sentence('["tools/call"]')],
  [() => onlyMethods(["tools/call"], untyped("audit")), sentence()],
  [() => onlyMethods([], audit), sentence()],
  ...([
    ["tool/call", "tools/call"],
    ["Tools/Call", "tools/call"],
    ["tools/calls", "tools/call"],
    ["tools.call", "tools/call"],
    ["toolsCall", "tools/call"],
    ["/tools/call", "tools/call"],
    ["tools/call ", "tools/call"],
    ["resource/read", "resources/read"],
    ["resources/template/list", "resources/templates/list"],
    ["subscription/listen", "subscriptions/listen"],
    ["Initialize", "initialize"],
  ] as const).map(([wrong, right]) =>
    [
      () => onlyMethods(["prompts/get", wrong], audit),
      sentence(JSON.stringify(wrong), right),
    ] as const
  ),
  ...["", "*", "tools", "tools/*", "all", "tools//get"].map((wrong) =>
    [
      () => onlyMethods([wrong], audit),
      sentence(JSON.stringify(wrong), "tools/call"),
    ] as const
  ),
  [() => group("g", untyped(undefined)), sentence('group "g"', "handlers")],
  [() => createServer(about).handlers.enable({ tag: "admin" }, untyped(null)), sentence("callers")],
  [() => createServer(about).listChanged("tools", { to: untyped("ada") }), sentence("to", '"ada"')],
  [() => createServer(about).log.info("x", { to: untyped("ada") }), sentence("to", '"ada"')],
];

Deno.test("an option of the wrong type is refused with a remedy", () => {
  for (const [make, message] of MISTAKES) assertThrows(make, TypeError, message);
  createServer({ ...about, cors: "none" });
  createServer({ ...about, cors: { origins: "*" } });
  createServer({ ...about, cors: () => false });
});
