// `examples/authorization_server.ts` on every runtime: a client registers, the user signs in on the page, and the client
// calls a tool. The page in the documentation shows the same program.
import { assertEquals, assertStringIncludes } from "@std/assert";
import { toPrincipalId } from "../../src/auth/oauth/oauth.ts";
import { connect } from "../../src/client/client.ts";
import { signIn } from "../../src/client/oauth/oauth.ts";
import { readPages } from "../release/pages.ts";
import { textOf } from "../support/behaviour.ts";
import { isNotDeno, testProcesses } from "../support/command_line.ts";
import { findNode, NODE_VERSIONS } from "../support/node_versions.ts";
import { findFreePort, root } from "../support/processes.ts";
import { runtimes } from "../support/runtimes.ts";
import { startApp } from "../frameworks/start_app.ts";

const path = "examples/authorization_server.ts";

/** Acts as the browser of a user who fills in the form with these fields. Returns the address of the client. */
async function visit(address: string, fields: Readonly<Record<string, string>>): Promise<string> {
  const { origin, searchParams } = new URL(address);
  const cookies = new Map<string, string>();
  let url = address;
  let init: RequestInit = {};
  for (let step = 0; url.startsWith(origin); step++) {
    if (step > 10) throw new Error(`${url} leads to no client`);
    const cookie = [...cookies].map((each) => each.join("=")).join("; ");
    const response = await fetch(url, { ...init, headers: { cookie }, redirect: "manual" });
    for (const line of response.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      cookies.set(name, value);
    }
    const html = await response.text();
    if (response.status === 401) return "wrong";
    const isForm = html.includes('<form method="post">');
    if (isForm) assertStringIncludes(html, `<strong>${searchParams.get("redirect_uri")}</strong>`);
    init = isForm ? { method: "POST", body: new URLSearchParams(fields) } : {};
    if (isForm) continue;
    const location = response.headers.get("location");
    if (location === null) throw new Error(`${url} responds with ${response.status}: ${html}`);
    url = new URL(location, url).href;
  }
  return url;
}

async function check(words: readonly string[]): Promise<void> {
  const port = findFreePort();
  const env = { ADA_PASSWORD: "pass phrase" };
  await using _running = await startApp([...words, `${root}${path}`], { cwd: root, port, env });
  const url = `http://127.0.0.1:${port}/mcp`;
  const connectAs = (fields: Readonly<Record<string, string>>) => {
    const userAgent = () => ({
      redirectUri: "http://127.0.0.1:7777/callback",
      visit: ({ url }: { readonly url: string }) => visit(url, fields),
      end() {},
    });
    return connect(url, { auth: signIn({ userAgent }) });
  };
  const ada = { user: "ada", password: "pass phrase", action: "allow" };
  const client = await connectAs(ada);
  assertEquals(textOf(await client.callTool("whoami")), toPrincipalId(`http://127.0.0.1:${port}`, "ada"));
  await client.close();
  const refused = (fields: object) => connectAs({ ...ada, ...fields }).then(() => "connected", String);
  assertStringIncludes(await refused({ action: "deny" }), "access_denied");
  assertStringIncludes(await refused({ password: "guess" }), "another address");
}

for (const { name, file } of runtimes) {
  testProcesses(`${path} signs users in on ${name}`, () => check(file));
}

testProcesses(`${path} signs users in on Node`, async () => {
  const found = await findNode(NODE_VERSIONS[1]);
  if ("missing" in found) return console.log(`Skipped: ${found.missing}`);
  await check([found.path, "--import", `${root}tests/frameworks/node_imports.ts`]);
});

Deno.test({
  name: "the page about authorization servers shows the program that the tests run",
  ignore: isNotDeno,
  async fn() {
    const page = (await readPages()).find((page) => page.path === "docs/guides/authorization-server.md");
    const example = await Deno.readTextFile(`${root}${path}`);
    assertEquals(page?.blocks.map(({ text }) => text), [example.replace(/^\/\*\*[^]*?\*\/\n/, "")]);
  },
});
