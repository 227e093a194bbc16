// The inspector page: which clients can load it, and how a person uses it in a real browser.
import { assert, assertEquals, assertMatch, assertNotMatch, assertStringIncludes } from "@std/assert";
import { createInspector } from "../../../src/cli/inspector/inspector.ts";
import { findCut, findFaint, findNameless } from "./audit.ts";
import { programs, readAlert, test } from "./browser.ts";
import { sentence } from "../../support/messages.ts";
import { root, run } from "../../support/processes.ts";
import { assertRefused } from "../refused.ts";

const isDeno = typeof Deno !== "undefined";

// These tests need no browser.

const local = { remoteAddr: { transport: "tcp", hostname: "127.0.0.1", port: 1 } };

function visit(path = "/", headers: Record<string, string> = {}, method = "GET"): Request {
  const host = headers.host ?? "127.0.0.1:3000";
  return new Request(`http://${host}${path}`, { method, headers: { host, ...headers } });
}

Deno.test("the page is served only to loopback hosts and its own origin", async () => {
  const inspector = await createInspector({ endpoint: "/mcp" });
  const answer = (request: Request, info: object = local) => {
    const response = inspector.respond(request, info);
    return response instanceof Promise ? undefined : response;
  };
  const ask = (request: Request, info?: object) => answer(request, info)?.status;
  for (const host of ["127.0.0.1:3000", "localhost:3000", "[::1]:3000", "127.0.0.2"]) {
    assertEquals(ask(visit("/", { host })), 200, host);
  }
  for (const host of ["evil.example", "127.0.0.1.evil.example", "192.168.1.2:3000", "localhost.evil.example"]) {
    assertEquals(ask(visit("/", { host })), 403, host);
    // A request from another machine is refused too, even if its Host header names a host of the server.
    assertEquals(ask(visit("/", { host }), { remoteAddr: { hostname: "192.168.1.9" } }), 403, host);
  }
  assertEquals(ask(visit("/", { origin: "https://evil.example" })), 403);
  assertEquals(ask(visit("/", { origin: "http://127.0.0.1:3000" })), 200);
  assertEquals(ask(visit("/?a=b")), 200);
  assertEquals(ask(visit("/mcp")), undefined);
  assertEquals(ask(visit("//")), undefined);
  assertEquals(ask(visit("/index.html")), undefined);
  const posted = await inspector.respond(visit("/", {}, "POST"), local);
  const { error } = await posted?.json();
  assertEquals([posted?.status, error.message, error.data], [405, sentence("/mcp"), { endpoint: "/mcp" }]);
  const head = answer(visit("/", {}, "HEAD"));
  assertEquals([head?.status, await head?.text()], [200, ""]);
});

Deno.test("the page runs only its own script and style, loads no other resource and cannot be framed", async () => {
  const inspector = await createInspector({ endpoint: `/a"b</script><script>` });
  const response = await inspector.respond(visit(), local);
  const html = await response?.text() ?? "";
  const policy = response?.headers.get("content-security-policy") ?? "";
  const toHash = async (text: string) =>
    new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text))).toBase64();
  const scripts = [...html.matchAll(/<script>([^]*?)<\/script>/g)].map(([, text]) => text);
  const styles = [...html.matchAll(/<style>([^]*?)<\/style>/g)].map(([, text]) => text);
  assertEquals([scripts.length, styles.length], [1, 1]);
  assertStringIncludes(policy, `script-src 'sha256-${await toHash(scripts[0])}';`);
  assertStringIncludes(policy, `style-src 'sha256-${await toHash(styles[0])}';`);
  for (const rule of ["default-src 'none'", "connect-src 'self'", "base-uri 'none'", "form-action 'none'"]) {
    assertStringIncludes(policy, rule);
  }
  assertStringIncludes(policy, "frame-ancestors 'none'");
  assertStringIncludes(policy, "require-trusted-types-for 'script'; trusted-types 'none'");
  assertNotMatch(policy, /unsafe|https?:|\*/);
  // The page contains no URL, and no attribute that runs a script.
  assertNotMatch(html.replace(scripts[0], ""), /\b(src|href)="(?!data:,")|\son\w+=/);
  assertNotMatch(scripts[0], /innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function/);
});

