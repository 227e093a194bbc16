// `examples/github.ts` with a stand-in for GitHub: from the sign-in of the client to the user's repositories.
import { assertEquals, assertStringIncludes } from "@std/assert";
import { create } from "../../examples/github.ts";
import { connect } from "../../src/client/client.ts";
import { signIn } from "../../src/client/oauth/oauth.ts";
import { fakeGitHub } from "../../src/testing/testing.ts";
import { textOf } from "../support/behaviour.ts";

const origin = "http://127.0.0.1:3000";

Deno.test("examples/github.ts lists the repositories of the user who has signed in", async () => {
  const hub = fakeGitHub({ callback: `${origin}/callback` });
  const server = create({ ...hub.client, users: ["ada"], fetch: hub.fetch });
  const send = async (request: Request) => {
    return await (request.url.startsWith(origin) ? server.fetch(request) : hub.fetch(request));
  };
  /** Opens the consent page, allows the client, and follows the redirects. */
  const visit = async (url: string) => {
    const html = await (await send(new Request(url))).text();
    const body = new URLSearchParams({
      request: /name="request" value="([^"]+)"/.exec(html)?.[1] ?? "",
      action: "allow",
    });
    const consented = await send(new Request(`${origin}/consent`, { method: "POST", body, headers: { origin } }));
    const cookie = consented.headers.getSetCookie().map((each) => each.split(";")[0]).join("; ");
    const signedIn = await send(new Request(consented.headers.get("location") ?? "", { redirect: "manual" }));
    const back = await send(new Request(signedIn.headers.get("location") ?? "", { headers: { cookie } }));
    return back.headers.get("location") ?? "";
  };
  const connectAs = (id: number) => {
    hub.current = id;
    const userAgent = () => ({
      redirectUri: "http://127.0.0.1:7777/callback",
      visit: async ({ url }: { readonly url: string }) => await visit(url),
      end: () => {},
    });
    return connect(`${origin}/mcp`, { fetch: send, auth: signIn({ fetch: send, userAgent }) });
  };
  const [ada, grace] = hub.users;
  const client = await connectAs(ada.id);
  const repositories = (ada.repos ?? []).map(({ name }) => `${ada.login}/${name}`);
  assertEquals(textOf(await client.callTool("list_repositories")).split("\n"), repositories);
  await client.close();
  assertStringIncludes(await connectAs(grace.id).then(() => "connected", (error) => `${error}`), "access_denied");
  await server.close();
});
