// The script of webMcp() in a real browser, with the browser's own model context and with the stand-in, and what a page
// of another origin can do with the user's cookie.
import { assert, assertEquals } from "@std/assert";
import { createServer, type Server, tool } from "../../mod.ts";
import { apiKey } from "../../src/auth/auth.ts";
import { serve, type Serving } from "../../src/server/serve.ts";
import { webMcp } from "../../src/web/web.ts";
import { type Browser, launchBrowser, missing } from "../support/chromium.ts";
import { needs, requireAll } from "../support/required.ts";

const isDeno = typeof Deno !== "undefined"; // Only Deno starts the browser.

const KEY = "key-of-ada-123456";
const HTML = "<img src=x onerror=document.title=1><script>document.title=2</script>";
/** The flag of Chromium 156 for the draft of WebMCP. */
const FLAG = "--enable-features=WebMCP";

let runs: string[] = [];

/** A site whose pages may import the script of one server, and connect to it. Strict, as a page that shows a token should be. */
function serveSite(main: () => string, server: () => string): Deno.HttpServer<Deno.NetAddr> {
  return Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: () => {} }, (request) => {
    const isScript = new URL(request.url).pathname === "/main.js";
    const policy = `default-src 'none'; script-src 'self' ${server()}; connect-src ${server()}; ` +
      "base-uri 'none'; require-trusted-types-for 'script'";
    return new Response(
      isScript ? main() : `<!doctype html><title>app</title><body><script type="module" src="/main.js"></script>`,
      { headers: { "content-type": isScript ? "text/javascript" : "text/html", "content-security-policy": policy } },
    );
  });
}

interface Opened extends AsyncDisposable {
  readonly browser: Browser;
  readonly served: Serving;
  readonly server: string;
  readonly app: string;
  readonly problems: readonly string[];
  /** Runs a function body in the page, and returns its result. */
  evaluate(body: string): Promise<unknown>;
}

async function open(flags: readonly string[], main: (server: string) => string): Promise<Opened> {
  requireAll(missing);
  runs = [];
  let origin = "";
  const site = serveSite(() => main(origin), () => origin);
  const app = `http://127.0.0.1:${site.addr.port}`;
  const server: Server = createServer({
    name: "notes",
    version: "1.0.0",
    cors: { origins: [app], credentials: true },
    auth: apiKey({ keys: { ada: KEY }, cookie: "session" }),
    routes: [webMcp()],
    handlers: [
      tool({
        name: "read",
        description: HTML,
        annotations: { readOnlyHint: true },
        run: () => ({ content: [{ type: "text", text: HTML }], structuredContent: { html: HTML } }),
      }),
      tool({
        name: "write",
        description: "Writes",
        input: { type: "object", properties: { text: { type: "string" } } },
        run: (input: { text?: string }, { principal }) => (runs.push(`${principal?.id} ${input.text}`), "Written."),
      }),
      tool({ name: "taken", description: "A name that the page has registered", run: () => "x" }),
    ],
  });
  const served = await serve(server, { port: 0, signals: false });
  origin = new URL(served.url).origin;
  const browser = await launchBrowser(undefined, flags);
  const { page } = browser;
  const problems: string[] = [];
  page.on("pageerror", (error) => problems.push(error.message));
  page.on("console", (message) => {
    if (message.type() === "error") problems.push(message.text());
  });
  return {
    browser,
    served,
    server: origin,
    app,
    problems,
    evaluate: (body) => page.evaluate(`(async () => { ${body} })()`),
    async [Symbol.asyncDispose]() {
      await browser[Symbol.asyncDispose]();
      await served.close();
      await site.shutdown();
    },
  };
}

function inBrowser(name: string, fn: () => Promise<void>): void {
  Deno.test({ ...isDeno ? needs(name, missing) : { name, ignore: true }, fn });
}

for (const [name, flags] of [["the stand-in", []], ["the browser's model context", [FLAG]]] as const) {
  inBrowser(`tools are registered in ${name}, and run as the user of the page`, async () => {
    await using opened = await open(flags, (server) =>
      `import { register } from "${server}/webmcp.js";
      globalThis.warnings = [];
      await document.modelContext?.registerTool({ name: "taken", description: "mine", execute: async () => 1 });
      globalThis.registered = register({ token: () => "${KEY}", onWarning: (text) => warnings.push(text) });`);
    const { browser: { page }, app, evaluate, problems } = opened;
    const asked: string[] = [];
    let answer = true;
    page.on("dialog", (dialog) => {
      asked.push(dialog.message());
      (answer ? dialog.accept() : dialog.dismiss()).catch(() => {});
    });
    await page.goto(app);
    const isStandIn = flags.length === 0;
    await page.waitForFunction("globalThis.registered");
    assertEquals(await evaluate("return (await registered).isStandIn"), isStandIn);
    const read = `const tools = await document.modelContext.getTools();
      const [read, write] = ["read", "write"].map((name) => tools.find((tool) => tool.name === name));`;
    const listed = await evaluate(`${read} return [read, write].map(({ name, description }) => [name, description])`);
    assertEquals(listed, [["read", HTML], ["write", "Writes"]]);
    const warnings = isStandIn ? [] : ['Cannot register the tool "taken": Duplicate tool name'];
    assertEquals(await evaluate("return warnings"), warnings);
    const result = await evaluate(`${read} return JSON.parse(await document.modelContext.executeTool(read, {}))`);
    const content = [{ type: "text", text: HTML }];
    assertEquals(result, { content, structuredContent: { html: HTML }, isError: false });
    const write = `${read} return document.modelContext.executeTool(write, { text: "a" })`;
    assert(String(await evaluate(write)).includes("Written."));
    answer = false;
    assertEquals(JSON.parse(String(await evaluate(write))).isError, true);
    assertEquals(runs, ["apikey:ada a"]);
    assertEquals(asked.length, 2);
    // Text of the server has not become HTML.
    assertEquals(await evaluate("return [document.title, document.images.length, document.scripts.length]"), [
      "app",
      0,
      1,
    ]);
    await evaluate("(await registered).close()");
    await page.waitForFunction(
      `document.modelContext.getTools().then((tools) => tools.every(({ description }) => description === "mine"))`,
    );
    assertEquals(problems, []);
  });
}

