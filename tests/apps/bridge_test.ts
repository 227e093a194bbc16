// The script that `app()` inserts into a page, in a real browser, with a host that can send any message.
import { assert, assertEquals } from "@std/assert";
import { app } from "../../src/extensions/apps/apps.ts";
import { launchBrowser, missing } from "../support/chromium.ts";
import { sentence } from "../support/messages.ts";
import { needs, requireAll } from "../support/required.ts";

const isDeno = typeof Deno !== "undefined"; // Only Deno starts the browser.

const toHtml = (body: string): string => {
  const read = app({ uri: "ui://a", html: `<!doctype html><title>An app</title><body>${body}</body>` }).read(
    "",
    {} as never,
  ); // The cast is safe, because the function does not use its context.
  return Object(read)[0].text;
};

/**
 * Runs an app in a page. `respond` is the source code of a function that acts as the host. Its parameters are the app's
 * message and `post`, which sends a message to the app. Returns the values that the app passed to `tell`, followed by
 * the app's messages.
 */
async function show(script: string, respond: string): Promise<{ told: unknown[]; sent: Record<string, unknown>[] }> {
  requireAll(missing);
  await using browser = await launchBrowser();
  const { page } = browser;
  const html = toHtml(`<script>
    const told = [];
    const tell = (...words) => told.push(words.length > 1 ? words : words[0]);
    const end = () => parent.postMessage({ told }, "*");
    ${script}
  </script>`);
  await page.setContent(`<!doctype html><body><script>
    const sent = [];
    globalThis.ended = new Promise((resolve) => {
      const respond = ${respond};
      const frame = document.createElement("iframe");
      const post = (message) => frame.contentWindow.postMessage({ jsonrpc: "2.0", ...message }, "*");
      addEventListener("message", ({ source, data }) => {
        if (source !== frame.contentWindow) return;
        if (data.told) return resolve({ told: data.told, sent });
        sent.push(data);
        respond(data, post, frame);
      });
      frame.sandbox = "allow-scripts";
      frame.srcdoc = ${JSON.stringify(html).replaceAll("<", "\\u003c")};
      document.body.append(frame);
    });
  </script>`);
  return await page.evaluate("ended");
}

function bridge(name: string, fn: () => Promise<void>): void {
  Deno.test({ ...isDeno ? needs(name, missing) : { name, ignore: true }, fn });
}

/** Returns the source of a host that completes the handshake, and then runs `then`. */
const host = (then: string, context = "{}") =>
  `(message, post, frame) => {
    if (message.method === "ui/initialize") {
      post({ id: message.id, result: { protocolVersion: "2026-01-26", hostInfo: { name: "h", version: "1" }, hostContext: ${context} } });
    } else { ${then} }
  }`;

/** Returns the source of a host that runs `then` once the handshake is complete. */
const after = (then: string) => host(`if (message.method === "ui/notifications/initialized") { ${then} }`);

bridge(
  "an app starts the handshake after its scripts have run, and sends no request before the handshake",
  async () => {
    const { told, sent } = await show(
      `mcpApp.displayModes = ["inline", "fullscreen"];
    mcpApp.callTool("early", { a: 1 }).then(async (result) => {
      tell(result);
      tell((await mcpApp.ready).hostInfo.name, mcpApp.context.locale);
      end();
    });`,
      host(
        `if (message.method === "tools/call") post({ id: message.id, result: { structuredContent: { b: 2 } } })`,
        `{ locale: "de" }`,
      ),
    );
    assertEquals(told, [{ structuredContent: { b: 2 } }, ["h", "de"]]);
    const asked = sent.filter(({ method }) => method !== "ui/notifications/size-changed");
    assertEquals(asked, [
      {
        jsonrpc: "2.0",
        id: 1,
        method: "ui/initialize",
        params: {
          protocolVersion: "2026-01-26",
          appInfo: { name: "An app", version: "1.0.0" },
          appCapabilities: { availableDisplayModes: ["inline", "fullscreen"] },
        },
      },
      { jsonrpc: "2.0", method: "ui/notifications/initialized", params: {} },
      { jsonrpc: "2.0", id: 2, method: "tools/call", params: { name: "early", arguments: { a: 1 } } },
    ]);
  },
);

