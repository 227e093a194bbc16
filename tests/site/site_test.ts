// Builds the site, and opens it in a browser: every page is there, the search finds terms of guides and of the
// reference, and no link is dead.
import { assert, assertEquals } from "@std/assert";
import { launchBrowser, missing } from "../support/chromium.ts";
import { needs, requireAll } from "../support/required.ts";
import { withFolder } from "../support/folder.ts";
import config from "../../deno.json" with { type: "json" };
import { readPages } from "../release/pages.ts";
import { buildSite } from "./build.ts";
import { serveSite } from "./serve.ts";
import { toSitePath } from "./site_pages.ts";

const isDeno = typeof Deno !== "undefined"; // Only Deno builds the site.
const test = needs("the site has all pages, a search and no dead link, and its pages open without an error", missing);

const URL_OF_SITE = "https://docs.example.com/mcp/";
const REPOSITORY = "https://git.example.com/x/mcp";

/** What readers search for, each with the page that must come first. */
const QUERIES = [
  ["single-use answers", "guides/context"],
  ["circuit breaker", "guides/ready-made"],
  ["rate limit", "guides/quotas"],
  ["ctx.elicit", "guides/context"],
  ["webhook", "guides/deployment"],
  ["redis", "guides/stores"],
  ["postgres", "guides/stores"],
  ["api key", "guides/authentication"],
  ["oauth", "guides/authorization"],
  ["sign in with github", "guides/oauth-proxy"],
  ["image", "guides/handlers"],
  ["progress", "guides/context"],
  ["cancellation", "guides/context"],
  ["openapi", "guides/openapi"],
  ["next.js", "guides/frameworks"],
  ["express", "guides/frameworks"],
  ["cloudflare", "guides/workers"],
  ["docker", "guides/deployment"],
  ["nginx", "guides/deployment"],
  ["task", "guides/tasks"],
  ["resume after a crash", "guides/tasks"],
  ["test a tool", "guides/testing"],
  ["fakeContext", "testing"],
  ["websocket", "reference/transports"],
  ["tenant", "guides/tenants"],
  ["error codes", "reference/error-codes"],
  ["audit log", "guides/telemetry"],
  ["zod", "guides/schemas"],
  ["hide a tool", "guides/visibility"],
  ["timeout", "guides/quotas"],
  ["idempotency", "guides/idempotency"],
  ["keycloak", "providers/keycloak"],
  ["inspector", "guides/inspector"],
  ["gateway", "guides/gateway"],
  ["rotate the secret", "guides/instances"],
  ["sampling", "guides/context"],
  ["cache", "guides/ready-made"],
  ["opentelemetry", "guides/telemetry"],
  ["block a user", "guides/authentication"],
  ["structured content", "guides/handlers"],
  ["proxy", "guides/proxies"],
  ["health check", "guides/deployment"],
  ["many tools", "guides/many-tools"],
  ["completion", "guides/resources"],
  ["worker thread", "guides/worker-threads"],
  ["typed client", "guides/client"],
] as const;

Deno.test({
  ...test,
  ignore: test.ignore || !isDeno,
  fn: () =>
    withFolder({}, async (folder) => {
      requireAll(missing);
      const { dead } = await buildSite({ folder: `${folder}/`, url: URL_OF_SITE, repository: REPOSITORY });
      assertEquals(dead, []);

      const read = (path: string) => Deno.readTextFile(`${folder}/${path}`);
      const [list, full] = [await read("llms.txt"), await read("llms-full.txt")];
      const paths = (await readPages()).map(({ path }) => toSitePath(path));
      const entries = Object.keys(config.exports);
      assertEquals((await Array.fromAsync(Deno.readDir(`${folder}/api`))).length, 2 * entries.length);
      for (const path of paths) {
        assert(/<h1/.test(await read(path.replace(/\.md$/, ".html"))), path);
        const isLanding = path === "index.md" || path === "documentation.md";
        assertEquals(list.includes(`](${URL_OF_SITE}${path})`), !isLanding, path);
        assert(full.includes(`${URL_OF_SITE}${path}`), path);
      }
      for (const key of entries) assert(list.includes(`[${config.name}${key.slice(1)}](${URL_OF_SITE}api/`), key);
      assert((await read("guides/sign-in.html")).includes(`href="${REPOSITORY}/blob/HEAD/examples/sign_in.ts"`));

      await using site = serveSite(`${folder}/`, new URL(URL_OF_SITE).pathname);
      await using browser = await launchBrowser();
      const { page } = browser;
      const errors: string[] = [];
      page.on("console", (message) => void (message.type() === "error" && errors.push(message.text())));
      page.on("pageerror", (error) => void errors.push(error.message));
      for (const path of ["index.html", "guides/tasks.html", "api/mcp.html"]) {
        await page.goto(site.url + path);
        await page.waitForLoadState("networkidle");
      }
      await page.goto(`${site.url}guides/tasks.html`);
      await page.waitForSelector(".diagram svg");
      assertEquals(errors, []);

      await page.keyboard.press("Control+KeyK");
      const misplaced: string[] = [];
      for (const [query, path] of QUERIES) {
        await page.fill(".VPLocalSearchBox input", query);
        const first = `.VPLocalSearchBox .results li:first-child a[href*="${path}"]`;
        await page.waitForSelector(first, { timeout: 10_000 }).catch(() => misplaced.push(query));
      }
      assertEquals(misplaced, []);
      await page.keyboard.press("Escape");

      await page.goto(`${site.url}guides/no-such-page`);
      await page.getByText("There is no such page").waitFor();
    }),
});
