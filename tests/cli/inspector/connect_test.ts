// The inspector page with other servers, by URL, by command and with tokens, and the requests that its relay refuses.
import { assert, assertEquals, assertMatch, assertNotMatch, assertStringIncludes } from "@std/assert";
import { createServer, tool } from "../../../mod.ts";
import { createInspector, FaultBook } from "../../../src/cli/inspector/inspector.ts";
import { connect } from "../../../src/client/client.ts";
import { listEndpoints } from "../../../src/host.ts";
import { forgetModern } from "../servers.ts";
import { programs, readAlert, test } from "./browser.ts";
import server from "./remote.ts";
import { sentence } from "../../support/messages.ts";
import { root, run, start } from "../../support/processes.ts";
import { until } from "../../support/behaviour.ts";
import { assertRefused } from "../refused.ts";

const ignore = typeof Deno === "undefined"; // Only Deno runs the servers and starts the processes of these tests.
const local = { remoteAddr: { transport: "tcp", hostname: "127.0.0.1", port: 1 } };
const given = { name: "a command", target: { command: "must-not-be-started" } };

interface Asked {
  readonly path?: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string | undefined>>;
  readonly body?: string;
}

/** Returns a request with the headers that the page sends, except for the given headers. */
function toRequest(key: string, { path = "connect", method = "POST", headers = {}, body = "{}" }: Asked): Request {
  const all = {
    host: "127.0.0.1:3000",
    origin: "http://127.0.0.1:3000",
    "content-type": "application/json",
    "x-inspector-key": key,
    ...headers,
  };
  const list = Object.entries(all).flatMap(([name, value]): [string, string][] =>
    value === undefined ? [] : [[name, value]]
  );
  const host = all.host ?? "127.0.0.1:3000";
  return new Request(`http://${host}/-/inspector/${path}`, {
    method,
    headers: list,
    body: method === "POST" ? body : undefined,
  });
}