bridge("events arrive in order, and a listener that is added later gets the latest earlier event", async () => {
  const { told } = await show(
    `for (const name of ["partial", "input", "result", "cancelled"]) mcpApp.on(name, (value) => tell(name, value));
    const stop = mcpApp.on("partial", () => tell("stopped"));
    stop();
    mcpApp.on("input", () => { throw new Error("one listener fails"); });
    mcpApp.on("cancelled", () => {
      for (const name of ["partial", "input", "result"]) mcpApp.on(name, (value) => tell("late", name, value));
      mcpApp.on("result", () => setTimeout(end));
    });`,
    after(`
      post({ method: "ui/notifications/tool-input-partial", params: { arguments: { a: 1 } } });
      post({ method: "ui/notifications/tool-input-partial", params: { arguments: { a: 2 } } });
      post({ method: "ui/notifications/tool-input", params: { arguments: { a: 3 } } });
      post({ method: "ui/notifications/tool-result", params: { content: [] } });
      post({ method: "ui/notifications/unknown", params: {} });
      post({ method: "ui/notifications/tool-cancelled", params: { reason: "enough" } });`),
  );
  assertEquals(told, [
    ["partial", { a: 1 }],
    ["partial", { a: 2 }],
    ["input", { a: 3 }],
    ["result", { content: [] }],
    ["cancelled", "enough"],
    ["late", "input", { a: 3 }],
    ["late", "result", { content: [] }],
  ]);
});

bridge("the page gets the host's theme, variables and fonts, and their changes", async () => {
  const { told } = await show(
    `const read = () => {
      const { style, dataset } = document.documentElement;
      return [dataset.theme, style.colorScheme, style.getPropertyValue("--a"), style.getPropertyValue("--b"), document.querySelectorAll("head > style").length];
    };
    mcpApp.ready.then(() => tell(read()));
    mcpApp.on("result", () => { tell(read()); tell(mcpApp.context); end(); });`,
    host(
      `if (message.method === "ui/notifications/initialized") {
        post({ method: "ui/notifications/host-context-changed", params: { theme: "light", styles: { variables: { "--a": "2", "--b": null }, css: { fonts: "b {}" } } } });
        post({ method: "ui/notifications/tool-result", params: {} });
      }`,
      `{ theme: "dark", locale: "de", styles: { variables: { "--a": "1", "--b": "x" }, css: { fonts: "a {}" } } }`,
    ),
  );
  assertEquals(told.slice(0, 2), [["dark", "dark", "1", "x", 1], ["light", "light", "2", "", 1]]);
  assertEquals(Object(told[2]).locale, "de");
});

bridge("the app answers the host's requests, and the teardown waits until the page has saved its state", async () => {
  const { told, sent } = await show(
    `let tries = 0;
    mcpApp.on("teardown", async (reason) => {
      tell("teardown", reason);
      await mcpApp.callTool("save");
      tell("saved");
      if (tries++) throw new Error("not saved");
    });`,
    host(`
      if (message.method === "ui/notifications/initialized") {
        post({ id: "p", method: "ping" });
        post({ id: 0, method: "sampling/createMessage", params: {} });
        post({ id: "t", method: "ui/resource-teardown", params: { reason: "closed" } });
      }
      if (message.method === "tools/call") post({ id: message.id, result: {} });
      if (message.id === "t") post({ id: "u", method: "ui/resource-teardown" });
      if (message.id === "u") resolve({ told: [], sent });
    `),
  );
  assertEquals(told, []);
  const answers = sent.filter(({ method }) => method === undefined);
  assertEquals(answers, [
    { jsonrpc: "2.0", id: "p", result: {} },
    { jsonrpc: "2.0", id: 0, error: { code: -32601, message: sentence("sampling/createMessage") } },
    { jsonrpc: "2.0", id: "t", result: {} },
    { jsonrpc: "2.0", id: "u", error: { code: -32000, message: "Error: not saved" } },
  ]);
});

