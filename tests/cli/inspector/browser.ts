// Opens the inspector page of a real server in a real Chromium, and records every problem on the page.
import { assertEquals } from "@std/assert";
import type { Locator, Page } from "playwright-core";
import { launchBrowser, missing } from "../../support/chromium.ts";
import { root, type Running, start } from "../../support/processes.ts";
import { needs, requireAll } from "../../support/required.ts";

const isDeno = typeof Deno !== "undefined"; // Browser tests run only on Deno, which starts the server processes of both runtimes.

/** The command that starts the CLI on each runtime. */
export const programs = {
  deno: ["deno", "run", "-A", `${root}mod.ts`],
  bun: ["bun", `${root}mod.ts`],
} as const;

/** Options of `open`. */
export interface OpenOptions {
  /** The server file. Defaults to `server.ts` in this folder. */
  readonly file?: string;
  readonly runtime?: keyof typeof programs;
  /** The command to run, without the port. Replaces `file` and `runtime`. */
  readonly command?: readonly string[];
  /** Whether `command` already contains a port. */
  readonly hasPort?: boolean;
  readonly width?: number;
  /** The URL fragment of the page. */
  readonly place?: string;
}

/** An open page. Disposing closes the browser and stops the server. */
export interface Opened extends AsyncDisposable {
  readonly page: Page;
  /** The page's URL. */
  readonly url: string;
  /** The script errors, console errors and policy violations since the page was opened. */
  readonly problems: readonly string[];
  /** Returns and clears the current problems, for a test that expects them. */
  takeProblems(): readonly string[];
  /** The visible panel. */
  readonly panel: Locator;
  /** Selects an item of the list. */
  choose(name: string): Promise<void>;
  /** Presses a button in the visible panel. */
  press(name: string): Promise<void>;
  /** Presses a button in the dialog. */
  answer(name: string): Promise<void>;
  /** Waits for a result after the last press of a button, and returns its text. */
  readResult(state: string | RegExp): Promise<string>;
  /** Selects a tab. */
  turn(name: string): Promise<void>;
  /** Stops the server, runs `whileGone`, and starts another server on the same port. */
  restart(whileGone: () => Promise<void>): Promise<void>;
}

/** Starts a server that serves the inspector page. */
export async function startServer(
  { file = "tests/cli/inspector/server.ts", runtime = "deno", command, hasPort = false }: OpenOptions = {},
  port = "0",
): Promise<{ readonly running: Running; readonly url: string }> {
  const words = command ?? [...programs[runtime], "serve", root + file, "--http", "--inspect"];
  const running = await start(hasPort ? words : [...words, "--port", port]);
  const [, url] = await running.waitFor(/^ {2}(http:\S+#\S+)/m);
  return { running, url };
}

/** Starts a server, and opens its page in a separate browser. */
export async function open(options: OpenOptions = {}): Promise<Opened> {
  let { running, url } = await startServer(options);
  const browser = await launchBrowser(options.width);
  const { page } = browser;
  const problems: string[] = [];
  let isGone = false;
  page.on("pageerror", (error) => problems.push(`error: ${error.stack ?? error.message}`));
  page.on("console", (message) => {
    // Chromium itself logs every response with an error status, and every failed connection. Neither counts as a
    // problem of the page.
    const isAnswer = message.text().startsWith("Failed to load resource") && message.location().url.endsWith("/mcp");
    if (message.type() === "error" && !isAnswer && !isGone) problems.push(`console: ${message.text()}`);
  });
  // The script is a string, because it runs in the page and not in this program.
  await page.addInitScript(
    `addEventListener("securitypolicyviolation", (event) => console.error("policy", event.violatedDirective))`,
  );
  await page.goto(options.place ? `${url}&${options.place}` : url);
  await page.getByText("Listening", { exact: true }).first().waitFor();
  const panel = page.locator("[role=tabpanel]:visible");

  return {
    page,
    url,
    problems,
    takeProblems: () => problems.splice(0),
    panel,
    choose: (name) => panel.locator(".item").filter({ has: page.getByText(name, { exact: true }) }).click(),
    async press(name) {
      await panel.locator(".output > .head").evaluateAll((all) =>
        all.forEach((each) => each.setAttribute("data-old", ""))
      );
      // Remove the focus, because the suggestions for a focused input may cover the button.
      await page.evaluate("document.activeElement?.blur()");
      await panel.getByRole("button", { name, exact: true }).click();
    },
    answer: (name) => page.getByRole("dialog").getByRole("button", { name, exact: true }).click(),
    turn: (name) => page.getByRole("tab", { name }).click(),
    async readResult(state) {
      const output = panel.getByRole("region", { name: "Result" });
      await output.locator(".head:not([data-old]) > .state").getByText(state).waitFor();
      return await output.innerText();
    },
    async restart(whileGone) {
      isGone = true;
      await running[Symbol.asyncDispose]();
      await whileGone();
      ({ running } = await startServer(options, new URL(url).port));
      await page.getByText("Listening", { exact: true }).first().waitFor();
      isGone = false;
    },
    async [Symbol.asyncDispose]() {
      await browser[Symbol.asyncDispose]();
      await running[Symbol.asyncDispose]();
    },
  };
}

/** Waits until a place shows an alert with a text that contains all names, and returns the text. */
export async function readAlert(place: Locator, ...names: readonly string[]): Promise<string> {
  const alerts = place.getByRole("alert").filter({ visible: true, hasText: /./ });
  return await names.reduce((found, name) => found.filter({ hasText: name }), alerts).innerText();
}

/** Registers a test that runs in a browser. A problem that the test does not expect fails the test. */
export function test(
  name: string,
  fn: (opened: Opened, step: Deno.TestContext["step"]) => Promise<void>,
  options: OpenOptions = {},
): void {
  Deno.test({
    ...isDeno ? needs(name, missing) : { name, ignore: true },
    async fn(t) {
      requireAll(missing);
      await using opened = await open(options);
      await fn(opened, t.step.bind(t));
      assertEquals(opened.problems, []);
    },
  });
}