/** Returns the number of processes whose command line contains a word. */
async function countProcesses(word: string): Promise<number> {
  let count = 0;
  for await (const { name } of Deno.readDir("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const words = await Deno.readTextFile(`/proc/${name}/cmdline`).catch(() => "");
    if (words.split("\0").includes(word)) count++;
  }
  return count;
}

async function readEvents(response: Response | undefined): Promise<readonly Record<string, unknown>[]> {
  const text = await response?.text() ?? "";
  return [...text.matchAll(/^data: (.*)$/gm)].map(([, data]) => JSON.parse(data));
}

Deno.test("the relay accepts only requests with its key, its origin and a loopback host", async () => {
  const inspector = await createInspector({ endpoint: "/mcp", server: given });
  assertMatch(inspector.key, /^[\da-f]{64}$/);
  const ask = async (asked: Asked, info: object = local) => {
    const response = await inspector.respond(toRequest(inspector.key, asked), info);
    const status = response?.status;
    await response?.body?.cancel();
    return status;
  };
  assertEquals(await ask({ path: "nothing" }), 404);
  const refused: readonly Asked[] = [
    { headers: { "x-inspector-key": undefined } },
    { headers: { "x-inspector-key": "" } },
    { headers: { "x-inspector-key": inspector.key.replace(/^./, (first) => first === "0" ? "1" : "0") } },
    { headers: { "x-inspector-key": `${inspector.key}0` } },
    { headers: { origin: undefined } },
    { headers: { origin: "null" } },
    { headers: { origin: "http://127.0.0.1:3001" } },
    { headers: { origin: "https://evil.example" } },
    { headers: { origin: "http://evil.example", host: "evil.example" } },
    { headers: { origin: "http://evil.example:3000", host: "evil.example:3000" } },
    { headers: { "sec-fetch-site": "same-site" } },
    { headers: { "sec-fetch-site": "cross-site" } },
    { headers: { "content-type": "text/plain" } },
    { method: "GET" },
    { method: "OPTIONS" },
  ];
  for (const asked of refused) {
    for (const path of ["connect", "send", "answer", "server", "x"]) {
      assertEquals(await ask({ ...asked, path }), 403, JSON.stringify([path, asked]));
    }
  }
  assertEquals(
    await ask({ headers: { host: "192.168.1.2:3000", origin: "http://192.168.1.2:3000" } }, {
      remoteAddr: { hostname: "192.168.1.9" },
    }),
    403,
  );
  // Each inspector has its own key, and the page contains no key.
  const other = await createInspector({ endpoint: "/mcp" });
  assert(other.key !== inspector.key);
  const page = await inspector.respond(
    new Request("http://127.0.0.1:3000/", { headers: { host: "127.0.0.1:3000" } }),
    local,
  );
  assertNotMatch(await page?.text() ?? "", new RegExp(inspector.key));
});

Deno.test("the relay starts no command from a request, and accepts only HTTP URLs", async () => {
  const inspector = await createInspector({ endpoint: "/mcp" });
  const connect = (body: unknown) => inspector.respond(toRequest(inspector.key, { body: JSON.stringify(body) }), local);
  for (
    const [body, names] of [
      [{}, []],
      [{ command: "touch", args: ["/tmp/never"] }, []],
      [{ target: { command: "touch" } }, []],
      [{ url: { command: "touch", args: [] } }, ["URL"]],
      [{ url: "touch" }, ["URL"]],
      [{ url: "file:///etc/passwd" }, ["http://", "https://"]],
      [{ url: "data:application/json,{}" }, ["http://", "https://"]],
      [{ url: "http://user:pass@127.0.0.1/" }, ["URL"]],
      [{ url: "http://127.0.0.1:1/", headers: { host: "other" } }, ["host"]],
      [{ url: "http://127.0.0.1:1/", headers: { "Mcp-Session-Id": "1" } }, ["Mcp-Session-Id"]],
      [{ url: "http://127.0.0.1:1/", headers: { a: "b\r\nc: d" } }, ["a"]],
      [{ url: "http://127.0.0.1:1/", headers: { "a\n": "b" } }, ["a\n"]],
    ] as const
  ) {
    const response = await connect(body);
    assertEquals(response?.status, 400, JSON.stringify(body));
    const { problem } = await response?.json();
    assertEquals(problem, sentence(...names));
  }
  const broken = await inspector.respond(toRequest(inspector.key, { body: "[1]" }), local);
  assertEquals(broken?.status, 400);
  await broken?.body?.cancel();
});

Deno.test("the relay does not reveal headers and messages to other origins", { ignore }, async () => {
  const seen: string[] = [];
  const thief = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen() {} }, (request) => {
    seen.push(request.method);
    return new Response();
  });
  const front = Deno.serve(
    { port: 0, hostname: "127.0.0.1", onListen() {} },
    () => new Response(null, { status: 307, headers: { location: `http://127.0.0.1:${thief.addr.port}/mcp` } }),
  );
  const inspector = await createInspector({ endpoint: "/mcp" });
  const body = JSON.stringify({
    url: `http://127.0.0.1:${front.addr.port}/mcp`,
    headers: { authorization: "Bearer secret" },
  });
  const events = await readEvents(await inspector.respond(toRequest(inspector.key, { body }), local));
  assertEquals(events.map(({ kind }) => kind), ["opening", "failed"]);
  assertEquals(events[1].message, sentence("127.0.0.1"));
  assertEquals(seen, []);
  await Promise.all([thief.shutdown(), front.shutdown()]);
});

Deno.test(
  "inspect --page serves the page for a URL, and the page does not contain the headers",
  { ignore },
  async () => {
    const seen: (string | null)[] = [];
    const other = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen() {} }, (request) => {
      seen.push(request.headers.get("authorization"));
      return server.fetch(request);
    });
    const address = `http://127.0.0.1:${other.addr.port}/mcp`;
    for (const program of Object.values(programs)) {
      const words = [...program, "inspect", address, "--page", "--header", "authorization=Bearer typed-secret"];
      await using running = await start(words);
      const [, origin, key] = await running.waitFor(/(http:\S+)\/#key=([\da-f]{64})/);
      const html = await (await fetch(`${origin}/`)).text();
      // Every user of this machine can read the page, so the page does not name the server.
      assert(!html.includes(address));
      assertNotMatch(html, /typed-secret/);
      assertEquals((await fetch(`${origin}/mcp`)).status, 404);
      const headers = { origin, "content-type": "application/json", "x-inspector-key": key };
      const named = await fetch(`${origin}/-/inspector/server`, { method: "POST", headers, body: "{}" });
      assertEquals(await named.json(), { name: address, hasHeaders: true });
      const response = await fetch(`${origin}/-/inspector/connect`, { method: "POST", headers, body: "{}" });
      let text = "";
      for await (const part of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
        text += part;
        if (text.includes(`"kind":"open"`)) break;
      }
      assertNotMatch(text, /typed-secret|failed/);
      assertEquals([...new Set(seen.splice(0))], ["Bearer typed-secret"]);
    }
    await other.shutdown();
  },
);