bridge("an error from the host keeps its code and data, also during the handshake", async () => {
  const { told } = await show(
    `mcpApp.readResource("test://a").catch(({ message, code, data }) => { tell(message, code, data); end(); });`,
    host(
      `if (message.method === "resources/read") post({ id: message.id, error: { code: -32602, message: "none", data: { a: 1 } } })`,
    ),
  );
  assertEquals(told, [["none", -32602, { a: 1 }]]);
  const refused = await show(
    `mcpApp.ready.catch(({ message }) => tell(message));
    mcpApp.callTool("a").catch(({ message }) => { tell(message); end(); });`,
    `(message, post) => post({ id: message.id, error: { code: -32000, message: "not you" } })`,
  );
  assertEquals(refused.told, ["not you", "not you"]);
  assertEquals(refused.sent.length, 1);
});

bridge("only JSON-RPC messages from the host's window are accepted", async () => {
  const { told } = await show(
    `const forged = { jsonrpc: "2.0", method: "ui/notifications/tool-result", params: { forged: true } };
    mcpApp.on("result", (result) => { tell(result); if (result.last) end(); });
    mcpApp.ready.then(() => {
      postMessage(forged, "*");
      const frame = document.createElement("iframe");
      frame.srcdoc = "<script>parent.postMessage(" + JSON.stringify(forged) + ", '*')<" + "/script>";
      frame.onload = () => mcpApp.request("go");
      document.body.append(frame);
    });`,
    host(`if (message.method === "go") {
      for (const odd of [null, 1, "a", [], {}, { method: "ui/notifications/tool-result", params: { odd: true } }]) frame.contentWindow.postMessage(odd, "*");
      post({ id: 99, result: { unknown: true } });
      post({ method: "ui/notifications/tool-result", params: { last: true } });
    }`),
  );
  assertEquals(told, [{ last: true }]);
});

bridge("the size of a page is sent only when it changes", async () => {
  const { sent } = await show(
    `document.body.style.margin = 0;
    document.body.style.height = "100px";
    mcpApp.on("result", () => document.body.style.height = "300px");
    mcpApp.on("cancelled", end);`,
    host(`
      if (message.method !== "ui/notifications/size-changed") return;
      if (message.params.height === 100) post({ method: "ui/notifications/tool-result", params: {} });
      if (message.params.height === 300) post({ method: "ui/notifications/tool-cancelled", params: {} });
    `),
  );
  const sizes = sent.filter(({ method }) => method === "ui/notifications/size-changed");
  assertEquals(sizes.map(({ params }) => Object(params).height), [100, 300]);
  assert(sizes.every(({ params }) => Object(params).width > 0));
});

bridge("a bundled page imports the same object, which throws in a page without a host", async () => {
  requireAll(missing);
  const { build, stop } = await import("esbuild");
  try {
    const { outputFiles: [output] } = await build({
      stdin: {
        contents: `import { getPage } from "./page.ts"; const page = getPage();
          page.ready.catch((error) => document.title = [page === mcpApp, error.message].join(": "));`,
        resolveDir: new URL("../../src/extensions/apps/", import.meta.url).pathname,
      },
      bundle: true,
      write: false,
      format: "iife",
      tsconfigRaw: {},
    });
    await using browser = await launchBrowser();
    await browser.page.setContent(toHtml(`<script>${output.text}</script>`));
    await browser.page.waitForFunction("document.title !== 'An app'");
    assertEquals(await browser.page.title(), `true: ${sentence()}`);
  } finally {
    await stop();
  }
});