// The bundler and the files are Deno's.
Deno.test("the committed bundle of the page is current", { ignore: !isDeno }, async () => {
  const { BUNDLE, bundlePage } = await import("../../release/inspector_page.ts");
  try {
    const remedy = "the bundle is not current; run `deno task inspector:page`";
    assert(await Deno.readTextFile(BUNDLE) === await bundlePage(), remedy);
    assertNotMatch(await Deno.readTextFile(BUNDLE), /registry\.|jsr\.io|npmjs/);
  } finally {
    await (await import("esbuild")).stop();
  }
});

Deno.test("--inspect requires HTTP, a loopback host and a separate path", { ignore: !isDeno }, async () => {
  for (const program of Object.values(programs)) {
    for (
      const [words, names] of [
        [["--inspect"], ["--inspect", "--http"]],
        [["--http", "--inspect", "--host", "0.0.0.0"], ["0.0.0.0", "--host"]],
        [["--http", "--inspect", "--path", "/"], [" /: ", "--path /mcp"]],
      ] as const
    ) await assertRefused(run([...program, ...words]), sentence(...names));
  }
});

// The following tests run in a browser.

test("the page shows a server, calls its tools and logs messages", async (opened, step) => {
  const { page, panel, choose, press, turn, readResult } = opened;

  await step("the page shows the server and its lists", async () => {
    assertEquals(await page.title(), "Inspected <b>server</b> · Inspector");
    assertEquals(await page.getByRole("heading", { level: 1 }).innerText(), "Inspected <b>server</b>");
    assertEquals(await panel.locator(".item .name").first().innerText(), "every_field");
    assertEquals(await page.getByRole("tab").allInnerTexts(), [
      "Tools 13",
      "Resources 3",
      "Prompts 1",
      "History",
      "Watch",
      "Server",
    ]);
    await turn("Server");
    assertMatch(await panel.innerText(), /Version\s+1\.2\.3[^]*2026-07-28[^]*Try everything/);
    await turn("Tools");
  });

  await step("a form has every kind of field", async () => {
    await choose("every_field");
    await panel.getByRole("textbox", { name: "text", exact: true }).fill("one");
    await page.keyboard.press("Shift+Enter");
    await page.keyboard.type("two");
    await panel.getByLabel("day", { exact: true }).fill("2026-02-03");
    await panel.getByLabel("count").fill("3");
    await panel.getByLabel("flag").check();
    await panel.getByLabel("maybe").selectOption("false");
    await panel.getByLabel("size").selectOption("Large");
    await panel.getByRole("group", { name: "days" }).getByLabel("Tue").check();
    await press("Add an item to tags");
    await page.keyboard.type("new");
    await press("Call");
    assertEquals(await panel.getByRole("alert").filter({ visible: true, hasText: /./ }).count(), 1);
    assertEquals(await panel.getByLabel("color").evaluate((element) => element.matches(":focus")), true);
    await panel.getByLabel("color").selectOption("blue");
    await panel.getByLabel("city").fill("Ulm");
    await page.keyboard.press("Control+Enter");
    await readResult("Done");
    const given = {
      text: "one\ntwo",
      day: "2026-02-03",
      count: 3,
      ratio: 0.5,
      flag: true,
      maybe: false,
      color: "blue",
      size: 2,
      days: ["Tue"],
      tags: ["new"],
      place: { city: "Ulm" },
      nothing: null,
    };
    assertEquals(JSON.parse(await panel.locator(".output pre").last().innerText()), { given });
    await press("JSON");
    assertEquals(JSON.parse(await panel.getByLabel("Arguments as JSON").inputValue()), given);
    await panel.getByLabel("Arguments as JSON").fill(JSON.stringify({ ...given, count: 99 }));
    await press("Call");
    assertMatch(await readResult("Tool error"), /count/);
    await panel.getByLabel("Arguments as JSON").fill(`{"count":7,"unknown":[1]}`);
    await press("Form");
    assertEquals(await panel.getByLabel("count").inputValue(), "7");
    await panel.locator("p.muted").filter({ hasText: "unknown" }).waitFor();
    await press("JSON");
    assertStringIncludes(await panel.getByLabel("Arguments as JSON").inputValue(), `"unknown": [`);
    await panel.getByLabel("Arguments as JSON").fill("[1]");
    await press("Call");
    assertEquals(await readAlert(panel), sentence("JSON"));
  });

  await step("an argument is sent in a header", async () => {
    await choose("repeated");
    await panel.getByLabel("region").fill("süd");
    await page.keyboard.press("Enter");
    assertStringIncludes(await readResult("Done"), "Header: =?base64?c8O8ZA==?=");
  });

  await step("progress and log messages are shown", async () => {
    await choose("steps");
    await page.evaluate(`{
      const options = { subtree: true, attributeFilter: ["value"], attributeOldValue: true };
      globalThis.seen = [];
      new MutationObserver((all) => seen.push(...all.map((each) => each.oldValue))).observe(document.body, options);
    }`);
    await press("Call");
    const result = await readResult("Done");
    assertEquals(await page.evaluate("seen"), [null, "1", "2", "3", "4"]);
    assertEquals(await panel.getByRole("progressbar", { name: "Progress" }).getAttribute("value"), "5");
    assertMatch(result, /5 of 5 · step 5[^]*info\s+Log of step 1[^]*error\s+Log of step 4[^]*All steps taken/);
    await turn("Server");
    await panel.getByLabel("Minimum log level").selectOption("error");
    await turn("Tools");
    await press("Call");
    assertNotMatch(await readResult("Done"), /Log of step 1/);
  });

  await step("a call can be stopped", async () => {
    await choose("endless");
    await press("Call");
    await panel.getByText("1", { exact: true }).waitFor();
    await press("Stop");
    await readResult("Stopped");
    await choose("how_often_stopped");
    await press("Call");
    assertMatch(await readResult("Done"), /\n1\n/);
  });

  await step("errors", async () => {
    await choose("refuse");
    await press("Call");
    assertStringIncludes(await readResult("Tool error"), "The cupboard is bare.");
    await choose("crash");
    await press("Call");
    const crashed = await readResult("Tool error");
    assertMatch(crashed, /Internal error \([0-9a-f]{8}\)/);
    // In development, the page also shows the error itself, which the response does not contain.
    await panel.getByRole("region", { name: "Why it failed" }).getByText("Error: A secret of the server").waitFor();
    assertMatch(await panel.innerText(), /server\.ts:\d+[^]*throw new Error\("A secret of the server"\);/);
    await page.locator(".frames .fault").filter({ hasText: "Error: A secret of the server" }).waitFor();
    await turn("Resources");
    await panel.getByLabel("URI to open").fill("test://none");
    await page.keyboard.press("Enter");
    await press("Read");
    const text = await readResult("Failed");
    assertMatch(text, /\(-32602\)[^]*test:\/\/none/);
  });

  await step("the history lists every call, and can repeat a call with its arguments", async () => {
    await turn("Tools");
    await choose("repeated");
    await panel.getByLabel("region").fill("north");
    await press("Call");
    await readResult("Done");
    await panel.getByLabel("region").fill("south");
    await turn("History");
    const rows = panel.getByRole("list", { name: "Calls" }).getByRole("listitem");
    assertMatch(await rows.first().innerText(), /repeated\s*\{"region":"north"\}\s*Done/);
    assertMatch(await rows.nth(1).innerText(), /test:\/\/none\s*Failed/);
    assertMatch(await rows.nth(2).innerText(), /crash\s*Tool error/);
    const count = await rows.count();
    await rows.first().getByRole("button", { name: "Again" }).click();
    assertStringIncludes(await readResult("Done"), "Header: north");
    assertEquals(await panel.getByRole("heading", { level: 2 }).innerText(), "repeated");
    assertEquals(await panel.getByLabel("region").inputValue(), "north");
    await turn("History");
    await rows.nth(count).waitFor();
    // This resource is not in a list.
    await rows.nth(2).getByRole("button", { name: "Again" }).click();
    await readResult("Failed");
    assertEquals(await panel.getByRole("heading", { level: 2 }).innerText(), "test://none");
  });

  await step("the log lists every message with its time", async () => {
    const log = page.getByRole("region", { name: "Log" });
    await log.getByLabel("Filter messages").fill("cupboard");
    const rows = log.locator("li").filter({ visible: true });
    assertEquals(await rows.count(), 1);
    assertMatch(await rows.innerText(), /←\s*#\d+\s*tool error\s*tools\/call\s*\+[\d.]+ (ms|s)/);
    await rows.locator("summary").click();
    assertStringIncludes(await rows.locator("pre").innerText(), `"isError": true`);
    await log.getByLabel("Filter messages").fill("test://none");
    assertMatch((await rows.allInnerTexts()).join(), /resources\/read[^]*error[^]*HTTP 400/);
    await log.getByLabel("Filter messages").fill("");
    await log.getByRole("button", { name: "Clear" }).click();
    assertEquals(await rows.count(), 0);
  });
});

test(
  "the page asks the person the server's questions",
  async ({ page, panel, choose, press, answer, readResult }, step) => {
    const dialog = page.getByRole("dialog");

    await step("several forms are shown in sequence", async () => {
      await choose("ask_twice");
      await press("Call");
      assertStringIncludes(await dialog.innerText(), "Who are you?");
      assertEquals(await dialog.getByLabel("name").inputValue(), "Ada");
      assertEquals(await dialog.getByLabel("name").evaluate((element) => element.matches(":focus")), true);
      assertMatch(
        await dialog.getByText("E-mail address").locator("xpath=../..").innerText(),
        /^E-mail address\s+mail/,
      );
      await dialog.getByLabel("coffee").check();
      await answer("Accept");
      await dialog.getByText("Are you sure?").waitFor();
      await dialog.getByLabel("sure").check();
      await answer("Accept");
      const result = await readResult("Done");
      assertStringIncludes(result, `[{"name":"Ada","likes":["coffee"]},"accept",{"sure":true}]`);
    });

    await step("pointing at a message lights up the call it belongs to, with its other messages", async () => {
      const log = page.getByRole("log");
      const rows = log.locator("li", { hasText: "tools/call" });
      const lit = page.locator(".lit");
      await rows.last().hover();
      // A request and a question for each round, and a request and the result for the last one.
      const all = await log.locator("li.lit").allInnerTexts();
      assertEquals(all.map((text) => /(?:tools\/call|question|result)/.exec(text)?.[0]), [
        "tools/call",
        "question",
        "tools/call",
        "question",
        "tools/call",
        "result",
      ]);
      assertEquals(await panel.locator(".output.lit").count(), 1);
      await page.getByRole("tab", { name: "History" }).click();
      await rows.last().hover();
      assertEquals(
        await page.getByRole("list", { name: "Calls" }).locator(".lit").allInnerTexts().then((all) => all.length),
        1,
      );
      await page.getByRole("tab", { name: "Tools" }).click();
      await page.getByRole("heading", { level: 1 }).hover();
      assertEquals(await lit.count(), 0);
    });

    await step("a form can be declined and cancelled", async () => {
      await press("Call");
      await answer("Decline");
      await panel.getByText("The first answer was decline.").waitFor();
      await press("Call");
      await dialog.waitFor();
      await page.keyboard.press("Escape");
      await panel.getByText("The first answer was cancel.").waitFor();
      assertEquals(await dialog.count(), 0);
    });

    await step("sampling, roots and URL elicitation are shown", async () => {
      await choose("ask_all");
      await press("Call");
      await dialog.getByText("Write a poem.").waitFor();
      await dialog.getByLabel("Answer").fill("Roses are red");
      await answer("Answer");
      await dialog.getByLabel("Roots").fill("file:///a\n\nfile:///b");
      await answer("Answer");
      const link = dialog.getByRole("link", { name: "https://pay.example/bill?id=1" });
      assertEquals(await link.getAttribute("rel"), "noopener noreferrer");
      assertStringIncludes(await dialog.innerText(), "Host: pay.example");
      await answer("Accept");
      const result = await readResult("Done");
      assertStringIncludes(result, "Roses are red");
      assertStringIncludes(result, `[{"uri":"file:///a"},{"uri":"file:///b"}],"accept"`);
      await press("Call");
      await dialog.waitFor();
      await answer("End the call");
      await readResult("Stopped");
    });

    await step("the page handles only declared capabilities", async () => {
      await page.getByRole("tab", { name: "Server" }).click();
      await panel.getByLabel("Sampling").uncheck();
      await panel.getByLabel("Roots").uncheck();
      await page.getByRole("tab", { name: "Tools" }).click();
      await press("Call");
      assertMatch(await readResult("Failed"), /\(-32021\)[^]*sampling/);
    });
  },
);

test("the page reads resources, completes arguments and receives notifications", async (opened, step) => {
  const { page, panel, choose, press, turn, readResult } = opened;

  await step("a resource is read", async () => {
    await turn("Resources");
    await choose("ticks");
    await press("Read");
    assertStringIncludes(await readResult("Done"), `{"ticks":0}`);
  });

  await step("a template is completed with the keyboard", async () => {
    await choose("pairs");
    const kind = panel.getByRole("combobox", { name: "kind" });
    await kind.focus();
    await page.keyboard.type("an");
    await panel.getByRole("option", { name: "angle" }).waitFor();
    // An arrow key cancels the request for new suggestions, which would replace the list.
    await page.route("**/*", () => {});
    const asked = page.waitForEvent("request");
    await page.keyboard.press("Backspace");
    const request = await asked;
    const cancelled = page.waitForEvent("requestfailed", (failed) => failed === request);
    await page.keyboard.press("ArrowUp");
    await cancelled;
    await page.unroute("**/*");
    await page.keyboard.press("Enter");
    assertEquals(await kind.inputValue(), "angle");
    const name = panel.getByRole("combobox", { name: "name" });
    await name.focus();
    await panel.getByRole("option", { name: "acute" }).click();
    await panel.getByText("test://angle/acute").waitFor();
    await press("Read");
    assertStringIncludes(await readResult("Done"), "angle: acute");
  });

  await step("a prompt is filled in", async () => {
    await turn("Prompts");
    await choose("explain");
    await panel.getByRole("combobox", { name: "topic" }).focus();
    await page.keyboard.press("ArrowDown");
    await panel.getByRole("option", { name: "gravity" }).waitFor();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await page.keyboard.press("Enter");
    assertMatch(await readResult("Done"), /user\s+Copy\s+Explain gravity\./);
  });

  await step("a watched resource is updated", async () => {
    await turn("Resources");
    await choose("ticks");
    await press("Watch");
    await page.getByText("subscriptions/acknowledged").nth(1).waitFor();
    await turn("Tools");
    await choose("tick");
    await press("Call");
    await readResult("Done");
    await turn("Watch");
    await panel.getByText("resources/updated").waitFor();
    assertMatch(await panel.innerText(), /"test:\/\/ticks"[^]*resources\/updated\s+test:\/\/ticks/);
    await turn("Resources");
    await panel.getByRole("button", { name: /^Watching · changed/ }).click();
    await panel.getByRole("button", { name: "Watch", exact: true }).waitFor();
  });

  await step("a changed list is updated", async () => {
    await turn("Tools");
    await choose("turn");
    await press("Call");
    await choose("extra");
    await press("Call");
    assertStringIncludes(await readResult("Done"), "Here.");
    assertEquals(await page.getByRole("tab").first().innerText(), "Tools 14");
    await choose("turn");
    await press("Call");
    await page.getByRole("tab", { name: "Tools 13" }).waitFor();
    await turn("History");
    const row = panel.getByRole("listitem").filter({ hasText: "extra" });
    await row.getByRole("button", { name: "Again" }).click();
    await row.getByRole("button", { name: "No longer in the list" }).waitFor();
    await turn("Tools");
  });

  await step("the page reconnects to a restarted server", async () => {
    await opened.restart(() => page.getByText("Disconnected").waitFor());
    await page.getByRole("tab", { name: "Tools 13" }).waitFor();
    await choose("tick");
    await press("Call");
    assertMatch(await readResult("Done"), /\n1\n/);
  });
});

test("hostile content from a server is shown as text", async ({ page, panel, problems, choose, press, turn, readResult }) => {
  const title = await page.title();
  await choose("hostile");
  assertMatch(await panel.locator("article").innerText(), /^hostile\s+<img src=x[^]*‹U\+202E›text that runs/);
  await press("Call");
  const result = await readResult("Done");
  assertStringIncludes(result, `<script>document.title='broken'</script>`);
  assertStringIncludes(result, `"__proto__":"own"`);
  // The only image is the SVG. A browser does not run scripts in an `img`.
  assertEquals(
    await panel.locator("img").evaluateAll((all) => all.map((each) => each.getAttribute("src")?.slice(0, 19))),
    [
      "data:image/svg+xml;",
    ],
  );
  await press("Read"); // Reads a link to a javascript: URL.
  await press("Read"); // Reads an ordinary resource URI.
  assertMatch(await readResult("Failed"), /-32602/);
  await turn("Server");
  assertEquals(await panel.getByRole("link").count(), 0);
  assertEquals(await page.locator("script").count(), 1);
  assertEquals(await page.title(), title);
  assertEquals(problems, []);
});

test("the test setup detects violations of the content security policy", async ({ page, problems }) => {
  await page.evaluate(`(async () => {
    const script = document.createElement("script");
    try { script.text = "document.title = 'broken'"; } catch {}
    document.body.append(script);
    try { document.body.innerHTML = "<b>broken</b>"; } catch {}
    await fetch("https://example.com/").catch(() => {});
    await new Promise((resolve) => setTimeout(resolve, 50)); // Events about breaches arrive later.
  })()`);
  assertMatch(problems.join("\n"), /policy require-trusted-types-for/);
  assertMatch(problems.join("\n"), /policy connect-src/);
  assertNotMatch(await page.title(), /broken/);
  (problems as string[]).length = 0;
});

test(
  "the page works with the keyboard, at a width of 400 pixels, and with sufficient contrast",
  async (opened, step) => {
    const { page, panel, choose, press, turn, readResult } = opened;

    await step("every action is possible with the keyboard", async () => {
      await page.keyboard.press("/");
      await page.keyboard.type("refu");
      await page.keyboard.press("ArrowDown");
      await page.keyboard.press("Enter");
      await panel.getByRole("heading", { name: "refuse" }).waitFor();
      await panel.getByRole("button", { name: "Call" }).focus();
      await page.keyboard.press("Enter");
      await readResult("Tool error");
      await page.getByRole("tab", { name: "Tools" }).focus();
      await page.keyboard.press("ArrowRight");
      assertEquals(await page.getByRole("tab", { name: "Resources" }).getAttribute("aria-selected"), "true");
      await page.keyboard.press("End");
      await panel.getByText("This client").waitFor();
      await page.keyboard.press("Home");
      await page.keyboard.press("/");
      await page.keyboard.press("Control+a");
      await page.keyboard.press("Delete");
      // The URL contains the selected item.
      await choose("media");
      await page.reload();
      await panel.getByRole("heading", { name: "media" }).waitFor();
    });

    for (const colorScheme of ["light", "dark"] as const) {
      await step(`texts have enough contrast and controls have names in the ${colorScheme} theme`, async () => {
        await page.emulateMedia({ colorScheme });
        const faint: unknown[] = [];
        for (const name of ["every_field", "hostile", "steps", "crash", "media"]) {
          await choose(name);
          if (name !== "every_field") await press("Call"), await readResult(/Done|Tool error/);
          faint.push(...await page.evaluate<unknown[]>(`(${findFaint})()`));
        }
        for (const name of ["Resources", "Prompts", "Watch", "Server"]) {
          await turn(name);
          faint.push(...await page.evaluate<unknown[]>(`(${findFaint})()`));
          faint.push(...await page.evaluate<unknown[]>(`(${findNameless})()`));
        }
        assertEquals(faint, []);
        await turn("Tools");
      });
    }

    await step("the page fits a width of 400 pixels", async () => {
      await page.setViewportSize({ width: 400, height: 800 });
      await page.getByRole("button", { name: /^Log/ }).click();
      for (const name of ["Tools", "Resources", "Prompts", "History", "Watch", "Server"]) {
        await turn(name);
        const wide = await page.evaluate("document.documentElement.scrollWidth");
        assertEquals(wide, 400, name);
        assertEquals(await page.evaluate<unknown[]>(`(${findCut})()`), [], name);
      }
      await turn("Tools");
      await press("‹ All tools");
      await choose("every_field");
      assertEquals(await panel.locator(".list").isVisible(), false);
      assertEquals(await page.evaluate<unknown[]>(`(${findCut})()`), []);
      await press("‹ All tools");
      assertEquals(await panel.locator(".list").isVisible(), true);
      await choose("ask_twice");
      await press("Call");
      await page.getByRole("dialog").waitFor();
      assertEquals(await page.evaluate<unknown[]>(`(${findCut})()`), []);
      await page.keyboard.press("Escape");
      await readResult("Done");
    });
  },
);

test("the page works on Bun, and loads a paginated list page by page", async (opened) => {
  const { page, panel, choose, press, turn, readResult } = opened;
  await page.getByRole("tab", { name: "Tools 2+" }).waitFor();
  await press("Load more");
  await page.getByRole("tab", { name: "Tools 4+" }).waitFor();
  await press("Load more");
  await page.getByRole("tab", { name: "Tools 5", exact: true }).waitFor();
  assertEquals(await panel.getByRole("button", { name: "Load more" }).count(), 0);
  await choose("tool_5");
  await press("Call");
  assertStringIncludes(await readResult("Done"), "This is 5.");
  await turn("Resources");
  assertEquals(await panel.locator(".side > p").filter({ hasText: "resources" }).innerText(), sentence("resources"));
}, { runtime: "bun", file: "tests/cli/inspector/pages.ts" });

const readme = isDeno ? await Deno.readTextFile(`${root}README.md`) : "";
/** The command in README.md, with the CLI and an example file of this checkout. */
const command = /deno run [^`]*--inspect(?=`)/.exec(readme)?.[0].replace("jsr:@x/mcp", "mod.ts")
  .replace("server.ts", "examples/notes.ts").split(" ");

test(
  "the command in README.md starts the inspector with the notes example",
  async ({ page, panel, choose, press, turn, answer, readResult }) => {
    assertEquals(await page.title(), "notes · Inspector");
    await choose("write");
    await panel.getByLabel("title").fill("shopping");
    await panel.getByLabel("text").fill("Cheese");
    await press("Call");
    await page.getByRole("dialog").getByLabel("overwrite").check();
    await answer("Accept");
    await readResult("Done");
    await press("Read"); // Follows the link in the result.
    await press("Read");
    assertMatch(await readResult("Done"), /note:\/\/shopping[^]*Cheese/);
    await turn("Prompts");
    await panel.getByLabel("title").first().fill("shopping");
    await press("Get");
    assertStringIncludes(await readResult("Done"), "Cheese");
  },
  { command },
);