Deno.test("inspect --page rejects invalid options", { ignore }, async () => {
  for (
    const [words, names] of [
      [["inspect", "--page"], ["--page", "--"]],
      [["inspect", "server.ts", "--page"], ["server.ts", "FILE --http --inspect"]],
      [["inspect", "http://127.0.0.1:1/", "--page", "--json"], ["--json"]],
      [["inspect", "http://127.0.0.1:1/", "--page", "--", "x"], ["http://127.0.0.1:1/"]],
      [["--inspect", "--"], ["--"]],
      [["--inspect", "--host", "0.0.0.0", "--", "x"], ["0.0.0.0"]],
      [["inspect", "--page", "--header", "a=b", "--", "x"], ["x"]],
    ] as const
  ) await assertRefused(run([...programs.deno, ...words]), sentence(...names));
});

test("the page connects to a URL with a token that stays in the tab", async (opened) => {
  const { page, panel, url, choose, press, turn, readResult } = opened;
  const seen: (string | null)[] = [];
  await using other = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen() {} }, (request) => {
    seen.push(request.headers.get("authorization"));
    return server.fetch(request);
  });
  const address = `http://127.0.0.1:${other.addr.port}/mcp`;
  assertEquals(new URL(page.url()).hash.includes("key"), false);
  const dialog = page.getByRole("dialog");
  const open = () => page.getByRole("button", { name: "Connection", exact: true }).first().click();

  // The token for the page's own server must not be sent to another server.
  await open();
  await dialog.getByLabel("Token", { exact: true }).fill("own-secret-token");
  await dialog.getByRole("button", { name: "Connect", exact: true }).click();
  await page.getByText("Listening", { exact: true }).first().waitFor();
  await choose("who");
  await press("Call");
  assertStringIncludes(await readResult("Done"), `"Bearer own-secret-token"`);

  await open();
  assertEquals(await dialog.getByLabel("Token", { exact: true }).inputValue(), "own-secret-token");
  await dialog.getByLabel("Another server").check();
  assertEquals(await dialog.getByLabel("Token", { exact: true }).inputValue(), "");
  await dialog.getByRole("button", { name: "Connect", exact: true }).click();
  assertEquals(await readAlert(dialog), sentence("http://", "https://"));
  await dialog.getByLabel("URL of the server").fill(address);
  await dialog.getByLabel("Token", { exact: true }).fill("tömato");
  await dialog.getByRole("button", { name: "Connect", exact: true }).click();
  assertEquals(await readAlert(dialog), sentence());
  await dialog.getByLabel("Token", { exact: true }).fill("other-secret-token");
  assertEquals(await dialog.getByLabel("Token", { exact: true }).getAttribute("type"), "password");
  await dialog.getByRole("button", { name: "Add a header" }).click();
  await dialog.getByLabel("Value of a header", { exact: true }).fill("extra-value");
  for (const name of ["", "a b", "a:"]) {
    await dialog.getByLabel("Name of a header").fill(name);
    await dialog.getByRole("button", { name: "Connect", exact: true }).click();
    assertEquals(await readAlert(dialog), sentence());
    assertEquals(await dialog.getByLabel("Name of a header").evaluate((element) => element.matches(":focus")), true);
  }
  await dialog.getByLabel("Name of a header").fill("X-Extra");
  await dialog.getByLabel("Value of a header", { exact: true }).fill("extra-value");
  await dialog.getByRole("button", { name: "Connect", exact: true }).click();
  await page.getByRole("heading", { level: 1, name: "remote" }).waitFor();
  await page.getByText("Listening", { exact: true }).first().waitFor();
  await choose("who");
  await press("Call");
  const result = await readResult("Done");
  assertStringIncludes(result, `"Bearer other-secret-token"`);
  assertStringIncludes(result, `"extra-value"`);
  assertEquals([...new Set(seen)], ["Bearer other-secret-token"]);

  // The token is not in the URL, not in storage that survives the tab, and not in the log.
  const log = page.getByRole("region", { name: "Log" });
  await log.locator("summary").evaluateAll((all) => all.forEach((each) => each.click()));
  const text = await log.innerText();
  assertStringIncludes(text, "authorization: ••••••");
  assertStringIncludes(text, "Bearer ••••••");
  assertNotMatch(text, /secret-token|extra-value/);
  await log.getByLabel("Filter messages").fill("secret-token");
  assertEquals(await log.locator("li").filter({ visible: true }).count(), 0);
  assertNotMatch(page.url(), /secret|127\.0\.0\.1.*127\.0\.0\.1/);
  assertEquals(await page.evaluate("[localStorage.length, document.cookie]"), [0, ""]);
  const fresh = await page.context().newPage();
  await fresh.goto(url);
  assertEquals(await fresh.evaluate("sessionStorage.inspector.includes('secret')"), false);
  await fresh.close();

  // Stop a call, show progress, and answer a question.
  await choose("wait");
  await press("Call");
  await panel.getByText("1", { exact: true }).waitFor();
  await press("Stop");
  await readResult("Stopped");
  await choose("steps");
  await press("Call");
  assertMatch(await readResult("Done"), /1 of 2 · half[^]*on the way[^]*All done/);
  await choose("ask");
  await press("Call");
  await dialog.getByText("Who is there?").waitFor();
  await dialog.getByLabel("name").fill("Ada");
  await opened.answer("Accept");
  assertStringIncludes(await readResult("Done"), `{"name":"Ada"}`);

  // Connect to the page's own server again, and delete the token.
  await open();
  await dialog.getByLabel("This server").check();
  assertEquals(await dialog.getByLabel("Token", { exact: true }).inputValue(), "own-secret-token");
  await dialog.getByRole("button", { name: "Forget" }).click();
  assertEquals(await page.evaluate("sessionStorage.inspector.includes('secret')"), false);
  await dialog.getByRole("button", { name: "Connect", exact: true }).click();
  await page.getByText("Listening", { exact: true }).first().waitFor();
  await choose("who");
  await press("Call");
  assertStringIncludes(await readResult("Done"), `"authorization": null`);
  await turn("Prompts");
  assertEquals(await panel.locator(".side > p").filter({ hasText: "prompts" }).innerText(), sentence("prompts"));
}, { file: "tests/cli/inspector/remote.ts" });