inBrowser("a page with the user's cookie uses the tools, and a page of another origin does not", async () => {
  await using opened = await open([], (server) =>
    `import { register } from "${server}/webmcp.js";
    globalThis.registered = register({ cookies: true, confirm: () => true });`);
  const { browser: { page, context }, app, server, evaluate, problems } = opened;
  await context.addCookies([{ name: "session", value: KEY, url: server, httpOnly: true, sameSite: "Lax" }]);
  await page.goto(app);
  const write = `await registered; return document.modelContext.executeTool({ name: "write" }, { text: "mine" })`;
  assert(String(await evaluate(write)).includes("Written."));
  assertEquals([runs, problems], [["apikey:ada mine"], []]);

  // A page of another port is of the same site, so the browser sends the cookie. Its policy allows everything.
  runs = [];
  await using evil = Deno.serve(
    { port: 0, hostname: "127.0.0.1", onListen: () => {} },
    () => new Response("<!doctype html><title>evil</title>", { headers: { "content-type": "text/html" } }),
  );
  await page.goto(`http://127.0.0.1:${evil.addr.port}`);
  const body = JSON.stringify({
    jsonrpc: "2.0",
    id: 1,
    method: "tools/call",
    params: {
      name: "write",
      arguments: { text: "evil" },
      _meta: {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
      },
    },
  });
  const headers = JSON.stringify({
    accept: "application/json, text/event-stream",
    "mcp-protocol-version": "2026-07-28",
    "mcp-method": "tools/call",
    "mcp-name": "write",
  });
  const attempts: Readonly<Record<string, string>> = {
    module: `import("${server}/webmcp.js")`,
    script: `new Promise((resolve, reject) => {
      const script = document.createElement("script");
      Object.assign(script, { src: "${server}/webmcp.js", onload: resolve, onerror: () => reject(new Error("no")) });
      document.head.append(script);
    })`,
    fetch: `fetch("${server}/mcp", { method: "POST", credentials: "include", body: ${JSON.stringify(body)},
      headers: { ...${headers}, "content-type": "application/json" } }).then((response) => response.text())`,
    list: `fetch("${server}/webmcp.js", { credentials: "include" }).then((response) => response.text())`,
  };
  for (const [name, code] of Object.entries(attempts)) {
    assertEquals([name, await evaluate(`return ${code}.then((value) => "read " + value, () => "refused")`)], [
      name,
      "refused",
    ]);
  }
  // These requests need no preflight, and have the cookie. The page cannot read the responses.
  await evaluate(
    `await fetch("${server}/mcp", { method: "POST", mode: "no-cors", credentials: "include", body: ${
      JSON.stringify(body)
    } });
    await fetch("${server}/mcp", { method: "POST", mode: "no-cors", credentials: "include",
      body: new Blob([${JSON.stringify(body)}], { type: "text/plain" }) });
    const form = document.createElement("form");
    Object.assign(form, { method: "POST", action: "${server}/mcp", enctype: "text/plain", target: "frame" });
    const field = document.createElement("input");
    [field.name, field.value] = [${JSON.stringify(body.slice(0, -1))}, "}"];
    const frame = document.createElement("iframe");
    frame.name = "frame";
    document.body.append(frame, form);
    form.append(field);
    const loaded = new Promise((resolve) => frame.addEventListener("load", resolve));
    form.submit();
    await loaded;`,
  );
  assertEquals(runs, []);
  // A page in a sandbox has the origin null.
  await evaluate(`const frame = document.createElement("iframe");
    Object.assign(frame, { sandbox: "allow-scripts", srcdoc: ${
    JSON.stringify(`<script>fetch("${server}/mcp", { method: "POST", mode: "no-cors", credentials: "include",
        body: "{}" }).finally(() => parent.postMessage(1, "*"))</script>`)
  } });
    const done = new Promise((resolve) => addEventListener("message", resolve, { once: true }));
    document.body.append(frame);
    await done;`);
  assertEquals(runs, []);
});
