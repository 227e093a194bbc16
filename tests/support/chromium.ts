// A real Chromium, with a separate profile.
import type { BrowserContext, Page } from "playwright-core";

const CHROMIUM = "/usr/bin/chromium";

/** The reason why no browser is available for tests; `undefined` if a browser is available. */
export const missing: string | undefined = typeof Deno === "undefined"
  ? "Deno starts the browser"
  : await Deno.stat(CHROMIUM).then(() => undefined, () => `there is no ${CHROMIUM}; install the package chromium`);

/** A browser. Disposing closes it. */
export interface Browser extends AsyncDisposable {
  readonly context: BrowserContext;
  readonly page: Page;
}

/** Starts a browser with an empty page. `flags` are further arguments of the browser. */
export async function launchBrowser(width = 1320, flags: readonly string[] = []): Promise<Browser> {
  const { chromium } = await import("playwright-core");
  const profile = await Deno.makeTempDir({ prefix: "mcp-browser-" });
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: CHROMIUM,
    headless: true,
    viewport: { width, height: 820 },
    args: [
      "--headless",
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
      ...flags,
    ],
  });
  context.setDefaultTimeout(30_000);
  return {
    context,
    page: context.pages()[0] ?? await context.newPage(),
    async [Symbol.asyncDispose]() {
      await context.close();
      await Deno.remove(profile, { recursive: true });
    },
  };
}