test("the page connects to a server of an earlier revision, and handles the requests that the server sends", async (opened) => {
  const { page, choose, press, readResult } = opened;
  const old = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen() {} }, forgetModern(server.fetch));
  const dialog = page.getByRole("dialog");
  await page.getByRole("button", { name: "Connection", exact: true }).first().click();
  await dialog.getByLabel("URL of the server").fill("http://127.0.0.1:1/none");
  await dialog.getByRole("button", { name: "Connect", exact: true }).click();
  await page.getByText("Not connected").waitFor();
  const failure = await page.locator(".failure > .address").innerText();
  assertEquals(failure, sentence("http://127.0.0.1:1/none"));
  assertEquals(await page.getByText("Loading").filter({ visible: true }).count(), 0);
  await page.getByRole("button", { name: "Connection", exact: true }).last().click();
  await dialog.getByLabel("URL of the server").fill(`http://127.0.0.1:${old.addr.port}/mcp`);
  await dialog.getByRole("button", { name: "Connect", exact: true }).click();
  await page.getByText("Listening", { exact: true }).first().waitFor();
  await choose("ask");
  await press("Call");
  await dialog.getByLabel("name").fill("Ada");
  await opened.answer("Accept");
  assertStringIncludes(await readResult("Done"), `{"name":"Ada"}`);
  await press("Call");
  await dialog.getByText("Who is there?").waitFor();
  await opened.answer("Decline");
  assertStringIncludes(await readResult("Done"), "decline");
  await opened.turn("Server");
  await opened.panel.getByText("2025-11-25").first().waitFor();
  // When the page is closed, no stream to the server stays open.
  await page.goto("about:blank");
  // `shutdown` would never resolve while a stream is open.
  await old.shutdown();
});

