// Opens the inspector page of a real server in a real Chromium, and records every problem on the page.
import { assertEquals } from "@std/assert";
import type { Locator, Page } from "playwright-core";
import { launchBrowser, missing } from "../../support/chromium.ts";
import { root, type Running, start } from "../../support/processes.ts";
import { needs, requireAll } from "../../support/required.ts";

const isDeno = typeof Deno !== "undefined"; // Deno starts the processes

/** The command that starts the command line on each runtime. */
export const programs = {
  deno: ["deno", "run", "-A", `${root}mod.ts`],
  bun: ["bun", `${root}mod.ts`],
} as const;

/** Options for opening the page. */
export interface OpenOptions {
  /** The server's file. Defaults to the server beside this file. */
  readonly file?: string;
  readonly runtime?: keyof typeof programs;
  /** The whole command up to the port. It replaces the file and the runtime. */
  readonly command?: readonly string[];
  /** Whether the command contains its own port. */
  readonly hasPort?: boolean;
  readonly width?: number;
  /** The URL fragment. */
  readonly place?: string;
}

/** An open page. Disposing closes the browser and stops the server. */
export interface Opened extends AsyncDisposable {
  readonly page: Page;
  /** The page's address. */
  readonly url: string;
  /** Script errors, error messages on the console, and violations of the page's policy, so far. */
  readonly problems: readonly string[];
  /** Returns and clears the problems so far, which marks them as expected. */
  takeProblems(): readonly string[];
  /** The visible panel. */
  readonly panel: Locator;
  /** Selects an item of the list. */
  choose(name: string): Promise<void>;
  /** Presses a button of the visible panel. */
  press(name: string): Promise<void>;
  /** Presses a button of the dialog. */
  answer(name: string): Promise<void>;
  /** The text of the result, once a result has appeared after the last press of a button. */
  readResult(state: string | RegExp): Promise<string>;
  /** Selects a tab. */
  turn(name: string): Promise<void>;
  /** Stops the server, and starts another server at the same address. */
  restart(whileGone: () => Promise<void>): Promise<void>;
}

/** Starts a server with its page. */
export async function startServer(
  { file = "tests/cli/inspector/server.ts", runtime = "deno", command, hasPort = false }: OpenOptions = {},
  port = "0",
): Promise<{ readonly running: Running; readonly url: string }> {
  const words = command ?? [...programs[runtime], "serve", root + file, "--http", "--inspect"];
  const running = await start(hasPort ? words : [...words, "--port", port]);
  const [, url] = await running.waitFor(/in a browser:\s+(http:\S+)/);
  return { running, url };
}

/** Opens the page of a server in a separate browser. */
export async function open(options: OpenOptions = {}): Promise<Opened> {
  let { running, url } = await startServer(options);
  const browser = await launchBrowser(options.width);
  const { page } = browser;
  const problems: string[] = [];
  let isGone = false;
  page.on("pageerror", (error) => problems.push(`error: ${error.stack ?? error.message}`));
  page.on("console", (message) => {
    // Chromium itself logs every response with an error status, and every server that does not respond.
    const isAnswer = message.text().startsWith("Failed to load resource") && message.location().url.endsWith("/mcp");
    if (message.type() === "error" && !isAnswer && !isGone) problems.push(`console: ${message.text()}`);
  });
  // The script is a string because it runs in the page, outside of this program.
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
      // Suggestions for the last filled input may cover the button.
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

/** A test in a browser. An unexpected problem fails the test. */
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
