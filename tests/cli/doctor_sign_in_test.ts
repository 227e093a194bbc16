// `doctor` with servers whose users sign in at a provider: the option --sign-in, and the URL of such a server.
import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { createServer } from "../../mod.ts";
import { github, oauthProxy, type OAuthProxyOptions, oidc } from "../../src/auth/oauth/proxy/proxy.ts";
import { examine } from "../../src/cli/doctor/examination.ts";
import { examineSignIn } from "../../src/cli/doctor/sign_in_checks.ts";
import { listSignIns } from "../../src/host.ts";
import { apiKey } from "../../src/auth/auth.ts";
import { customStore, memoryStore } from "../../src/stores/stores.ts";
import { INTERNALS } from "../../src/core/internals.ts";
import { fakeGitHub } from "../../src/testing/testing.ts";
import { openHttpServer } from "../../src/testing/http_server.ts";
import { withFiles } from "../support/command_line.ts";
import { sentence } from "../support/messages.ts";
import { runHere } from "./run_here.ts";

const resource = "http://127.0.0.1:3000/mcp";
const secret = "secret of the tests with 32 characters";

/** Examines a server. Returns all findings that are not `ok`. */
async function diagnose(
  options: Partial<OAuthProxyOptions>,
  server: object = { secret, store: openStore() },
  address?: () => Response,
) {
  const hub = fakeGitHub({ callback: "http://127.0.0.1:3000/callback" });
  const login = oauthProxy({
    resource,
    provider: github(hub.client),
    who: () => false,
    fetch: hub.fetch,
    ...options,
  });
  const key = apiKey({ keys: { robot: "k".repeat(32) }, header: "x-api-key" });
  const made = createServer({ name: "a", version: "1.0.0", auth: [login, key], handlers: [], ...server });
  const [used, ...others] = listSignIns(made);
  assertEquals(others, []);
  const fetch = () => address ? Promise.resolve(address()) : Promise.reject(new Error("nobody listens"));
  const findings = await examineSignIn(used, { fetch });
  await made.close();
  const kept = findings.filter(({ level, check }) => level !== "ok" && check !== "resource");
  return kept.map(({ level, check, message }) => `${level}: ${check}: ${message}`);
}

/** A store that other processes could reach. */
function openStore() {
  return customStore(memoryStore()[INTERNALS].connect);
}

Deno.test("doctor --sign-in finds what keeps users from signing in", async () => {
  assertEquals(await diagnose({}), []);
  const remote = { resource: "https://notes.example/mcp" };
  const rows: readonly (readonly [Partial<OAuthProxyOptions>, readonly string[], object?, (() => Response)?])[] = [
    [{}, [`note: secret: ${sentence("secret")}`, `note: store: ${sentence("memory")}`], {}],
    [{}, [`note: store: ${sentence("memory")}`], { secret, store: memoryStore() }],
    [{ redirects: [] }, [`note: redirects: ${sentence("redirects")}`]],
    [
      { provider: github({ clientId: "fake-client", clientSecret: "wrong" }) },
      [`problem: client: ${sentence("incorrect_client_credentials")}`],
    ],
    [{ provider: github({ clientId: "a", clientSecret: "" }) }, [`problem: client: ${sentence("clientSecret")}`]],
    [
      { fetch: () => Promise.resolve(Response.json({ error: "redirect_uri_mismatch" })) },
      [`problem: client: ${sentence("redirect_uri_mismatch")}`],
    ],
    [{ fetch: () => Promise.reject(new Error("no route")) }, [`problem: client: ${sentence("no route")}`]],
    [{ fetch: () => Promise.resolve(new Response("<h1>")) }, [`note: client: ${sentence()}`]],
    [
      {
        provider: oidc("https://login.example", { clientId: "a", clientSecret: "b" }),
        fetch: () => Promise.resolve(new Response("down", { status: 503 })),
      },
      [`problem: provider: ${sentence("https://login.example", 503)}`],
    ],
    [remote, [
      `problem: secret: ${sentence("secret")}`,
      `note: store: ${sentence("memory")}`,
      `note: address: ${sentence("https://notes.example/callback")}`,
    ], {}],
    [
      remote,
      [`problem: address: ${sentence("https://notes.example/callback", 404)}`],
      undefined,
      () => new Response("<h1>Not found</h1>", { status: 404 }),
    ],
    [remote, [], undefined, () => new Response("incomplete", { status: 400 })],
  ];
  for (const [options, expected, ...rest] of rows) assertEquals(await diagnose(options, ...rest), expected);
});

const toFile = (options: string) =>
  `import { createServer } from "@x/mcp";\n` +
  `import { anyone, github, oauthProxy } from "@x/mcp/oauth/proxy";\n` +
  `import { fakeGitHub } from "@x/mcp/testing";\n` +
  `const hub = fakeGitHub();\n` +
  `const provider = github(hub.client);\n` +
  `const auth = oauthProxy({ resource: "${resource}", provider, fetch: hub.fetch, ${options} });\n` +
  `export default createServer({ name: "a", version: "1.0.0", handlers: [], auth, secret: "${secret}" });\n`;

Deno.test("doctor --sign-in names the callback URL, and explains usage errors", async () => {
  const none =
    `import { createServer } from "@x/mcp";\nexport default createServer({ name: "a", version: "1.0.0" });\n`;
  await withFiles({ "open.ts": toFile("who: anyone"), "none.ts": none }, async (cwd) => {
    const { code, stdout, stderr } = await runHere(["doctor", "open.ts", "--sign-in"], { cwd });
    assertEquals({ code, stderr }, { code: 0, stderr: "" }, stdout);
    assertMatch(stdout, /^ok +callback +\S.*http:\/\/127\.0\.0\.1:3000\/callback/m);
    assertMatch(stdout, /^note +who +\S.*GitHub/m);
    const mistakes = [
      [["none.ts"], sentence("oauthProxy()")],
      [[], sentence("server.ts --sign-in")],
      [["http://x/mcp"], sentence("http://x/mcp")],
      [["open.ts", "--timeout", "3"], sentence("--timeout")],
      [["open.ts", "--store"], sentence("--store", "--sign-in")],
    ] as const;
    for (const [words, message] of mistakes) {
      const { code, stderr } = await runHere(["doctor", "--sign-in", ...words], { cwd });
      assert(code === 2 || code === 1, `${words}: ${code}`);
      assertStringIncludes(stderr, message);
    }
  });
});

Deno.test("doctor finds no problem at the URL of a server whose users sign in at a provider", async () => {
  const { promise, resolve } = Promise.withResolvers<{ fetch(request: Request, info?: object): Promise<Response> }>();
  const http = await openHttpServer(async (request, info) => await (await promise).fetch(request, info));
  const hub = fakeGitHub();
  const provider = github(hub.client);
  const auth = oauthProxy({ resource: `${http.origin}/mcp`, provider, who: () => false, fetch: hub.fetch });
  const server = createServer({ name: "a", version: "1.0.0", auth, handlers: [] });
  resolve(server);
  const findings = await examine({ url: `${http.origin}/mcp` });
  assertEquals(findings.filter(({ level }) => level === "problem"), []);
  assert(findings.some(({ check, level }) => check === "authorization server" && level === "ok"));
  await server.close();
  await http.stop();
});
