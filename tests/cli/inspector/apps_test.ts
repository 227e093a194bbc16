// Apps in the inspector: what an app can do in its frame, and attempts to escape from the frame.
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { respond } from "../../../src/cli/inspector/sandbox.ts";
import { until } from "../../support/behaviour.ts";
import { sentence } from "../../support/messages.ts";
import { type Opened, test } from "./browser.ts";

const local = { remoteAddr: { transport: "tcp", hostname: "127.0.0.1", port: 1 } };

function visit(path: string, host = "127.0.0.1:3001", method = "GET"): Response {
  return respond(new Request(`http://${host}${path}`, { method, headers: { host } }), local);
}

Deno.test("the frame for apps is served only to this machine, and only to pages of this machine", () => {
  assertEquals(visit("/").status, 200);
  for (const host of ["evil.example", "192.168.1.2:3000", "127.0.0.1.evil.example"]) {
    assertEquals(visit("/", host).status, 403);
  }
  assertEquals([visit("/a").status, visit("/", undefined, "POST").status], [404, 404]);
  const policy = visit("/").headers.get("content-security-policy") ?? "";
  assertStringIncludes(policy, "frame-ancestors http://127.0.0.1:* http://localhost:*");
});

const policies: readonly [csp: unknown, changed: Readonly<Record<string, string>>][] = [
  [{}, {}],
  [{ connectDomains: ["https://a.example", "wss://a.example"] }, {
    "connect-src": "https://a.example wss://a.example",
  }],
  [{ resourceDomains: ["https://*.a.example"] }, {
    "script-src": "'self' 'unsafe-inline' https://*.a.example",
    "style-src": "'self' 'unsafe-inline' https://*.a.example",
    "img-src": "'self' data: https://*.a.example",
    "media-src": "'self' data: https://*.a.example",
    "font-src": "https://*.a.example",
  }],
  [{ frameDomains: ["https://a.example"], baseUriDomains: ["https://b.example"] }, {
    "frame-src": "https://a.example",
    "base-uri": "https://b.example",
  }],
  [{ connectDomains: ["*", "https:", "a; connect-src *", "'unsafe-eval'", "https://a\nb", 1, null] }, {}],
  [{ connectDomains: "https://a.example", unknownDomains: ["https://a.example"] }, {}],
  [[], {}],
  [null, {}],
];

Deno.test("an app's content security policy is the default policy, plus only the declared origins", () => {
  const standard = {
    "default-src": "'none'",
    "script-src": "'self' 'unsafe-inline'",
    "style-src": "'self' 'unsafe-inline'",
    "img-src": "'self' data:",
    "media-src": "'self' data:",
    "font-src": "'none'",
    "connect-src": "'none'",
    "frame-src": "'none'",
    "base-uri": "'none'",
    "object-src": "'none'",
    "form-action": "'none'",
    "frame-ancestors": "http://127.0.0.1:* http://localhost:*",
  };
  const read = (csp: string) => {
    const policy = visit(`/?csp=${encodeURIComponent(csp)}`).headers.get("content-security-policy") ?? "";
    return Object.fromEntries(
      policy.split("; ").map((rule) => [rule.split(" ")[0], rule.split(" ").slice(1).join(" ")]),
    );
  };
  for (const [csp, changed] of policies) assertEquals(read(JSON.stringify(csp)), { ...standard, ...changed });
  assertEquals(read("{"), standard);
});

// The following tests run in a browser.

const file = "tests/cli/inspector/apps_server.ts";

/** Returns the app that the page shows. */
function findApp({ panel }: Opened) {
  return panel.frameLocator("iframe.app").frameLocator("iframe");
}

async function call(opened: Opened, name: string): Promise<void> {
  await opened.choose(name);
  await opened.press("Call");
  await opened.readResult("Done");
}

/** Returns the requests that reached the server, and the requests that reached the second server. */
async function readSeen(opened: Opened): Promise<unknown> {
  await call(opened, "what_happened");
  const text = await opened.panel.locator("pre.code").first().innerText();
  return JSON.parse(text);
}

