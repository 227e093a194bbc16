// A custom `Authentication` over every transport and in both eras: metadata, scopes and expiry.
import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { type Server, tool } from "../../mod.ts";
import { requirePrincipal } from "../../src/auth/auth.ts";
import { connectTest, fakeClock } from "../../src/testing/testing.ts";
import { httpSse } from "../../src/server/transports/http/sse_2024.ts";
import { webSocket } from "../../src/server/transports/websocket.ts";
import { canUpgrade } from "../peers/runtime.ts";
import { textOf } from "../support/behaviour.ts";
import { toRequest } from "../support/requests.ts";
import { sentence } from "../support/messages.ts";
import { checkTokens, type Claims, sign } from "./token_check.ts";
import { openServer } from "../support/servers.ts";

const resource = "http://localhost/mcp";
const issuer = "https://login.example.com";
const algorithm = { name: "HMAC", hash: "SHA-256" };
const toKey = (secret: string) =>
  crypto.subtle.importKey("raw", new TextEncoder().encode(secret), algorithm, false, ["sign", "verify"]);
const key = await toKey("the key of the issuer");
const strange = await toKey("another key");

const whoami = tool({ name: "whoami", run: (_, ctx) => requirePrincipal(ctx).id });
const wipe = tool({ name: "wipe", scopes: ["notes:write"], run: () => "wiped" });

function start(options: { readonly clock?: ReturnType<typeof fakeClock>; readonly failures?: number } = {}) {
  const events: string[] = [];
  const { failures: first = 0, ...rest } = options;
  let failures = first;
  const auth = checkTokens({
    resource,
    issuer,
    loadKey(signal) {
      events.push("load");
      signal.addEventListener("abort", () => events.push("closed"));
      return failures-- > 0 ? Promise.reject(new Error("the issuer is down")) : Promise.resolve(key);
    },
  });
  const observer = { fault: ({ error }: { readonly error: unknown }) => events.push(`fault ${error}`) };
  const server = openServer({ auth, observer, handlers: [whoami, wipe], ...rest });
  return { server, events };
}

async function toHeaders(claims: Partial<Claims> = {}, by = key): Promise<{ readonly authorization: string }> {
  const token = await sign({ iss: issuer, sub: "ada", aud: resource, exp: 4e9, scope: "notes", ...claims }, by);
  return { authorization: `Bearer ${token}` };
}

async function findMetadata(server: Server): Promise<Response> {
  const { headers } = await server.fetch(toRequest("tools/list"));
  const [, url = ""] = /resource_metadata="([^"]+)"/.exec(headers.get("www-authenticate") ?? "") ?? [];
  return await server.fetch(new Request(url, { headers: { origin: "https://inspector.example.com" } }));
}

Deno.test("the challenge of a custom token check contains the URL of its metadata", async () => {
  const { server } = start();
  const found = await findMetadata(server);
  assertEquals([found.status, found.headers.get("access-control-allow-origin")], [200, "*"]);
  assertEquals((await found.json()).resource, resource);
});

for (const era of ["modern", "legacy"] as const) {
  for (const transport of ["memory", "http"] as const) {
    Deno.test(`a custom token check authenticates callers with their scopes (${era} over ${transport})`, async () => {
      const { server, events } = start();
      await using ada = await connectTest(server, { era, transport, headers: await toHeaders() });
      await using bob = await connectTest(server, {
        era,
        transport,
        headers: await toHeaders({ sub: "bob", scope: "notes:read" }),
      });
      assertEquals(textOf(await ada.callTool("whoami")), JSON.stringify([issuer, "ada"]));
      assertEquals(textOf(await bob.callTool("whoami")), JSON.stringify([issuer, "bob"]));
      assertEquals(textOf(await ada.callTool("wipe")), "wiped");
      const refusal = Object(await assertRejects(() => bob.callTool("wipe")));
      assertEquals([refusal.code, refusal.status], [-31403, 403]);
      await ada.close();
      await bob.close();
      await server.close();
      assertEquals(events, ["load", "closed"]);
    });
  }
}

Deno.test("a custom token check refuses tokens that are forged, issued for another audience or expired", async () => {
  const clock = fakeClock();
  const { server } = start({ clock });
  const exp = clock.date() / 1000 + 60;
  // The reasons come from the token check, except the last reason.
  const wrong = [
    ["wrong signature", await toHeaders({}, strange)],
    ["for something else", await toHeaders({ aud: "http://localhost/other" })],
    ["has expired", await toHeaders({ exp: exp - 60 })],
    [sentence(), { authorization: "Bearer x" }],
  ] as const;
  for (const [reason, headers] of wrong) {
    const request = toRequest("tools/call", { name: "whoami" }, headers);
    const upgrade = { ...headers, upgrade: "websocket", connection: "upgrade" };
    const responses = [
      await server.fetch(request),
      await httpSse(server).fetch(new Request("http://localhost/sse", { headers })),
      ...canUpgrade ? [await webSocket(server).fetch(new Request("http://localhost/ws", { headers: upgrade }))] : [],
    ];
    for (const response of responses) {
      assert(response, reason);
      assertEquals(response.status, 401, reason);
      assertStringIncludes(await response.text(), reason);
    }
  }
  const good = await toHeaders({ exp });
  assertEquals((await server.fetch(toRequest("tools/list", {}, good))).status, 200);
  await clock.advance(60_000);
  assertEquals((await server.fetch(toRequest("tools/list", {}, good))).status, 401);
});

Deno.test("a request fails if the token check cannot load its key, and the next request loads the key again", async () => {
  const { server, events } = start({ failures: 1 });
  const headers = await toHeaders();
  const failed = await server.fetch(toRequest("tools/list", {}, headers));
  assertEquals(failed.status, 500);
  assert(!(await failed.text()).includes("issuer"));
  assertEquals((await server.fetch(toRequest("tools/list", {}, headers))).status, 200);
  assertEquals(events, ["load", "fault Error: the issuer is down", "load"]);
});
