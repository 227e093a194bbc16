// Runs the authorization server scenarios of the official conformance suite against a server with `oauthProxy`. A user
// consents, and signs in at an OpenID provider, with Chromium.
//
// deno task conformance:authorization [--runtime deno|bun|node] [--client document|registered|listed]
import { CLIENT_DOCUMENT, PROXY, startOidc } from "../auth/oidc.ts";
import { launchBrowser, missing } from "../support/chromium.ts";
import { readOptions } from "../support/options.ts";
import { findFreePort } from "../support/processes.ts";
import { readRuntime, type Runtime, serve } from "./serve.ts";
import { listScenarios, readScenarios, type Scenario, startSuite } from "./suite.ts";

const suite = "0.2.0-alpha.12";
/** Both scenarios belong to all versions. Only the newest versions have all checks. */
const spec = "2026-07-28";
const file = new URL("./authorization_server.ts", import.meta.url).pathname;
const runtimes: readonly Runtime[] = ["deno", "bun", "node"];

/** Returns the id of each kind of client. */
const clients: Readonly<Record<string, (origin: string, redirectUri: string) => string | Promise<string>>> = {
  document: () => CLIENT_DOCUMENT,
  registered: async (origin, redirectUri) => {
    const body = JSON.stringify({ client_name: "Suite", redirect_uris: [redirectUri] });
    const response = await fetch(`${origin}/register`, { method: "POST", body });
    return (await response.json()).client_id;
  },
  listed: () => "listed",
};

/** Runs the scenarios. The suite prints the URL that a user has to open. Rejects if the user cannot sign in. */
async function test(
  kind: string,
  { origin, issuer }: { readonly origin: string; readonly issuer: string },
): Promise<readonly Scenario[]> {
  const output = await Deno.makeTempDir({ prefix: "mcp-conformance-" });
  const port = findFreePort();
  const id = await clients[kind](origin, `http://127.0.0.1:${port}/callback`);
  const names = await listScenarios(suite, "authorization", spec);
  const child = startSuite(suite, [
    ...["authorization", "--url", origin, "--client-id", id, "--resource", `${origin}/mcp`],
    ...["--port", `${port}`, "--spec-version", spec, "-o", output],
  ]);
  const errors = new Response(child.stderr).text();
  let text = "";
  try {
    let isSignedIn = false;
    for await (const part of child.stdout.pipeThrough(new TextDecoderStream())) {
      text += part;
      const [, url] = /^(http\S+\?\S+)\n/m.exec(text) ?? [];
      if (url === undefined || isSignedIn) continue;
      isSignedIn = true;
      await signIn(url, issuer);
    }
    return await readScenarios(output, "authorization", names, true);
  } catch (error) {
    child.kill(); // The suite would wait for the user for 5 minutes.
    throw new Error(`${error}\n${text}${await errors}`);
  } finally {
    await child.status;
    await Deno.remove(output, { recursive: true });
  }
}

async function signIn(url: string, issuer: string): Promise<void> {
  await using browser = await launchBrowser();
  const { context, page } = browser;
  // The provider reads the name of the user from this cookie, because it has no pages.
  await context.addCookies([{ name: "user", value: "ada", url: issuer }]);
  await page.goto(url);
  await page.getByRole("button", { name: "Continue to Login" }).click();
  await page.getByText("You can close this page").waitFor();
}

async function main(args: readonly string[]): Promise<number> {
  const options = readOptions(args, { values: ["--runtime", "--client"] });
  const runtime = readRuntime(options.get("--runtime"));
  const kind = options.get("--client");
  const kinds = Object.keys(clients).filter((each) => each === (kind ?? each));
  if (!kinds.length) throw new Error(`Cannot use "${kind}": the clients are ${Object.keys(clients).join(", ")}`);
  if (missing) {
    const isRequired = Boolean(Deno.env.get("REQUIRE_ALL"));
    console.log(`Skipped: ${missing}\n0 passed, ${isRequired ? 1 : 0} failed, ${isRequired ? 0 : 1} skipped`);
    return isRequired ? 1 : 0;
  }
  await using oidc = await startOidc();
  const issuer = oidc.issuers.first;
  const env = {
    ISSUER: issuer,
    CLIENT_ID: PROXY.clientId,
    CLIENT_SECRET: PROXY.clientSecret,
    DOCUMENT: CLIENT_DOCUMENT,
  };
  console.log(`suite ${suite}\nruntime client      scenario                                result  checks`);
  const problems: string[] = [];
  let passed = 0;
  for (const each of runtime ? [runtime] : runtimes) {
    await using server = await serve(each, file, env);
    const { origin } = new URL(server.url);
    for (const client of kinds) {
      const scenarios = await test(client, { origin, issuer }).catch((error) => {
        problems.push(`${each} ${client} | ${error}`);
        return [];
      });
      for (const { name, status, checks, failures, warnings } of scenarios) {
        // A warning is a failure too, because the suite only warns about clients without a metadata document.
        const lines = [...failures, ...warnings];
        const isRight = status === "passed" && !lines.length;
        if (isRight) passed++;
        else problems.push(`${each} ${client} ${name} | ${lines.join("; ") || status}`);
        console.log(
          `${each.padEnd(8)}${client.padEnd(12)}${name.padEnd(40)}${isRight ? "passed" : "failed"}  ${checks}`,
        );
      }
    }
  }
  for (const line of problems) console.log(`FAILURE ${line}`);
  console.log(`${passed} passed, ${problems.length} failed`);
  return problems.length === 0 && passed > 0 ? 0 : 1;
}

if (import.meta.main) Deno.exit(await main(Deno.args));