test("the page connects to its own server in each protocol revision", async (opened) => {
  const { page, panel, choose, press, turn, readResult } = opened;
  const dialog = page.getByRole("dialog");
  for (const revision of ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]) {
    await page.getByRole("button", { name: "Connection", exact: true }).first().click();
    await dialog.getByLabel("Protocol revision").selectOption(revision);
    const loaded = page.waitForEvent("load");
    await dialog.getByRole("button", { name: "Connect", exact: true }).click();
    await loaded;
    await page.getByText("Listening", { exact: true }).first().waitFor();
    await turn("Server");
    await panel.locator("dd").getByText(revision).waitFor();
    await turn("Tools");
    await choose("steps");
    await press("Call");
    assertMatch(await readResult("Done"), /1 of 2[^]*All done/);
  }
  await page.getByRole("button", { name: "Connection", exact: true }).first().click();
  assertEquals(await dialog.getByLabel("Protocol revision").inputValue(), "2026-07-28");
}, { file: "tests/cli/inspector/remote.ts" });

for (const [runtime, program] of Object.entries(programs)) {
  const mark = crypto.randomUUID();
  const file = `${root}tests/cli/inspector/remote.ts`;
  const child = ["deno", "run", "-A", `${root}mod.ts`, "serve", file, "--stdio", "--", mark];
  test(`${runtime}: the page connects to the command after --, and ends its process`, async (opened) => {
    const { page, choose, press, readResult } = opened;
    assertEquals(await page.getByRole("heading", { level: 1 }).innerText(), "remote");
    await choose("steps");
    await press("Call");
    assertMatch(await readResult("Done"), /1 of 2 · half[^]*All done/);
    await choose("ask");
    await press("Call");
    await page.getByRole("dialog").getByLabel("name").fill("Ada");
    await opened.answer("Accept");
    assertStringIncludes(await readResult("Done"), `{"name":"Ada"}`);
    await page.getByRole("button", { name: "Connection", exact: true }).first().click();
    assertEquals(await page.getByRole("dialog").locator("p").filter({ visible: true }).innerText(), sentence());
    await page.getByRole("dialog").getByLabel("Protocol revision").selectOption("2025-06-18");
    const loaded = page.waitForEvent("load");
    await page.getByRole("dialog").getByRole("button", { name: "Connect", exact: true }).click();
    await loaded;
    // Click again until the tab is shown, because the page shows its first tab after it has connected, which may be
    // after a click.
    await until(async () => {
      await page.getByRole("tab", { name: "Server" }).click();
      return await opened.panel.locator("dd").getByText("2025-06-18").isVisible();
    }, "the page shows the revision");
    // A page that does not have the key cannot use the command.
    const fresh = await page.context().newPage();
    await fresh.goto(opened.url.replace(/#.*/, ""));
    assertEquals(await fresh.locator(".failure .error p").innerText(), sentence("#"));
    await fresh.close();
    // Two processes match: the inspector and its command. The command ends with the page.
    assertEquals(await countProcesses(mark), 2);
    await page.goto("about:blank");
    await until(async () => await countProcesses(mark) === 1, "the command has ended");
  }, { command: [...program, "--inspect", "--port", "0", "--", ...child], hasPort: true });
}

/** Creates a server that can send any response. */
function createFake(results: Readonly<Record<string, string>>): (request: Request) => Promise<Response> {
  return async (request) => {
    const { id, method } = await request.json();
    const result = results[method];
    const text = result === undefined
      ? JSON.stringify({ jsonrpc: "2.0", id, error: { code: -32601, message: "Method not found" } })
      : `{"jsonrpc":"2.0","id":${id},"result":${result}}`;
    return new Response(text, { headers: { "content-type": "application/json" } });
  };
}

// A script for the page that counts the elements that the page creates.
const COUNT_ELEMENTS = `
  globalThis.madeElements = 0;
  globalThis.originalCreateElement ??= document.createElement;
  document.createElement = function (...args) {
    globalThis.madeElements++;
    return globalThis.originalCreateElement.apply(document, args);
  };
`;

test("a hostile remote server can neither block the page nor run a regular expression in it", async (opened) => {
  const { page, panel, choose, press } = opened;
  const depth = 3000;
  const deep = `${`{"type":"object","required":["a"],"properties":{"a":`.repeat(depth)}{"type":"string"}${
    "}}".repeat(depth)
  }`;
  const wide = `{"type":"object","properties":{${
    Array.from({ length: 10_000 }, (_, at) =>
      `"f${at}":{"type":"string","pattern":"^(a+)+$","default":"${"a".repeat(40)}!"}`)
  }}}`;
  const long = `{"type":"object","properties":{"p":{"type":"string","pattern":"${
    "(a+)+".repeat(20_000)
  }","description":"${"word ".repeat(50_000)}"}}}`;
  const tools = Object.entries({ deep, wide, long }).map(([name, schema]) =>
    `{"name":"${name}","inputSchema":${schema}}`
  );
  const fake = createFake({
    "server/discover": `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`,
    "tools/list": `{"resultType":"complete","tools":[${tools}]}`,
    "tools/call": `{"resultType":"complete","content":[],"structuredContent":${"[".repeat(2000)}${"]".repeat(2000)}}`,
  });
  const other = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen() {} }, fake);
  await page.getByRole("button", { name: "Connection", exact: true }).first().click();
  await page.getByLabel("URL of the server").fill(`http://127.0.0.1:${other.addr.port}/mcp`);
  await page.getByRole("dialog").getByRole("button", { name: "Connect", exact: true }).click();
  await page.getByRole("tab", { name: "Tools 2" }).waitFor();
  // The page omits a schema that is nested too deeply, and logs a warning.
  await page.getByRole("region", { name: "Log" }).getByText(/^warning .*deep/).waitFor();
  for (const name of ["wide", "long"]) {
    await page.evaluate(COUNT_ELEMENTS);
    await choose(name);
    await panel.getByRole("heading", { name }).waitFor();
    await panel.getByText("Definition").click();
    await press("JSON");
    await press("Form");
    const made = Number(await page.evaluate("globalThis.madeElements"));
    assert(made < 20_000, `${name}: ${made} elements`);
    assert(await panel.locator("input, textarea, select").count() < 300, name);
    assertEquals(await panel.locator("[pattern]").count(), 0);
  }
  await press("Call");
  await opened.readResult("Done");
  await panel.getByText("Full result as JSON").click();
  await page.goto("about:blank");
  await other.shutdown();
}, { file: "tests/cli/inspector/remote.ts" });

Deno.test("the relay explains errors of its own server in development, and no other errors", async () => {
  const crash = tool({ name: "crash", run: () => Promise.reject(new RangeError("a secret")) });
  const options = { name: "s", version: "1.0.0", handlers: [crash], observer: { fault() {} } };
  for (const development of [undefined, false]) {
    const server = createServer({ ...options, development });
    const faults = new FaultBook();
    listEndpoints(server).forEach((each) => faults.watch(each));
    await server.ready();
    const inspector = await createInspector({ endpoint: "/mcp", faults });
    await using client = await connect(server);
    const ids: string[] = [];
    const fail = async () => {
      const { content: [block] } = await client.callTool("crash");
      const [, id = ""] = /^Internal error \((\w+)\)$/.exec(block.type === "text" ? block.text : "") ?? [];
      ids.push(id);
    };
    const find = async (id: unknown, headers = {}) => {
      const asked = { path: "fault", body: JSON.stringify({ id }), headers };
      return await (await inspector.respond(toRequest(inspector.key, asked), local))?.json();
    };
    await fail();
    const { text = "" } = await find(ids[0]);
    assertEquals(text.split("\n")[0], development === false ? "" : "RangeError: a secret");
    for (const id of ["00000000", "__proto__", undefined, 5]) assertEquals(await find(id), {});
    const { text: leaked, problem } = await find(ids[0], { "x-inspector-key": "wrong" });
    assertEquals([leaked, typeof problem], [undefined, "string"]);
    // The relay deletes the oldest errors.
    for (let i = 0; i < 100; i++) await fail();
    assertEquals(await find(ids[0]), {});
    assertEquals("text" in await find(ids[1]), development !== false);
    await inspector.close();
    await server.close();
  }
});
