// The inspector page of a protected server: the CLI process signs in, and the page never gets a token.
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { startOidc } from "../../auth/oidc.ts";
import { serveGitHub, serveNotes } from "../../auth/serve_notes.ts";
import { launchBrowser, missing } from "../../support/chromium.ts";
import { until } from "../../support/behaviour.ts";
import { isNotDeno } from "../../support/command_line.ts";
import { sentence } from "../../support/messages.ts";
import { root, run, start } from "../../support/processes.ts";
import { runtimes } from "../runtimes.ts";
import { needs, requireAll } from "../../support/required.ts";

/** Starts the inspector in a browser. `signIn` opens the link in its dialog as Ada. */
async function openPage(program: readonly string[], href: string, issuer: string) {
  const folder = await Deno.makeTempDir({ prefix: "mcp-user-" });
  const env = { XDG_CONFIG_HOME: folder, TEST_USER: "ada", TEST_PAGES: `${folder}/pages` };
  const running = await start([...program, "inspect", href, "--page"], { env, timeoutMs: 120_000 });
  const [, url] = await running.waitFor(/^ {2}(http:\S+#\S+)/m);
  const browser = await launchBrowser();
  const { page } = browser;
  const dialog = page.getByRole("dialog");
  return {
    page,
    dialog,
    folder,
    url,
    async signIn() {
      await dialog.getByText("Sign in", { exact: true }).waitFor();
      assertStringIncludes(await dialog.innerText(), sentence(issuer));
      const link = await dialog.getByRole("link").getAttribute("href");
      const words = ["deno", "run", "-q", "-A", "--no-check", `${root}tests/cli/sign_in/browser.ts`, link ?? ""];
      assertEquals((await run(words, { env })).code, 0);
      await dialog.waitFor({ state: "hidden" });
    },
    async [Symbol.asyncDispose]() {
      await browser[Symbol.asyncDispose]();
      await running[Symbol.asyncDispose]();
      await Deno.remove(folder, { recursive: true });
    },
  };
}

for (const { name: runtime, program } of runtimes) {
  const name = `${runtime}: the page signs in, steps up and never gets a token`;
  const fn = async () => {
    requireAll(missing);
    await using oidc = await startOidc();
    await using notes = await serveNotes(program, [oidc.issuers.first]);
    await using opened = await openPage(program, notes.url.href, oidc.issuers.first);
    const { page, dialog, folder, signIn } = opened;
    const seen: string[] = [];
    page.on("response", (response) => void response.text().then((text) => seen.push(text), () => {}));
    await page.goto(opened.url);
    await signIn();
    await page.getByText("whoami", { exact: true }).first().waitFor();

    // This tool needs an additional scope. The call continues after the second sign-in.
    const panel = page.locator("[role=tabpanel]:visible");
    await panel.locator(".item").filter({ has: page.getByText("add", { exact: true }) }).click();
    await panel.getByRole("textbox").first().fill("from the page");
    await panel.getByRole("button", { name: "Call", exact: true }).click();
    await dialog.getByText("notes:write").waitFor();
    await signIn();
    await panel.getByRole("region", { name: "Result" }).getByText("1", { exact: true }).first().waitFor();

    // The log shows the issuer, scopes and expiry.
    const readPage = async () => String(await page.evaluate("document.body.textContent"));
    const told = new RegExp(`${oidc.issuers.first} [^"]*notes:write[^"]* 20\\d\\d-`);
    await until(async () => told.test(await readPage()), "the page shows both scopes");
    // The process stores the tokens in its folder. No message to the page and no value in the page's storage contains a
    // token.
    const names = await Array.fromAsync(Deno.readDir(`${folder}/mcp/tokens`), ({ name }) => name);
    const files = await Promise.all(names.map((name) => Deno.readTextFile(`${folder}/mcp/tokens/${name}`)));
    const tokens = [...files.join("\n").matchAll(/"(?:token|refreshToken)\\?":\\?"([^"\\]+)/g)].map(([, token]) =>
      token
    );
    assert(tokens.length >= 2, files.join("\n"));
    const stored = await page.evaluate(
      "JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.documentElement.outerHTML])",
    );
    const text = seen.join("\n") + String(stored);
    assertEquals(tokens.filter((token) => text.includes(token)), []);
  };
  Deno.test({ ...isNotDeno ? { name, ignore: true } : needs(name, missing), fn });
  const second = `${runtime}: the page signs in at a server whose users sign in with GitHub`;
  const run = async () => {
    requireAll(missing);
    await using served = await serveGitHub(program);
    await using opened = await openPage(program, served.url.href, served.url.origin);
    await opened.page.goto(opened.url);
    await opened.signIn();
    await opened.page.getByText("Lists the repositories of the user").first().waitFor();
  };
  Deno.test({ ...isNotDeno ? { name: second, ignore: true } : needs(second, missing), fn: run });
}