test("an app gets its input and its result, and responses to its requests", async (opened, step) => {
  const { page, panel } = opened;
  await opened.choose("good");
  await panel.getByLabel("city").fill("Bern");
  await call(opened, "good");
  const app = findApp(opened);
  await app.getByText("done true").waitFor();

  await step("the app gets its input, its result and responses", async () => {
    const lines = await app.locator("li").allInnerTexts();
    assertEquals(lines, [
      'input {"city":"Bern"}',
      'result {"content":[{"type":"text","text":"Good."}],"structuredContent":{"city":"Bern"},"_meta":' +
      '{"io.modelcontextprotocol/serverInfo":{"name":"apps","version":"1.0.0"},"own":1}}',
      'host ["inspector","good","inline"]',
      'theme ["light","light"]',
      'own tool {"a":1,"isFor":"apps"}',
      `model tool {"code":-32000,"message":"${sentence("app")}"}`,
      `unknown tool {"code":-32602,"message":"${sentence("unknown")}"}`,
      'resource "some data"',
      lines[8],
      'mode "inline"',
      "message undefined",
      "context undefined",
      "link undefined",
      `script link {"code":-32000,"message":"${sentence()}"}`,
      `unknown method {"code":-32601,"message":"${sentence("tools/list")}"}`,
      "late 1",
      "done true",
    ]);
    assert(/^missing resource \{"code":-32(002|602),/.test(lines[8]), lines[8]);
  });

  await step("the page shows the app's messages", async () => {
    assertEquals(await panel.locator("iframe.app").getAttribute("height"), "321");
    assertEquals(
      await panel.getByRole("link", { name: "https://example.com/a?b" }).getAttribute("rel"),
      "noopener noreferrer",
    );
    await panel.getByText("Messages of the app").click();
    const messages = await panel.getByLabel("Messages of the app").locator("summary .method").allInnerTexts();
    assertEquals(messages.slice(0, 5), [
      "ui/initialize",
      "result",
      "ui/notifications/initialized",
      "ui/notifications/tool-input",
      "ui/notifications/tool-result",
    ]);
    for (
      const method of ["tools/call", "resources/read", "ui/message", "ui/update-model-context", "notifications/message"]
    ) {
      assert(messages.includes(method), method);
    }
    await panel.getByLabel("Messages of the app").getByText("ui/message").click();
    await panel.getByLabel("Messages of the app").locator("pre").getByText("Hello").waitFor();
    assertEquals(await page.title(), "apps · Inspector");
  });

  await step("an app is shown again when its panel is shown again", async () => {
    await opened.choose("note");
    assertEquals(await page.locator("iframe:visible").count(), 0);
    await opened.choose("good");
    await app.getByText("done true").waitFor();
    assertEquals(await app.getByText(/^result/).count(), 1);
  });

  await step("the page notifies an app before removing the app", async () => {
    await panel.getByRole("button", { name: "Close app" }).click();
    assertStringIncludes(await panel.locator(".nothing").innerText(), sentence());
    assertEquals(await panel.locator("iframe").count(), 0);
    assertEquals(await readSeen(opened), { hits: [], seen: ["teardown"], called: [] });
  });
}, { file });

test("an app cannot leave its frame, load a resource, or send messages for another window", async (opened) => {
  const { page, panel } = opened;
  await call(opened, "hostile");
  const app = findApp(opened);
  await app.getByText("done true").waitFor({ timeout: 40_000 });
  const lines = await app.locator("li").allInnerTexts();
  const found = Object.fromEntries(lines.map((line) => [line.split(" ")[0], line.split(" ").slice(1).join(" ")]));
  const isRefused = (text: string) => /^(refused|undefined|nothing|null|false|loaded$)/.test(text);
  // The return value of sendBeacon does not show that the browser refused the request.
  const { origin, frame, inner, beacon: _beacon, ...others } = found;
  assertEquals(origin, "null null");
  // The browser loads such frames empty. The requests compared below show that nothing was loaded.
  assert(isRefused(frame) && isRefused(inner), `${frame}, ${inner}`);
  for (const [name, text] of Object.entries(others)) {
    if (name === "done") continue;
    assert(isRefused(text) && text !== "loaded", `${name}: ${text}`);
  }
  assertEquals(Object.keys(found).length, 26, lines.join("\n"));
  assertEquals([new URL(page.url()).origin, await page.title(), page.context().pages().length], [
    new URL(opened.url).origin,
    "apps · Inspector",
    1,
  ]);
  assertEquals(await panel.locator("iframe.app").count(), 1);
  assertEquals(await readSeen(opened), { hits: [], seen: [], called: [] });
  // The browser logs each violation of the policy, and must log no other error.
  const isBreach = (text: string) =>
    /policy|Policy|sandboxed|SecurityError|cross-origin|Refused|Unsafe|blocked/i.test(text);
  assertEquals(opened.takeProblems().filter((text) => !isBreach(text)), []);
}, { file });

test("an app that replaces its document sends no request", async (opened) => {
  for (const name of ["refresh", "location", "form", "link"]) {
    await call(opened, name);
    await until(() => opened.problems.some((text) => /frame-src|form-action/.test(text)), `${name} is refused`);
    assertEquals(opened.takeProblems().filter((text) => !/policy|Policy|blocked/.test(text)), [], name);
    assertEquals(await opened.page.title(), "apps · Inspector");
  }
  assertEquals(await readSeen(opened), { hits: [], seen: [], called: [] });
  opened.takeProblems();
}, { file });

test("the page ends an app that floods it with messages", async (opened) => {
  for (const name of ["flood", "large"]) {
    await call(opened, name);
    assertStringIncludes(await opened.panel.locator(".nothing").innerText(), sentence());
    assertEquals(await opened.panel.locator("iframe").count(), 0);
  }
}, { file });

test(
  "declared origins are permitted, permissions are denied, and an invalid origin permits nothing",
  async (opened) => {
    const { panel } = opened;
    await call(opened, "open");
    await findApp(opened).getByText("loaded refused").waitFor();
    const facts = await panel.locator("p").filter({ hasText: "connectDomains" }).innerText();
    assertStringIncludes(facts, sentence("connectDomains: http://127.0.0.1:", "camera"));
    await call(opened, "loose");
    await findApp(opened).getByText("refused").waitFor();
    await call(opened, "plain");
    assertStringIncludes(await panel.locator(".nothing").innerText(), sentence("text/html;profile=mcp-app"));
    await call(opened, "missing");
    await panel.getByText("ui://missing").first().waitFor();
    await panel.locator(".error").waitFor();
    await call(opened, "web");
    assertEquals(await panel.getByRole("heading", { name: "App" }).count(), 0);
    assertEquals(await readSeen(opened), { hits: ["GET /declared"], seen: [], called: [] });
    assertEquals(opened.takeProblems().filter((text) => !/policy|Policy/.test(text)), []);
  },
  { file },
);

for (const revision of ["2026-07-28", "2025-11-25"]) {
  test(`the page declares apps in ${revision}`, async (opened) => {
    const { page, panel } = opened;
    if (revision !== "2026-07-28") {
      await page.getByRole("button", { name: "Connection" }).click();
      await page.getByRole("dialog").getByLabel("Protocol revision").selectOption(revision);
      await opened.answer("Connect");
      await page.getByText("Listening", { exact: true }).first().waitFor();
    }
    const read = async () => {
      await call(opened, "declared");
      return JSON.parse(await panel.locator("pre.code").first().innerText()).extensions;
    };
    const ui = { "io.modelcontextprotocol/ui": { mimeTypes: ["text/html;profile=mcp-app"] } };
    const tasks = { "io.modelcontextprotocol/tasks": {} };
    assertEquals(await read(), { ...tasks, ...ui });
    await call(opened, "good");
    await findApp(opened).getByText("done true").waitFor();
    // In a session, the client declares its capabilities only once, so the next checks apply only to 2026-07-28.
    if (revision !== "2026-07-28") return;
    await opened.turn("Server");
    await panel.getByLabel("Apps").uncheck();
    await opened.turn("Tools");
    assertEquals(await read(), tasks);
  }, { file });
}

test("the page shows apps on Bun", async (opened) => {
  await call(opened, "good");
  await findApp(opened).getByText("done true").waitFor();
}, { file, runtime: "bun" });
