// Options of the wrong type are refused at run time, because programs may not be type-checked. An option that restricts
// access must not be ignored because its value has the wrong type.
import { assertMatch, assertStringIncludes, assertThrows } from "@std/assert";
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
import { oauth } from "../../src/auth/oauth/oauth.ts";
import { quota } from "../../src/quota/quota.ts";

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
  objects: ["guards"],
};

const FACTORIES: Readonly<Record<string, Typed>> = {
  "create a server": {
    make: (wrong) => createServer({ ...about, ...wrong }),
    lists: ["handlers", "use", "icons", "hosts", "proxies", "origins", "encoders"],
    functions: ["admit", "session", "mapError", "publishSchema"],
    objects: ["guards", "capabilities"],
  },
  'make tool "t"': {
    ...HANDLER,
    make: (wrong) => tool({ name: "t", run, ...wrong }),
    functions: [...HANDLER.functions, "forCaller"],
    objects: ["guards", "annotations"],
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
    lists: ["requires", "use", "tags", "scopes"],
    functions: [...HANDLER.functions, "list", "subscribe", "unsubscribe"],
  },
  'make group "g"': { make: (wrong) => group("g", [], wrong), lists: ["use", "tags"], functions: ["allow"] },
  'make service "s"': { make: (wrong) => service("s", run, wrong), lists: [], functions: ["dispose"] },
  "make limits": { make: (wrong) => quota(untyped(wrong)), lists: [], functions: [], objects: ["rate"] },
  "use oauth()": {
    make: (wrong) => oauth({ resource: "https://a.example/mcp", issuers: ["https://login.example"], ...wrong }),
    lists: ["algorithms"],
    functions: ["satisfies", "readScopes"],
  },
};

for (const [action, { make, lists, functions, objects = [] }] of Object.entries(FACTORIES)) {
  const check = (name: string, wrong: unknown, expected: RegExp) => {
    const { message } = assertThrows(() => make({ [name]: wrong }), TypeError);
    assertStringIncludes(message, name);
    assertMatch(message, expected);
    assertMatch(message, /^Cannot .*(:|;) /);
  };
  Deno.test(`${action}: every list, function and object option refuses a value of another type, and the error names the option`, () => {
    for (const name of lists) {
      for (const wrong of ["elicitation", { 0: run }, null, 5, true, run]) {
        if (wrong === null && NULLABLE.includes(name)) make({ [name]: wrong });
        else if (name !== "handlers" || wrong !== run) check(name, wrong, /(must be|is not) a list/);
      }
    }
    for (const name of functions) {
      for (const wrong of ["x", {}, null, true, false, 0, ["a"], Promise.resolve(true)]) {
        check(name, wrong, /it must be a function/);
      }
    }
    for (const name of objects) {
      for (const wrong of ["x", null, true, 5, [], run]) {
        if (wrong === null && NULLABLE.includes(name)) make({ [name]: wrong });
        else check(name, wrong, /it must be an object/);
      }
    }
  });
}

