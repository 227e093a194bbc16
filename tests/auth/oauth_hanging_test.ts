// An introspection that never settles, and ignores its signal.
import { assertEquals } from "@std/assert";
import { oauth } from "../../src/auth/oauth/oauth.ts";
import { createServer, tool } from "../../mod.ts";
import { toRequest } from "../support/requests.ts";

const resource = "http://localhost/mcp";

Deno.test("a token is checked again after its first check was given up", async () => {
  let asked = 0;
  const hang = new Promise<never>(() => {});
  const auth = oauth({
    resource,
    issuers: ["https://login.example.com"],
    introspection: () => asked++ ? { active: true, aud: resource, sub: "ada" } : hang,
  });
  const limits = { auth: { timeoutMs: 50 } };
  const handlers = [tool({ name: "hi", run: () => "Hi" })];
  const server = createServer({ name: "x", version: "1", auth, limits, handlers, observer: { fault() {} } });
  const ask = async () => {
    const request = new Request(toRequest("tools/list"));
    request.headers.set("authorization", "Bearer opaque");
    const response = await server.fetch(request);
    await response.body?.cancel();
    return response.status;
  };
  const statuses = [await ask(), await ask()];
  await server.close();
  assertEquals([statuses, asked], [[503, 200], 2]);
});
