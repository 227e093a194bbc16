// The example of a client in a web page, in a real browser: the page, the server and the authorization server have three
// origins.
import { assertEquals, assertStringIncludes } from "@std/assert";
import { CLIENT_DOCUMENT, startOidc } from "../auth/oidc.ts";
import { launchBrowser, missing } from "../support/chromium.ts";
import { until } from "../support/behaviour.ts";
import { findFreePort, root, start } from "../support/processes.ts";
import { needs, requireAll } from "../support/required.ts";
import { runtimes } from "../support/runtimes.ts";

const isDeno = typeof Deno !== "undefined"; // Only Deno starts the browser.

/** Bundles the page as the example's documentation does, but without a download. */
async function bundlePage(path: string): Promise<void> {
  const { build, stop } = await import("esbuild");
  try {
    await build({
      absWorkingDir: root,
      entryPoints: ["examples/browser/page/page.ts"],
      bundle: true,
      format: "esm",
      outfile: path,
      tsconfig: "examples/tsconfig.json",
      logLevel: "error",
    });
  } finally {
    await stop();
  }
}

interface Place {
  readonly url: string;
  readonly site: string;
  readonly issuer: string;
}

/** A visit to the page in a new browser. Fails if the page has a problem. */
async function visit({ url, site, issuer }: Place, isKept: boolean): Promise<void> {
  await using browser = await launchBrowser();
  const { page, context } = browser;
  // The test authorization server signs in the user of this cookie, without a form.
  await context.addCookies([{ name: "user", value: isKept ? "bob" : "ada", url: issuer, httpOnly: true }]);
  const problems: string[] = [];
  const urls: string[] = [];
  page.on("pageerror", (error) => problems.push(`error: ${error.stack ?? error.message}`));
  page.on("console", (message) => {
    // Chromium itself logs the 401 that leads to the sign-in, and the rejection of a JWT in the revocation request.
    const { url: address } = message.location();
    const isExpected = message.text().startsWith("Failed to load resource") &&
      [url, `${issuer}/token/revocation`].includes(address);
    if (["error", "warning"].includes(message.type()) && !isExpected) problems.push(`${message.text()} ${address}`);
  });
  page.on("request", (request) => urls.push(request.url()));
  await page.addInitScript(
    `addEventListener("securitypolicyviolation", (event) => console.error("policy", event.violatedDirective))`,
  );
  // Streams are not iterable in Safari.
  if (isKept) await page.addInitScript("delete ReadableStream.prototype[Symbol.asyncIterator]");
  const questions: string[] = [];
  page.on("dialog", (dialog) => {
    questions.push(dialog.message());
    dialog.accept().catch(() => {});
  });
  const text = async (selector: string) => String(await page.locator(selector).textContent());
  const agents = async () => String(await page.locator("#tools").getAttribute("data-agents"));
  const signIn = page.getByRole("button", { name: `Sign in at ${new URL(issuer).host}` });

  await page.goto(site);
  await signIn.click();
  await page.getByText("signed in at").waitFor();
  // The address bar contains no code, and the verifier and the tokens are in no storage that survives the page.
  assertEquals(page.url(), `${site}/callback`);
  const stored = "JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie])";
  assertEquals(await page.evaluate(stored), '[{},{},""]');

  await until(async () => await agents() === "list_notes add_note", "agents can use the tools");
  assertEquals(await text("#notes"), "There are no notes.");
  const clear = page.getByRole("button", { name: "clear_notes" });
  const add = async (note: string) => {
    await page.getByRole("textbox").fill(note);
    await page.getByRole("button", { name: "Add" }).click();
    // The server adds a tool, and notifies the page.
    await clear.waitFor();
    await until(async () => await text("#notes") === note, "the page shows the note");
    await until(async () => (await agents()).includes("clear_notes"), "agents can use the new tool");
  };
  await add("<img src=x onerror=alert(1)>");
  // An agent calls the tool as the same user. The question of the script precedes the tool's own question.
  const called = await page.evaluate(`document.modelContext.executeTool({ name: "clear_notes" }, {})`);
  assertEquals(JSON.parse(String(called)).content[0].text, "Deleted.");
  assertEquals(questions, ['An agent wants to use "Clear notes" without arguments', "Delete 1 notes?"]);
  // The server removes the tool, and notifies the page.
  await clear.waitFor({ state: "detached" });
  await until(async () => await agents() === "list_notes add_note", "agents cannot use the tool");
  await add("second");
  await clear.click();
  await clear.waitFor({ state: "detached" });
  assertEquals(questions.slice(2), ["Delete 1 notes?"]);
  await until(async () => await text("#notes") === "There are no notes.", "the page shows that there are no notes");

  // A reload loses tokens in memory.
  await page.goto(site);
  if (isKept) {
    await page.getByText("signed in at").waitFor();
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.waitForURL(`${site}/`);
  }
  await signIn.waitFor();
  assertEquals(problems, []);
  // No URL contains a token, and only the redirect contains a code.
  const withCode = urls.filter((each) => new URL(each).searchParams.has("code"));
  assertEquals(withCode.map((each) => new URL(each).origin + new URL(each).pathname), [`${site}/callback`]);
  assertEquals(urls.filter((each) => /eyJ[\w-]{20}|access_token|refresh_token/.test(each)), []);
  assertStringIncludes(urls.join("\n"), "code_challenge_method=S256");
}

for (const { name: runtime, file } of runtimes) {
  const name = `${runtime}: a page of another origin signs in, calls tools, answers questions and sees changes`;
  const fn = async () => {
    requireAll(missing);
    const folder = await Deno.makeTempDir({ prefix: "mcp-page-" });
    const bundle = `${folder}/page.js`;
    await bundlePage(bundle);
    await using oidc = await startOidc();
    const issuer = oidc.issuers.first;
    const [port, sitePort] = [findFreePort(), findFreePort()];
    const [url, site] = [`http://127.0.0.1:${port}/mcp`, `http://127.0.0.1:${sitePort}`];
    const env = { PORT: String(port), SITE: site, ISSUER: issuer };
    await using server = await start([...file, `${root}examples/browser/server.ts`], { env, timeoutMs: 120_000 });
    await server.waitFor(/Serving/);
    const words = ["deno", "serve", "-A", "--no-check", "--host", "127.0.0.1", "--port", String(sitePort)];
    for (const [era, keep] of [["modern", "0"], ["legacy", "1"]]) {
      const CLIENT = JSON.stringify({ clientMetadataUrl: CLIENT_DOCUMENT });
      const env = { SERVER: url, ISSUER: issuer, ERA: era, KEEP: keep, BUNDLE: bundle, CLIENT };
      await using serving = await start([...words, `${root}examples/browser/site.ts`], { env, timeoutMs: 120_000 });
      await serving.waitFor(/Listening/);
      await visit({ url, site, issuer }, keep === "1");
    }
    await Deno.remove(folder, { recursive: true });
  };
  Deno.test({ ...isDeno ? needs(name, missing) : { name, ignore: true }, fn });
}
