// The route of the script that registers tools in a page, and the script with a page that is a fake. browser_test.ts runs
// the script in a real browser.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { createServer, mount, type Server, tool } from "../../mod.ts";
import { apiKey } from "../../src/auth/auth.ts";
import { confirm } from "../../src/layers/layers.ts";
import { webMcp, type WebMcpModule, type WebMcpOptions, type WebMcpRegisterOptions } from "../../src/web/web.ts";
import { sentence } from "../support/messages.ts";
import { toRequest } from "../support/requests.ts";
import { testServer } from "../support/test_server.ts";
import { onDeno } from "../support/on_deno.ts";

const ORIGIN = "https://app.example.com";
const HOST = "mcp.example.com";
const KEY = "key-of-ada-123456";
const [ARGS, TEXT] = [
  { type: "object", properties: { text: { type: "string" } } },
  "</script><img src=x onerror=alert(1)>",
];

const reads = { readOnlyHint: true };

let runs: string[] = [];
const run = (name: string) => () => (runs.push(name), TEXT);

interface Options {
  readonly web?: WebMcpOptions;
  readonly credentials?: boolean;
  readonly path?: string;
  readonly routes?: boolean;
}

function create({ web, credentials = false, path = "/mcp", routes = true }: Options = {}): Server {
  runs = [];
  return testServer({
    path,
    hosts: [HOST],
    observer: {},
    cors: { origins: [ORIGIN], credentials },
    auth: apiKey({ keys: { ada: KEY, bob: "key-of-bob-123456" }, cookie: "session" }),
    handlers: [
      tool({ name: "read", description: TEXT, annotations: { ...reads, openWorldHint: false }, run: run("read") }),
      tool({ name: "write", title: "Write a note", input: ARGS, run: run("write") }),
      tool({ name: "clear", annotations: reads, use: [confirm("Clear?")], run: run("clear") }),
      tool({ name: "secret", allow: ({ principal }) => principal?.id === "apikey:ada", run: run("secret") }),
      tool({
        name: "ask",
        annotations: reads,
        run: async (_, ctx) => (await ctx.elicit("name", { message: "Name?", schema: ARGS })).action,
      }),
      tool({
        name: "region",
        annotations: reads,
        input: { type: "object", properties: { region: { type: "string", "x-mcp-header": "Region" } } },
        run: (input: { region?: string }) => `${input.region}`,
      }),
      tool({ name: "broken", annotations: reads, run: () => Promise.reject(new Error("x")) }),
    ],
    ...routes ? { routes: [webMcp(web)] } : {},
  });
}

function load(server: Pick<Server, "fetch">, headers: Record<string, string> = {}, init: RequestInit = {}) {
  const { path = "/webmcp.js", host = HOST, ...rest } = headers;
  return server.fetch(new Request(`https://${host}${path}`, { headers: { host, ...rest }, ...init }));
}

