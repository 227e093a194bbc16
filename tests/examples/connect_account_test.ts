// The example with a page that connects an account: only the user who called the tool can use the link.
import { assertEquals } from "@std/assert";
import server, { sessions } from "../../examples/connect_account.ts";
import { toPrincipalId } from "../../src/auth/oauth/oauth.ts";
import { connectTest } from "../../src/testing/testing.ts";
import { textOf } from "../support/behaviour.ts";

/** Opens a page as the user of a session. */
async function open(url: string, session?: string): Promise<Response> {
  const { pathname, search } = new URL(url);
  const headers = new Headers(session === undefined ? {} : { cookie: `session=${session}` });
  return await server.fetch(new Request(`http://127.0.0.1${pathname}${search}`, { headers }));
}

for (const era of ["modern", "legacy"] as const) {
  Deno.test(`connect_account: only the caller can open the link and finish the login (${era})`, async () => {
    sessions.set("s-ada", "ada").set("s-bob", "bob");
    let link = "";
    await using client = await connectTest(server, {
      era,
      principal: { id: toPrincipalId("https://login.example.com", "ada") },
      onElicitUrl({ url }) {
        link = url;
        return { action: "accept" };
      },
    });
    assertEquals(textOf(await client.callTool("repositories")), "Connect the account on the page, then try again.");
    assertEquals(link.startsWith("https://notes.example.com/connect?"), true, link);

    const login = await open(link);
    assertEquals([login.status, login.headers.get("location")?.split("?")[0]], [
      302,
      "https://notes.example.com/login",
    ]);
    assertEquals((await open(link, "s-bob")).status, 403);
    const begun = await open(link, "s-ada");
    const { origin, searchParams } = new URL(begun.headers.get("location") ?? "");
    assertEquals([begun.status, origin], [302, "https://github.com"]);

    const callback = `https://notes.example.com/connected?state=${searchParams.get("state")}`;
    assertEquals((await open(callback, "s-bob")).status, 403);
    assertEquals((await open(callback, "s-ada")).status, 502); // GitHub sent no code
    assertEquals((await open(callback, "s-ada")).status, 403); // a state can be used once
  });
}
