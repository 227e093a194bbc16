// HTTP/2 requests have no Host header, so the server checks `:authority`, which every browser sends.
import { assertEquals } from "@std/assert";
import { MODERN, startFixture } from "./http.ts";
import { readReply } from "../support/requests.ts";

Deno.test({
  name: "a request over HTTP/2 is checked by its :authority header",
  ignore: typeof Deno === "undefined", // Bun serves HTTP/1.1 only
  async fn() {
    await using fixture = await startFixture();
    using client = Deno.createHttpClient({ http1: false, http2: true });
    const { headers, body } = fixture.good;
    const call = async (more: Record<string, string>) => {
      const { host: _host, ...rest } = headers as Record<string, string>; // The cast is safe, because each header has a single line.
      const url = `http://127.0.0.1:${fixture.port}/mcp`;
      const response = await fetch(url, { method: "POST", headers: { ...rest, ...more }, body: String(body), client });
      return [response.status, (await readReply(response)).error?.code];
    };
    for (let i = 0; i < 3; i++) assertEquals(await call({}), [200, undefined]);
    assertEquals(await call({ origin: "http://evil.example" }), [403, -32600]);
    assertEquals(await call({ origin: `http://127.0.0.1:${fixture.port}` }), [200, undefined]);
    assertEquals(await call({ "mcp-protocol-version": `${MODERN}x` }), [400, -32020]);
    fixture.ran.length = 0;
    await fixture.checkAlive("after this");
  },
});