Deno.test("the script is served to the server's own pages and to the origins in cors, and is the same for every user", async () => {
  const server = create();
  const own = await load(server);
  const text = await own.text();
  assertEquals(own.status, 200);
  assertEquals(Object.fromEntries(own.headers), {
    "cache-control": "no-cache",
    "content-type": "text/javascript; charset=utf-8",
    "cross-origin-resource-policy": "same-origin",
    etag: own.headers.get("etag") ?? "",
    vary: "origin",
    "x-content-type-options": "nosniff",
  });
  const foreign = await load(server, { origin: ORIGIN, authorization: `Bearer ${KEY}`, cookie: `session=${KEY}` });
  assertEquals([foreign.status, foreign.headers.get("access-control-allow-origin")], [200, ORIGIN]);
  assertEquals(foreign.headers.get("access-control-allow-credentials"), null);
  assertEquals([await foreign.text(), foreign.headers.get("etag")], [text, own.headers.get("etag")]);
  assertEquals(["read", "write", "secret", KEY, TEXT].filter((each) => text.includes(`"${each}"`)), []);
  assert(!/\beval\b|\bFunction\(|innerHTML|document\.write/.test(text));
  const same = await load(server, { origin: `https://${HOST}` });
  assertEquals([same.status, same.headers.get("access-control-allow-origin")], [200, null]);
  await same.body?.cancel();
  const again = await load(server, { "if-none-match": own.headers.get("etag") ?? "" });
  assertEquals([again.status, await again.text(), again.headers.get("vary")], [304, "", "origin"]);
  const head = await load(server, {}, { method: "HEAD" });
  assertEquals([head.status, await head.text(), head.headers.get("etag")], [200, "", own.headers.get("etag")]);
});

const FOREIGN = [
  "null",
  "https://evil.com",
  "https://app.example.com.evil.com",
  "https://evil.com/app.example.com",
  "https://evilapp.example.com",
  "https://x.app.example.com",
  "https://app.example.com:8443",
  "http://app.example.com",
  "https://app.example.com@evil.com",
  "https://app.example.com, https://evil.com",
  "https://app.example.com%2eevil.com",
  "https://mcp.example.com.evil.com",
  "file://",
  "*",
];

Deno.test("no other page gets the script, or calls a tool with the user's cookie or token", async () => {
  const server = create({ credentials: true });
  for (const origin of FOREIGN) {
    const script = await load(server, { origin });
    assertEquals([origin, script.status, script.headers.get("access-control-allow-origin")], [origin, 403, null]);
    assert(!(await script.text()).includes("register"));
    for (const [name, value] of [["cookie", `session=${KEY}`], ["authorization", `Bearer ${KEY}`]]) {
      const called = await call(server, { origin, [name]: value });
      assertEquals([origin, called.status, called.headers.get("access-control-allow-origin")], [origin, 403, null]);
    }
    const preflight = await load(server, { path: "/mcp", origin, "access-control-request-method": "POST" }, {
      method: "OPTIONS",
    });
    assertEquals([preflight.ok, preflight.headers.get("access-control-allow-origin")], [false, null]);
  }
  for (const host of ["evil.com", "mcp.example.com.evil.com"]) {
    assertEquals((await load(server, { host })).status, 403);
    assertEquals((await load(server, { host, origin: `https://${host}` })).status, 403);
    assertEquals((await call(server, { host, origin: `https://${host}`, cookie: `session=${KEY}` })).status, 403);
  }
  assertEquals(runs, []);
  assertEquals((await call(server, { origin: ORIGIN, cookie: `session=${KEY}` })).status, 200);
  assertEquals(runs, ["write"]);
});

Deno.test("the route accepts no other method, and no credentials in the URL", async () => {
  const server = create();
  for (const method of ["POST", "PUT", "DELETE", "OPTIONS"]) {
    const { status, headers } = await load(server, { origin: ORIGIN }, { method });
    assertEquals([status, headers.get("allow"), headers.get("access-control-allow-methods")], [405, "GET, HEAD", null]);
  }
  assertEquals(
    (await call(server, { origin: ORIGIN, path: `/mcp?access_token=${KEY}&token=${KEY}&session=${KEY}` })).status,
    401,
  );
  assertEquals(runs, []);
});

/** Calls `write` as a page would do without the script. */
async function call(server: Server, headers: Record<string, string>): Promise<Response> {
  const { path = "/mcp", host = HOST, ...rest } = headers;
  const request = toRequest("tools/call", { name: "write" }, { host, ...rest });
  return await server.fetch(new Request(`https://${host}${path}`, request));
}

/** A tool as the model context of a page gets it. */
interface PageTool {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly annotations: Record<string, boolean>;
}

interface PageContext extends EventTarget {
  getTools(): Promise<readonly PageTool[]>;
  executeTool(tool: { readonly name: string }, input: object, options?: { signal?: AbortSignal }): Promise<string>;
}

interface Page {
  readonly document: { readonly modelContext: PageContext };
  /** The texts that `window.confirm` has shown. */
  readonly confirmed: string[];
  readonly requests: { readonly url: string; readonly init: RequestInit }[];
  /** Loads the script that the server serves. */
  load(): Promise<WebMcpModule["register"]>;
  /** Loads the script, and registers the tools. */
  register: WebMcpModule["register"];
  /** Calls a tool as an agent. Returns the result, or the message of the error. */
  use(name: string, input?: object): Promise<unknown>;
}

/** Runs a test with the globals of a page, and with a `fetch` that sends the page's Origin to the server. */
async function inPage(
  server: Pick<Server, "fetch">,
  test: (page: Page) => Promise<void>,
  answer = true,
): Promise<void> {
  const confirmed: string[] = [];
  const requests: { readonly url: string; readonly init: RequestInit }[] = [];
  const page = { document: {} as Page["document"] }; // The cast is safe, because the script sets the model context.
  const globals: Record<string, unknown> = {
    document: page.document,
    isSecureContext: true,
    location: { origin: ORIGIN },
    window: {},
    confirm: (text: string) => (confirmed.push(text), answer),
    fetch: async (url: string, init: RequestInit) => {
      requests.push({ url, init });
      const headers = { host: HOST, origin: ORIGIN, ...Object(init.headers) };
      return await server.fetch(new Request(url, { ...init, headers }));
    },
  };
  const before = Object.keys(globals).map((name) => [name, Object.getOwnPropertyDescriptor(globalThis, name)] as const);
  for (const [name, value] of Object.entries(globals)) {
    Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
  }
  try {
    const loadScript: Page["load"] = async () => {
      const text = await (await load(server)).text();
      const folder = await mkdtemp(`${tmpdir()}/mcp-web-`);
      try {
        await writeFile(`${folder}/webmcp.mjs`, text);
        return (await import(`file://${folder}/webmcp.mjs`)).register;
      } finally {
        await rm(folder, { recursive: true });
      }
    };
    await test({
      ...page,
      confirmed,
      requests,
      load: loadScript,
      register: async (...given) => await (await loadScript())(...given),
      use: (name, input = {}) =>
        page.document.modelContext.executeTool({ name }, input).then(
          (text) => JSON.parse(text),
          ({ message }) => message,
        ),
    });
  } finally {
    for (const [name, descriptor] of before) {
      if (descriptor) Object.defineProperty(globalThis, name, descriptor);
      else Reflect.deleteProperty(globalThis, name);
    }
  }
}

const url = `https://${HOST}/mcp`;
const options: WebMcpRegisterOptions = { url, token: () => KEY };

Deno.test("the script registers the tools that the user may see, and calls them as the user", async () => {
  await inPage(create(), async ({ document, confirmed, requests, register, use }) => {
    let key: string | undefined = "key-of-bob-123456";
    const registered = await register({ url, token: () => key });
    assertEquals(registered.isStandIn, true);
    const names = ["read", "write", "clear", "ask", "region", "broken"];
    assertEquals(registered.tools, names);
    const { modelContext } = document;
    const tools = await modelContext.getTools();
    assertEquals(tools.map(({ name }) => name), names);
    assertEquals(tools[0].description, TEXT);
    assertEquals([tools[1].title, tools[1].description], ["Write a note", "Write a note"]);
    assertEquals(tools.slice(0, 2).map(({ annotations }) => annotations), [
      { readOnlyHint: true, untrustedContentHint: false },
      { readOnlyHint: false, untrustedContentHint: true },
    ]);
    let changes = 0;
    modelContext.addEventListener("toolchange", () => changes++);
    key = KEY;
    await registered.update();
    assertEquals([registered.tools.at(-1), changes], ["secret", 1]);
    assertEquals(await use("read"), { content: [{ type: "text", text: TEXT }], isError: false });
    assertEquals([confirmed, runs], [[], ["read"]]);
    await use("write", { text: "a" });
    assertEquals(confirmed, ['An agent wants to use "Write a note":\n"text": "a"']);
    assertEquals(runs, ["read", "write"]);
    assertEquals(await use("clear"), { content: [{ type: "text", text: TEXT }], isError: false });
    assertEquals(confirmed.slice(1), ["Clear?"]);
    assertEquals(await use("ask"), { content: [{ type: "text", text: "cancel" }], isError: false });
    assertEquals(await use("region", { region: "eu" }), { content: [{ type: "text", text: "eu" }], isError: false });
    assertEquals(Object(await use("broken")).isError, true);
    for (const { url: address, init: { credentials, redirect, headers } } of requests) {
      assertEquals([address, credentials, redirect], [url, "omit", "error"]);
      assert(/^Bearer key-of-(ada|bob)-123456$/.test(Object(headers).authorization ?? ""));
    }
    key = undefined;
    assertEquals(await use("read"), sentence());
    await assertRejects(() => registered.update(), Error, "access token");
    registered.close();
    assertEquals([registered.tools, await modelContext.getTools()], [[], []]);
    assertEquals(await use("read"), "Tool not found");
  });
});

Deno.test("requests have no token if token() returns null or an empty text, as pages without TypeScript do", async () => {
  await inPage(create(), async ({ requests, register }) => {
    for (const none of [undefined, null, ""]) {
      await assertRejects(() => register({ url, token: () => none as undefined }), Error, "access token");
    }
    assertEquals(requests.map(({ init: { headers } }) => "authorization" in Object(headers)), [false, false, false]);
  });
});

Deno.test("a tool that changes something does not run without the user's consent", async () => {
  await inPage(create(), async ({ load, use }) => {
    const register = await load();
    const registered = await register(options);
    const text = "write did not run: the user declined. Do not call write again unless the user asks.";
    assertEquals(await use("write"), { content: [{ type: "text", text }], isError: true });
    assertEquals(Object(await use("clear")).isError, true);
    registered.close();
    const seen: unknown[] = [];
    // A value that is not `true` counts as no, such as a forgotten `return`.
    await register({ ...options, confirm: (request) => (seen.push(request), "yes" as unknown as boolean) });
    await use("write", { text: "a" });
    await use("clear");
    assertEquals(seen, [
      { name: "write", title: "Write a note", arguments: { text: "a" }, question: undefined },
      { name: "clear", title: "clear", arguments: {}, question: "Clear?" },
    ]);
    assertEquals(runs, []);
  }, false);
});

/** Returns a server whose JSON responses to calls are event streams, as those of slow calls. */
function toStreaming(server: Server, write: (json: string) => string): Pick<Server, "fetch"> {
  return {
    async fetch(request, info) {
      const response = await server.fetch(request, info);
      if (request.headers.get("mcp-method") !== "tools/call") return response;
      return new Response(write(await response.text()), { headers: { "content-type": "text/event-stream" } });
    },
  };
}

Deno.test("the script reads results from event streams, whatever the results contain", async () => {
  const texts = ["a\u2028b", "\u2029data: {}", "a\n\ndata: b\r\n\r\nc", "\u0085", "\ufeff", "data: x", "👋"];
  const say = tool({ name: "say", annotations: { readOnlyHint: true }, run: () => texts.join("|") });
  const server = testServer({ handlers: [say], routes: [webMcp()], hosts: [HOST], cors: { origins: [ORIGIN] } });
  const own = { name: "own", version: "1.0.0" };
  const other = JSON.stringify({ jsonrpc: "2.0", method: "notifications/message", params: own });
  const writes: readonly ((json: string) => string)[] = [
    (json) => `data: ${json}\n\n`,
    (json) => `: comment\n\nid: 1\r\ndata: ${other}\r\n\r\nevent: message\r\ndata:${json}\r\n\r\n`,
    (json) => `id: 1\ndata:\n\ndata: ${json.replace(",", ",\ndata: ")}\n\n`,
  ];
  for (const write of writes) {
    await inPage(toStreaming(server, write), async ({ register, use }) => {
      await register({ url });
      assertEquals(await use("say"), { content: [{ type: "text", text: texts.join("|") }], isError: false });
    });
  }
});

Deno.test("an agent gets an error for a response of a proxy that is not JSON-RPC", async () => {
  const server = create();
  for (const text of ["null", "5", "[]", "{}", "<html>", ""]) {
    const fetch: Server["fetch"] = async (request, info) =>
      request.method === "POST" ? new Response(text, { status: 502 }) : await server.fetch(request, info);
    await inPage({ fetch }, async ({ register }) => {
      assertEquals((await assertRejects(() => register(options), Error)).message, sentence("502"));
    });
  }
});

Deno.test("a list and a call end with an error if the server has always another page or question", async () => {
  const server = create();
  const pages = { resultType: "complete", tools: [], nextCursor: "more" };
  const tools = [{ name: "read", inputSchema: { type: "object" }, annotations: { readOnlyHint: true } }];
  const cases = [
    { "tools/list": pages },
    { "tools/list": { resultType: "complete", tools }, "tools/call": { resultType: "input_required" } },
  ];
  for (const results of cases) {
    const fetch: Server["fetch"] = async (request, info) => {
      if (request.method !== "POST") return await server.fetch(request, info);
      const { id, method } = await request.json();
      return Response.json({ jsonrpc: "2.0", id, result: Object(results)[method] });
    };
    await inPage({ fetch }, async ({ register, requests, use }) => {
      const rejected = await register(options).then(() => use("read"), ({ message }) => message);
      assertEquals(rejected, sentence());
      assertEquals(requests.length, "tools/call" in results ? 33 : 32);
    });
  }
});

Deno.test("a page gets an error for unusable options, and for a server that it cannot reach", async () => {
  const server = create();
  await inPage(server, async ({ load }) => {
    const register = await load();
    const wrong: object[] = [{ tokn: () => KEY }, { token: KEY }, { cookies: "yes" }, { confirm: true }, {
      toString: () => KEY,
    }];
    for (const each of wrong) {
      const error = await assertRejects(() => register({ url, ...each } as WebMcpRegisterOptions), TypeError);
      assertEquals(error.message, sentence(Object.keys(each)[0]));
    }
  });
  const fetch: Server["fetch"] = async (request, info) => {
    if (request.method === "POST") throw new TypeError("Failed to fetch");
    return await server.fetch(request, info);
  };
  await inPage({ fetch }, async ({ load }) => {
    const register = await load();
    for (const cookies of [false, true]) {
      const error = await assertRejects(() => register({ url, cookies }), Error);
      assertEquals(error.message, sentence(url, cookies ? "cookies" : "cors"));
    }
  });
});

Deno.test("an agent cannot hide arguments from the user", async () => {
  await inPage(create(), async ({ confirmed, register, use }) => {
    await register(options);
    const hides: readonly object[] = [
      { text: "x".repeat(5000), to: "eve" },
      { ["x".repeat(5000)]: 1, to: "eve" },
      { text: "a\u202e\u2066b\u200b\ufeff\u{e0041}\u2028\u2800", to: "eve" },
      { text: "\n".repeat(500), to: "eve" },
      { pad: Array.from({ length: 5000 }, () => 0), to: "eve" },
      Object.fromEntries([...Array.from({ length: 19 }, (_, at) => [`p${at}`, "x".repeat(500)]), ["to", "eve"]]),
    ];
    for (const input of hides) {
      await use("write", input);
      const shown = confirmed.at(-1) ?? "";
      assert(shown.includes('"to": "eve"') && shown.length < 1600, shown);
      assertEquals(shown.split("\n").length, Object.keys(input).length + 1);
      assert(/^[\x20-\x7e\n…]*$/.test(shown), JSON.stringify(shown));
    }
    assert(confirmed[0].includes('… (5010 characters)\n"to": "eve"'), confirmed[0]);
    const count = confirmed.length;
    runs = [];
    const many = Object.fromEntries(Array.from({ length: 5000 }, (_, at) => [`p${at}`, 1]));
    assertEquals(await use("write", { ...many, to: "eve" }), sentence("write"));
    assertEquals([confirmed.length, runs], [count, []]);
  });
});

Deno.test("a tool gets the arguments that the user has seen", async () => {
  await inPage(create(), async ({ requests, register, use }) => {
    const input = { text: "seen", list: ["seen"] };
    const confirm = () => {
      input.text = input.list[0] = "unseen";
      return true;
    };
    await register({ ...options, confirm });
    await use("write", input);
    assertEquals(JSON.parse(String(requests.at(-1)?.init.body)).params.arguments, { text: "seen", list: ["seen"] });
  });
});

Deno.test("a page has no tools of a user who has signed out", async () => {
  await inPage(create(), async ({ document, load }) => {
    let key: string | undefined = KEY;
    const registered = await (await load())({ url, token: () => key });
    assert(registered.tools.includes("secret"));
    key = undefined;
    assertEquals((await assertRejects(() => registered.update(), Error)).message, sentence());
    assertEquals([registered.tools, await document.modelContext.getTools()], [[], []]);
    key = "key-of-bob-123456";
    await registered.update();
    assertEquals([registered.tools.includes("read"), registered.tools.includes("secret")], [true, false]);
  });
});

Deno.test("the script uses the browser's model context, and reports tools that it does not accept", async () => {
  const server = create({ web: { tools: ["read", "write", "secret", "</script>"] } });
  await inPage(server, async ({ document, load }) => {
    const taken: string[] = [];
    const registerTool = ({ name }: PageTool) =>
      name === "write" ? Promise.reject(new Error("Invalid tool name")) : Promise.resolve(void taken.push(name));
    Object.assign(document, { modelContext: { registerTool } });
    const warnings: string[] = [];
    const registered = await (await load())({ ...options, onWarning: (message) => void warnings.push(message) });
    assertEquals([registered.isStandIn, registered.tools, taken], [false, ["read", "secret"], ["read", "secret"]]);
    assertEquals(warnings, ['Cannot register the tool "write": Invalid tool name']);
  });
});

Deno.test("the script finds the endpoint next to itself, also behind a prefix, and otherwise requires a URL", async () => {
  const toEndpoint = async (served: Pick<Server, "fetch">, path: string, base: string) => {
    const [, relative] = /^const ENDPOINT=(\S+?),TOOLS=/.exec(await (await load(served, { path })).text()) ?? [];
    return relative === "undefined" ? undefined : new URL(JSON.parse(relative), base).href;
  };
  const first = create();
  assertEquals(await toEndpoint(first, "/webmcp.js", `https://${HOST}/tools/webmcp.js`), `https://${HOST}/tools/mcp`);
  const second = create({ web: { path: "/a/b/w.js" }, path: "/a/mcp" });
  assertEquals(await toEndpoint(second, "/a/b/w.js", `https://${HOST}/a/b/w.js`), `https://${HOST}/a/mcp`);
  const third = create({ path: "/:tenant/mcp" });
  assertEquals(await toEndpoint(third, "/webmcp.js", url), undefined);
  const servers = ["/one/mcp", "/two/mcp"].map((path, at) =>
    createServer({ name: `s${at}`, version: "1.0.0", path, hosts: [HOST], cors: { origins: [ORIGIN] } })
  );
  await using mounted = mount(servers, { routes: [webMcp()] });
  assertEquals(await toEndpoint(mounted, "/webmcp.js", url), undefined);
  assertEquals((await load(mounted, { origin: ORIGIN })).headers.get("access-control-allow-origin"), ORIGIN);
  assertEquals((await load(mounted, { origin: "https://evil.com" })).status, 403);
  await inPage(mounted, async ({ register }) => {
    assertEquals((await assertRejects(() => register(), TypeError)).message, sentence("url"));
  });
});

Deno.test("the script registers nothing in a page without https", async () => {
  await inPage(create(), async ({ document, register }) => {
    Object.defineProperty(globalThis, "isSecureContext", { value: false, configurable: true });
    assertEquals((await assertRejects(() => register(options), Error)).message, sentence());
    assertEquals(document, {} as Page["document"]);
  });
});

Deno.test("webMcp() throws for unusable options", () => {
  const wrong: object[] = [{ path: "webmcp.js" }, { path: "/a b" }, { tools: "read" }, { origins: [ORIGIN] }, {
    token: "x",
  }];
  for (const options of wrong) assertEquals(assertThrows(() => webMcp(options), TypeError).message, sentence());
});

// the bundler and the files are Deno's
onDeno("the committed bundle of the script is current, and has at most 9 KiB", async () => {
  const { SCRIPT, bundleScript } = await import("../release/webmcp_script.ts");
  try {
    const text = await Deno.readTextFile(SCRIPT);
    assert(text === await bundleScript(), "the bundle is not current; run `deno task web:script`");
    assert(new TextEncoder().encode(text).length <= 9216, `${text.length} characters`);
  } finally {
    await (await import("esbuild")).stop();
  }
});
