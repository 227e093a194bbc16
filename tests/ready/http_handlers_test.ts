// Tests of `httpTool()` and `httpResource()`, which send HTTP requests.
import { assert, assertEquals, assertThrows } from "@std/assert";
import { createServer } from "../../mod.ts";
import { cache } from "../../src/layers/layers.ts";
import { httpResource, httpTool } from "../../src/ready/ready.ts";
import { connectTest } from "../../src/testing/testing.ts";
import { textOf } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";
import { withApi } from "./api.ts";

const about = { name: "api", version: "1.0.0" };
const input = { properties: { city: { type: "string" }, days: { type: "integer", default: 3 } }, required: ["city"] };

Deno.test("a tool sends its arguments, and supports the other options of a tool", async () => {
  const seen: string[] = [];
  await withApi(async (request) => {
    const { method, url, headers } = request;
    seen.push(`${method} ${url.replace(/^http:\/\/[^/]*/, "")} ${headers.get("x-key")} ${await request.text()}`);
    return Response.json({ ok: true });
  }, async (host) => {
    const get = httpTool({
      name: "get",
      input,
      annotations: { readOnlyHint: true },
      use: [cache({ ttlMs: 60_000, shared: true })],
      text: "none",
      fetch: {
        url: `http://${host}/cities/{{city}}`,
        query: { days: "{{days}}" },
        headers: { "x-key": "${HOME}" },
        allowPrivate: [host],
      },
    });
    const post = httpTool({
      name: "post",
      input,
      fetch: { url: `http://${host}/cities`, body: { name: "{{city}}", days: "{{days}}" }, allowPrivate: [host] },
    });
    const status = httpResource({
      url: `http://${host}/status`,
      uri: "status://now",
      name: "status",
      allowPrivate: [host],
    });
    await using client = await connectTest(createServer({ ...about, handlers: [get, post, status] }));
    const { structuredContent } = await client.callTool("get", { city: "a/b" });
    assertEquals(structuredContent, { ok: true });
    assert((await client.callTool("get", { city: ".." })).isError);
    assert((await client.callTool("get", { city: "" })).isError);
    assert((await client.callTool("get", { city: "x", other: 1 })).isError);
    await client.callTool("get", { city: "a/b" });
    await client.callTool("post", { city: "Oslo", days: 5 });
    const { contents: [content] } = await client.readResource("status://now");
    assertEquals("text" in content && content.text, '{"ok":true}');
  });
  assertEquals(seen, [
    // A dollar sign does not start a variable. The second, equal call is answered from the cache.
    "GET /cities/a%2Fb?days=3 ${HOME} ",
    'POST /cities null {"name":"Oslo","days":5}',
    "GET /status null ",
  ]);
});

Deno.test("no request is sent to this machine, whether by name, by address or by a redirect", async () => {
  let requests = 0;
  await withApi((request, host) => {
    requests++;
    return new URL(request.url).pathname === "/there"
      ? new Response(null, { status: 302, headers: { location: `http://localhost:${host.split(":")[1]}/inner` } })
      : new Response("inner");
  }, async (host) => {
    const port = host.split(":")[1];
    const hosts = [
      host,
      `localhost:${port}`,
      `[::1]:${port}`,
      `2130706433:${port}`,
      `0x7f.1:${port}`,
      `[::ffff:7f00:1]:${port}`,
    ];
    const tools = hosts.map((each, i) => httpTool({ name: `t${i}`, fetch: { url: `http://${each}/` } }));
    const redirected = httpTool({ name: "redirected", fetch: { url: `http://${host}/there`, allowPrivate: [host] } });
    const read = httpResource({ url: `http://${host}/`, uri: "a:b", name: "read" });
    await using client = await connectTest(createServer({ ...about, handlers: [...tools, redirected, read] }));
    for (const { name } of tools) {
      const result = await client.callTool(name);
      assert(result.isError, name);
      assertEquals(textOf(result).replaceAll(port, "PORT"), sentence("PORT", "allowPrivate"));
    }
    assertEquals(requests, 0);
    assertEquals(textOf(await client.callTool("redirected")), sentence(`localhost:${port}`));
    assertEquals(requests, 1);
    const failed = await client.readResource("a:b").catch(({ message }) => message);
    assertEquals(failed, sentence(host));
    assertEquals(requests, 1);
  });
});

Deno.test("creating a handler throws for a request that no call could send safely", () => {
  const make = (fetch: object) => () => httpTool({ name: "t", input, fetch: fetch as never });
  assertThrows(make({ url: "https://{{city}}.example.com/" }), TypeError, sentence("t", "fetch.url"));
  assertThrows(make({ url: "ftp://a.example/" }), TypeError, sentence("fetch.url"));
  assertThrows(make({ url: "https://user:pass@a.example/" }), TypeError, sentence("fetch.url"));
  assertThrows(make({ url: "https://a.example/{{days}}/{{none}}" }), TypeError, sentence("{{none}}"));
  assertThrows(make({ url: "https://a.example/", body: {}, method: "GET" }), TypeError, sentence("GET"));
  assertThrows(make({ url: "https://a.example/", header: {} }), TypeError, sentence("fetch.header", "fetch.headers"));
  assertThrows(() => httpResource({ url: "https://a.example/{{x}}", name: "r" }), TypeError, sentence("r"));
  assertThrows(() => httpTool({ name: "t", run: () => "", fetch: { url: "https://a.example/" } } as never), TypeError);
});
