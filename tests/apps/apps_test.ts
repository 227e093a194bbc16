// Apps on the server: their metadata, the mistakes that are refused, and the clients that can show apps.
import { assert, assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { group, tool } from "../../mod.ts";
import { app, type AppOptions, supportsApp, ui } from "../../src/extensions/apps/apps.ts";
import { getPage } from "../../src/extensions/apps/page.ts";
import { script } from "../../src/extensions/apps/bridge_script.ts";
import { clientExtension } from "../../src/client/client.ts";
import { listModules } from "../architecture/loaded_modules.ts";
import { behaviour, textOf } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";
import { serve } from "../support/test_server.ts";
import { onDeno } from "../support/on_deno.ts";

const ID = "io.modelcontextprotocol/ui";
const HTML = "text/html;profile=mcp-app";
const isDeno = typeof Deno !== "undefined";
const shows = { extensions: [clientExtension({ id: ID, settings: { mimeTypes: [HTML] } })] };

const html = "<!doctype html><html><head><title>Chart</title></head><body>…</body></html>";
const make = (options: Partial<AppOptions> = {}) => app({ uri: "ui://chart", html, ...options });
behaviour(
  "a tool names its app in both forms of metadata, and the resource carries the metadata for the host",
  async (connect, { era }) => {
    const csp = { connectDomains: ["https://api.example.com"], resourceDomains: ["https://*.example.com:8443"] };
    const chart = make({
      csp,
      permissions: { camera: {} },
      prefersBorder: true,
      domain: "a.example",
      title: "A chart",
    });
    const plain = app({ uri: "ui://desk/plain", html: "<p>Hello" });
    const { client } = await connect({
      handlers: [
        chart,
        plain,
        tool({ name: "draw", use: [ui(chart)], run: () => "Drawn." }),
        tool({
          name: "again",
          use: [ui(plain, { visibility: ["app"] })],
          _meta: { own: 1 },
          run: () => "Again.",
        }),
      ],
    }, shows);
    const tools = await client.listTools();
    assertEquals(tools.map(({ name, _meta }) => [name, _meta]), [
      ["draw", { ui: { resourceUri: "ui://chart" }, "ui/resourceUri": "ui://chart" }],
      ["again", {
        ui: { resourceUri: "ui://desk/plain", visibility: ["app"] },
        "ui/resourceUri": "ui://desk/plain",
        own: 1,
      }],
    ]);
    const _meta = { ui: { csp, permissions: { camera: {} }, domain: "a.example", prefersBorder: true } };
    const resources = await client.listResources();
    assertEquals(resources.map(({ uri, name, title, mimeType, _meta }) => ({ uri, name, title, mimeType, _meta })), [
      { uri: "ui://chart", name: "chart", title: "A chart", mimeType: HTML, _meta },
      { uri: "ui://desk/plain", name: "desk/plain", title: undefined, mimeType: HTML, _meta: undefined },
    ]);
    const [contents] = (await client.readResource("ui://chart")).contents;
    const text = html.replace("<head>", `<head><meta charset="utf-8"><script>${script}</script>`);
    assertEquals({ ...contents }, { uri: "ui://chart", mimeType: HTML, text, _meta });
    const described = era === "modern" ? await client.request("server/discover") : client.handshake;
    assertEquals(Object(described?.capabilities).extensions, { [ID]: {} });
    assertEquals(textOf(await client.callTool("draw")), "Drawn.");
  },
);

const declared: readonly [name: string, settings: Record<string, unknown> | undefined, isShown: boolean][] = [
  ["the media type", { mimeTypes: [HTML] }, true],
  ["other media types too", { mimeTypes: ["text/html", HTML] }, true],
  ["nothing", undefined, false],
  ["no media types", {}, false],
  ["another media type", { mimeTypes: ["text/html"] }, false],
  ["a text instead of a list", { mimeTypes: HTML }, false],
  ["a list in a list", { mimeTypes: [[HTML]] }, false],
  ["null", { mimeTypes: null }, false],
];

behaviour("supportsApp returns true only for clients that declare the media type of apps", async (connect) => {
  const chart = make();
  const draw = tool({ name: "draw", use: [ui(chart)], run: (_, ctx) => `${supportsApp(ctx, chart)}` });
  const { join } = await connect({ handlers: [chart, draw] });
  for (const [name, settings, isShown] of declared) {
    const client = await join(settings && { extensions: [clientExtension({ id: ID, settings })] });
    assertEquals(textOf(await client.callTool("draw")), `${isShown}`, name);
  }
});

Deno.test("a tool whose app is not served is refused when the server is created, and removing the app is refused too", () => {
  const chart = make();
  const draw = tool({ name: "draw", use: [ui(chart)], run: () => "" });
  const message = sentence("draw", ID, "ui://chart");
  assertThrows(() => serve(draw), TypeError, message);
  const server = serve(chart, draw);
  assertThrows(() => server.handlers.remove(chart), TypeError, message);
  server.handlers.remove(draw, chart);
  assertEquals(server.handlers.list(), []);
});

behaviour(
  "several apps share one extension, also in groups, and also while apps are added and removed",
  async (connect, { era }) => {
    const [first, second] = [make(), make({ uri: "ui://other" })];
    const draw = tool({ name: "draw", use: [ui(first)], run: () => "Drawn." });
    const grouped = group("outer", [
      group("inner", [second, tool({ name: "show", use: [ui(second)], run: () => "" })]),
    ]);
    const { client, server } = await connect({ handlers: [first, draw, grouped] });
    const read = async () => {
      const tools = await client.listTools();
      const { capabilities } = era === "modern" ? await client.request("server/discover") : {};
      return [tools.map(({ name }) => name), Object(capabilities).extensions];
    };
    const extensions = era === "modern" ? { [ID]: {} } : undefined;
    assertEquals(await read(), [["draw", "outer_inner_show"], extensions]);
    assertEquals(server.handlers.list().map(({ name }) => name), ["chart", "draw", "outer"]);
    server.handlers.remove(draw, first);
    assertEquals(await read(), [["outer_inner_show"], extensions]);
    server.handlers.remove(grouped);
    server.handlers.add(first);
    assertEquals(await read(), [[], extensions]);
    server.handlers.disable(first);
    assertEquals(await client.listResources(), []);
    server.handlers.remove(first);
    assertEquals(await read(), [[], era === "modern" ? undefined : extensions]);
  },
);

const wrong: readonly [name: string, options: unknown, message: string][] = [
  ["no document", { uri: "ui://a" }, sentence("ui://a", "html", "file")],
  ["two documents", { uri: "ui://a", html, file: "a.html" }, sentence("ui://a", "html", "file")],
  ["an empty document", { uri: "ui://a", html: " \n" }, sentence("ui://a")],
  ["null instead of a document", { uri: "ui://a", html: null }, sentence("ui://a")],
  ["a function instead of a document", { uri: "ui://a", html: () => html }, sentence("ui://a")],
  ["a promise instead of a file", { uri: "ui://a", file: Promise.resolve("a.html") }, sentence("ui://a", "file")],
  ["another scheme", { uri: "https://a", html }, sentence("uri", "ui://chart")],
  ["no URI", { html }, sentence("uri", "ui://chart")],
  ["a template", { uri: "ui://{a}", html }, sentence("uri", "ui://chart")],
  ["a space in its URI", { uri: "ui://a b", html }, sentence("uri", "ui://chart")],
  ["no name in its URI", { uri: "ui://", html }, sentence("uri", "ui://chart")],
  ["an unknown option", { uri: "ui://a", html, titel: "A" }, sentence("titel", "title")],
  ["a read function", { uri: "ui://a", html, read: () => html }, sentence("html", "file")],
  ["an unknown list of origins", { uri: "ui://a", html, csp: { connectDomain: [] } }, sentence("csp.connectDomain")],
  ["a list of permissions", { uri: "ui://a", html, permissions: ["camera"] }, sentence("permissions")],
  ["an unknown permission", { uri: "ui://a", html, permissions: { usb: {} } }, sentence("permissions.usb")],
  ["a permission that is true", { uri: "ui://a", html, permissions: { camera: true } }, sentence("permissions.camera")],
  ["an empty domain", { uri: "ui://a", html, domain: "" }, sentence("domain")],
];

for (const [name, options, message] of wrong) {
  Deno.test(`an app with ${name} is refused`, () => {
    // The types reject most of these mistakes too.
    assertThrows(() => app(options as AppOptions), TypeError, message);
  });
}

Deno.test("an origin consists of a scheme and a host, and contains no character that could end a directive", () => {
  const csp = (origin: unknown) => () => make({ csp: { connectDomains: [origin as string] } }); // The cast passes an invalid origin on purpose.
  const odd = [
    ..."example.com|https://|https://a.example/path|https://a.example/|https://a.example;script-src *".split("|"),
    ...[
      "https://a.example x",
      "*",
      "https:",
      "'unsafe-eval'",
      "data:",
      "https://*",
      "https://a.*",
      "https://a.example?b",
    ],
    ...[
      "https://a.example,https://b.example",
      "https://u@a.example",
      "blob:",
      "",
      "https://a.example\n",
      "javascript:a",
    ],
    ...[undefined, null, 1, {}],
  ];
  for (const origin of odd) assertThrows(csp(origin), TypeError, sentence("csp.connectDomains"));
  for (
    const origin of [
      "https://a.example",
      "wss://*.a.example:8443",
      "http://127.0.0.1:3000",
      "http://[::1]:8",
      "HTTPS://A",
    ]
  ) {
    csp(origin)();
  }
  // The cast passes a value of the wrong type on purpose.
  assertThrows(
    () => make({ csp: { frameDomains: "https://a.example" as never } }),
    TypeError,
    sentence("frameDomains"),
  );
});

const relative: readonly [html: string, found: string | undefined][] = [
  [`<script src="app.js"></script>`, `<script src="app.js">`],
  [
    `<title>A</title>\n\n<link rel=stylesheet href=/style.css>`,
    `<link href="/style.css">`,
  ],
  [`<img alt='a > b' SRC='//cdn.example/a.png'>`, `<img src="//cdn.example/a.png">`],
  [`<a href="page.html">`, `<a href="page.html">`],
  [`<a href="?a=b">`, `<a href="?a=b">`],
  [`<img/src=a.png>`, `<img src="a.png">`],
  [`<IMG\nSRC = "a.png" src="https://a.example/b.png">`, `<img src="a.png">`],
  [`<img srcset="https://a.example/a.png 1x, b.png 2x">`, `<img srcset="b.png 2x">`],
  [`<svg><use xlink:href="icons.svg#a"/></svg>`, `<use xlink:href="icons.svg#a">`],
  [`<video poster=a.jpg>`, `<video poster="a.jpg">`],
  [`<object data=a.svg>`, `<object data="a.svg">`],
  [`<form action="/send">`, `<form action="/send">`],
  [`<script>1 < 2</script ><img src=a>`, `<img src="a">`],
  [`<!-- <img> --!><img src=a>`, `<img src="a">`],
  [`<!--><img src=a>`, `<img src="a">`],
  [`<base href="sub/"><img src=a>`, `<base href="sub/">`],
  [`<base href="https://a.example/"><img src=a>`, undefined],
  [
    `<img src="https://a.example/a.png"><img src=data:,><a href="#top"><a href="mailto:a@b.example"><img src="">`,
    undefined,
  ],
  [`<!-- <img src=a> --><p>`, undefined],
  [`<script>const a = '<img src="a">';</script>`, undefined],
  [`<SCRIPT>"<img src=a>"</SCRIPT><style>/* <img src=a> */</style><textarea><img src=a></textarea>`, undefined],
  [`<p title="<img src=a>" data-src=a>1 < src=a`, undefined],
  [`<p></p src=">"><b`, undefined],
  [`<img src="a`, undefined],
];

for (const [html, found] of relative) {
  Deno.test(`a document with ${html.replaceAll("\n", " ")} is ${found ? "refused" : "accepted"}`, () => {
    if (found) assertThrows(() => make({ html }), TypeError, sentence(found));
    else make({ html });
  });
}

Deno.test("checking a long document with unclosed tags takes time in proportion to its length", () => {
  const start = performance.now();
  for (const part of ["<", "<a ", "<!--", `<a b="`, "<script>", "</script ", "<a b = ", "<img srcset=', '"]) {
    make({ html: `<p>${part.repeat(100_000)}` });
  }
  const ms = performance.now() - start;
  assert(ms < 20_000, `${ms} ms`);
});

const read = async (html: string) => {
  const contents = await make({ html }).read("ui://chart", {} as never); // The cast is safe, because the function does not use its context.
  return String(Object(contents)[0].text).replace(script, "");
};
const put = `<meta charset="utf-8"><script></script>`;

Deno.test("the bridge script is placed before all other scripts, after the declaration of the encoding", async () => {
  const cases: readonly [html: string, expected: string][] = [
    ["<p>Hello", `<!doctype html>${put}<p>Hello`],
    ["<!doctype html><p>Hello", `<!doctype html>${put}<p>Hello`],
    [`${"<!-- - -->\n".repeat(40)}<p>Hello`, `<!doctype html>${put}${"<!-- - -->\n".repeat(40)}<p>Hello`],
    ["\uFEFF<!DOCTYPE html>\n<html lang=de><body>", `<!DOCTYPE html>\n<html lang=de>${put}<body>`],
    ["<!-- <head> --><!doctype html><head><script>a", `<!-- <head> --><!doctype html><head>${put}<script>a`],
    [
      "<!doctype html><head><title><head></title><meta charset=utf-8><script>a",
      "<!doctype html><head><title><head></title><meta charset=utf-8><script></script><script>a",
    ],
    [
      "<!doctype html><script>a</script><meta charset=utf-8>",
      `<!doctype html>${put}<script>a</script><meta charset=utf-8>`,
    ],
    ["<!doctype html><header>$&", `<!doctype html>${put}<header>$&`],
  ];
  for (const [html, expected] of cases) assertEquals(await read(html), expected);
});

Deno.test("app() reads its file once, and throws if the file is missing, is not text, or refers to another file", () => {
  const folder = new URL("../../tests/apps/", import.meta.url);
  const file = new URL("chart.html", folder);
  // The cast is safe, because the function does not use its context.
  const [contents] = Object(app({ uri: "ui://chart", file }).read("ui://chart", {} as never));
  assertStringIncludes(contents.text, "<title>Chart</title>");
  assertEquals(Object(app({ uri: "ui://chart", file: file.pathname }).read("", {} as never))[0].text, contents.text);
  assertEquals(Object(app({ uri: "ui://chart", file: file.href }).read("", {} as never))[0].text, contents.text);
  for (const path of ["missing.html", "", "../../docs/guides/inspector.png"]) {
    const unreadable = new URL(path, folder);
    const { message } = assertThrows(() => app({ uri: "ui://chart", file: unreadable }), TypeError);
    // Compare the message without the runtime's error at its end.
    assertEquals(message.split(": ").slice(0, 2).join(": "), sentence("ui://chart", unreadable.href));
  }
  const relative = new URL("relative.html", folder);
  const names = ["ui://chart", `<script src="./chart.js">`];
  assertThrows(() => app({ uri: "ui://chart", file: relative }), TypeError, sentence(...names));
});

Deno.test("ui and supportsApp refuse a value that is not an app, and ui refuses an unknown visibility", () => {
  for (const odd of [undefined, null, {}, "ui://chart", { uri: () => "https://a" }, { uri: "ui://chart" }]) {
    assertThrows(() => ui(odd as never), TypeError, sentence("app()")); // The cast passes an invalid `visibility` on purpose.
    assertThrows(() => supportsApp({} as never, odd as never), TypeError, sentence("app()")); // The casts pass a value that is not an app on purpose.
  }
  for (const visibility of [[], ["user"], "app", [undefined], null]) {
    // The cast passes a value that is not an app on purpose.
    assertThrows(() => ui(make(), { visibility: visibility as never }), TypeError, sentence("visibility"));
  }
});

Deno.test("the apps entry throws in a page without the bridge script", () => {
  assertThrows(() => getPage(), Error, sentence("app()"));
});

// `deno info` lists the modules.
onDeno("a server without apps loads no module of the apps entry", async () => {
  const modules = await listModules("mod.ts");
  assertEquals(modules.filter((path) => path.startsWith("src/extensions/apps/")), []);
  assert((await listModules("src/extensions/apps/apps.ts")).includes("src/extensions/apps/document.ts"));
  assertEquals(await listModules("src/extensions/apps/page.ts"), ["src/extensions/apps/page.ts"]);
});

Deno.test({
  name: "the committed bundle of the apps script is current, and has at most 4 KiB",
  ignore: !isDeno, // the bundler and the files are Deno's
  // The process of the bundler ends only after the test.
  sanitizeOps: false,
  sanitizeResources: false,
  async fn() {
    const { BRIDGE, bundleBridge } = await import("../release/app_bridge.ts");
    try {
      const remedy = "the bundle is not current; run `deno task apps:bridge`";
      assert(await Deno.readTextFile(BRIDGE) === await bundleBridge(), remedy);
      assert(new TextEncoder().encode(script).length <= 4096, `${script.length} characters`);
    } finally {
      await (await import("esbuild")).stop();
    }
  },
});