const MISTAKES: readonly (readonly [make: () => unknown, message: string])[] = [
  ...[true, "*", "https://a.example", null, [], {}, { origins: "https://a.example" }, { origins: true }].map((cors) =>
    [
      () => createServer({ ...about, cors: untyped(cors) }),
      'Cannot create a server: cors has no list of origins; set cors to { origins: ["https://app.example.com"] }, { origins: "*" }, a function or "none"',
    ] as const
  ),
  [
    () => createServer({ ...about, use: [untyped("logging")] }),
    'use contains "logging"; it must be a list of functions',
  ],
  [() => tool({ name: "t", use: [untyped(undefined)], run }), "use contains undefined; it must be a list of functions"],
  [() => createServer({ ...about, hosts: [untyped(5)] }), "hosts contains 5; it must be a list of strings"],
  [() => createServer({ ...about, guards: { input: untyped(run) } }), "guards.input is a function; it must be a list"],
  [() => tool({ name: "t", guards: { output: [untyped({})] }, run }), "guards.output contains an object; it must be a"],
  [() => tool({ name: "t", scopes: [untyped(5)], run }), "scopes is not a list of names without spaces"],
  [() => tool({ name: "t", scopes: untyped([["a"]]), run }), "scopes is not a list of names without spaces"],
  [() => createServer({ ...about, sessions: untyped("require") }), '"require"; it must be "optional" or "required"'],
  [() => createServer({ ...about, cacheScope: untyped("shared") }), '"shared"; it must be "public" or "private"'],
  [() => resource({ uri: "x://a", name: "a", cacheScope: untyped("shared"), read: run }), 'it must be "public" or'],
  [
    () => createServer({ ...about, capabilities: { logging: untyped(0) } }),
    "capabilities.logging is 0; it must be true",
  ],
  [
    () => createServer({ ...about, auth: untyped({ authenticate: true }) }),
    "auth.authenticate is true; it must be a fun",
  ],
  [
    () =>
      createServer({ ...about, auth: { authenticate: () => undefined, credentials: { headers: untyped("x-key") } } }),
    'auth.credentials.headers is "x-key"; it must be a list of strings',
  ],
  [() => quota({ rate: untyped({ calls: "5", perMs: 5 }) }), 'rate.calls is "5"; it must be a number'],
  ...[null, false, 0, ""].flatMap((none) => {
    const route = { name: "a", path: "/t/:tenant/mcp", version: "1.0.0", params: untyped(none) };
    const method = { "a/b": { params: untyped(none), run: () => ({}) } };
    return ([
      [() => tool({ name: "t", input: untyped(none), run }), 'the input schema of tool "t": it is not an object'],
      [() => tool(untyped({ name: "t", output: none, run })), 'the output schema of tool "t": it is not an object'],
      [() => prompt({ name: "p", input: untyped(none), run }), 'the input schema of prompt "p": it is not an object'],
      [() => resource({ uri: "x://{a}", name: "a", params: untyped(none), read: run }), "it is not an object"],
      [() => createServer(route), "the input schema of path /t/:tenant/mcp: it is not an object"],
      [() => extension({ id: "com.example/a", methods: method }), "the input schema of a/b of extension"],
      [() => tool({ name: "t", quota: untyped(none), run }), "quota is not a quota; create it with quota()"],
      [
        () => tool({ name: "t", extensions: untyped(none), run }),
        "extensions is not a list of attributes; create each attribute with extension.attribute()",
      ],
      [
        () => createServer({ ...about, store: untyped(none) }),
        "store is not a store; create a store with a function from",
      ],
      [() => createServer({ ...about, auth: untyped(none) }), "auth"],
      [() => createServer({ ...about, limits: untyped(none) }), "Cannot set limits: limits is not an object"],
      [() => createServer({ ...about, observer: untyped(none) }), "observer is"],
    ] as const);
  }),
  [
    () => onlyMethods(untyped("tools/call"), (_call, next) => next()),
    'the methods are not a list of strings; use a list such as ["tools/call"]',
  ],
  [() => onlyMethods(["tools/call"], untyped("audit")), "the middleware is not a function"],
  [
    () => onlyMethods([], audit),
    "the list is empty, so the middleware would never run; name a method, or omit the middleware",
  ],
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
      `${JSON.stringify(wrong)} is not a method; did you mean ${right}?`,
    ] as const
  ),
  ...["", "*", "tools", "tools/*", "all", "tools//get"].map((wrong) =>
    [
      () => onlyMethods([wrong], audit),
      `${JSON.stringify(wrong)} is not a method; use names such as tools/call`,
    ] as const
  ),
  [() => group("g", untyped(undefined)), "handlers must be a list; write it in brackets"],
  [
    () => createServer(about).handlers.enable({ tag: "admin" }, untyped(null)),
    "callers is not a function; omit callers to select all callers",
  ],
  [() => createServer(about).listChanged("tools", { to: untyped("ada") }), 'to is "ada"; it must be a function'],
  [() => createServer(about).log.info("x", { to: untyped("ada") }), 'to is "ada"; it must be a function'],
];

Deno.test("an option of the wrong type is refused with a remedy", () => {
  for (const [make, message] of MISTAKES) assertStringIncludes(assertThrows(make, TypeError).message, message);
  createServer({ ...about, cors: "none" });
  createServer({ ...about, cors: { origins: "*" } });
  createServer({ ...about, cors: () => false });
});
