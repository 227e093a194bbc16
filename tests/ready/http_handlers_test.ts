// Tests of `httpTool()` and `httpResource()`, which send HTTP requests.
import { assert, assertEquals, assertThrows } from "@std/assert";
import { cache } from "../../src/layers/layers.ts";
import { httpResource, httpTool, type HttpToolRequest } from "../../src/ready/ready.ts";
import { textOf } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";
import { testClient } from "../support/test_server.ts";
import { withApi } from "./api.ts";

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
    await using client = await testClient({ handlers: [get, post, status] });
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
    await using client = await testClient({ handlers: [...tools, redirected, read] });
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

// Arguments in the bodies and headers of requests. An argument cannot add fields, elements or header parts.

type Sent = Omit<HttpToolRequest, "url" | "allowPrivate">;

const bodyInput = {
  properties: {
    name: { type: "string" },
    note: { type: "string" },
    any: {},
    list: { type: "array", items: { type: "string" } },
    count: { type: "integer", default: 3 },
  },
};

/** What the server got: the content type, the body, and the headers whose names begin with `x-`, and the cookie. */
interface Seen {
  readonly type: string | null;
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Calls a tool with each of the arguments. Returns what the server got, or the error that the model reads. */
async function send(fetch: Sent, ...calls: readonly Readonly<Record<string, unknown>>[]) {
  const seen: Seen[] = [];
  const all: (Seen | string)[] = [];
  await withApi(async (request) => {
    const headers = [...request.headers].filter(([name]) => /^(x-.*|cookie)$/.test(name));
    const body = await request.text();
    seen.push({ type: request.headers.get("content-type"), body, headers: Object.fromEntries(headers) });
    return new Response("ok");
  }, async (host) => {
    const it = httpTool({
      name: "it",
      input: bodyInput,
      fetch: { ...fetch, url: `http://${host}/`, allowPrivate: [host] },
    });
    await using client = await testClient({ handlers: [it] });
    for (const args of calls) {
      const result = await client.callTool("it", args);
      all.push(result.isError ? textOf(result) : seen[seen.length - 1]);
    }
  });
  return all;
}

const toBodies = (all: readonly (Seen | string)[]) => all.map((each) => typeof each === "string" ? each : each.body);
const FORM = "application/x-www-form-urlencoded";

Deno.test("the fields of a form are encoded, so that an argument adds no field", async () => {
  const form = { role: "guest", name: "{{name}}", said: "<{{note}}>", tag: "{{list}}", n: "{{count}}" };
  const all = await send(
    { form },
    { name: "ada&role=admin", note: "a=b" },
    { name: "é +%26", list: ["x&role=admin", "y"] },
    {},
  );
  assertEquals(toBodies(all), [
    "role=guest&name=ada%26role%3Dadmin&said=%3Ca%3Db%3E&n=3",
    "role=guest&name=%C3%A9%20%2B%2526&tag=x%26role%3Dadmin&tag=y&n=3",
    "role=guest&n=3",
  ]);
  assertEquals(all.map((each) => Object(each).type), Array(3).fill(FORM));
  for (const body of toBodies(all)) assertEquals(new URLSearchParams(body).getAll("role"), ["guest"]);
});

Deno.test("a text body is encoded for its content type", async () => {
  const toText = (type: string | undefined, body: string) =>
    send(
      { headers: type === undefined ? {} : { "Content-Type": type }, body },
      { name: "a&role=b", note: `</note><role id="1">'&` },
    );
  for (const type of [FORM, `${FORM.toUpperCase()}; charset=utf-8`]) {
    const [form] = await toText(type, "role=guest&name={{name}}&said={{note}}");
    assertEquals(toBodies([form]), [
      "role=guest&name=a%26role%3Db&said=%3C%2Fnote%3E%3Crole%20id%3D%221%22%3E'%26",
    ]);
    assertEquals(Object(form).type, type);
  }
  for (const type of ["application/xml", "text/xml; charset=utf-8", "application/soap+xml"]) {
    const xml = `<?xml version="1.0"?><a b="{{name}}" c='x{{name}}'><!-- d --><note>{{note}} {{count}}</note></a>` +
      `<p q="1>'2" r = '{{name}}">'>it's "{{name}}</p>`;
    const [{ body }] = await toText(type, xml) as readonly Seen[];
    const escaped = "&#60;/note&#62;&#60;role id=&#34;1&#34;&#62;&#39;&#38;";
    assertEquals(
      body,
      `<?xml version="1.0"?><a b="a&#38;role=b" c='xa&#38;role=b'><!-- d --><note>${escaped} 3</note></a>` +
        `<p q="1>'2" r = 'a&#38;role=b">'>it's "a&#38;role=b</p>`,
    );
  }
  // Without a content type, the body is plain text.
  for (const type of [undefined, "text/plain; charset=utf-8"]) {
    const [{ body, type: sent }] = await toText(type, "Name: {{name}}, {{note}}") as readonly Seen[];
    assertEquals([body, sent?.startsWith("text/plain")], [`Name: a&role=b, </note><role id="1">'&`, true]);
  }
});

Deno.test("a value in json keeps its type, and a text stays one JSON string", async () => {
  const json = { role: "guest", name: "{{name}}", said: "<{{note}}>", any: "{{any}}", list: ["{{any}}", "{{list}}"] };
  const all = await send({ json }, { name: '","role":"admin', note: '"', any: { role: "admin" } }, { any: null }, {});
  assertEquals(toBodies(all).map((body) => JSON.parse(body)), [
    {
      role: "guest",
      name: '","role":"admin',
      said: '<">',
      any: { role: "admin" },
      list: [{ role: "admin" }],
    },
    { role: "guest", said: "<>", any: null, list: [null] },
    { role: "guest", said: "<>", list: [] },
  ]);
  assertEquals(all.map((each) => Object(each).type), Array(3).fill("application/json"));
  const when = new Date(0);
  const [patch, scalar, falsy, absent] = [
    await send({ json: [{ op: "add", when }], headers: { "Content-Type": "application/json-patch+json" } }, {}),
    await send({ json: "{{any}}" }, { any: "text" }, { any: 5 }),
    await send({ json: null }, {}),
    await send({ json: "{{any}}" }, {}),
  ];
  assertEquals([Object(patch[0]).type, toBodies(patch)], [
    "application/json-patch+json",
    ['[{"op":"add","when":"1970-01-01T00:00:00.000Z"}]'],
  ]);
  assertEquals([toBodies(scalar), Object(scalar[1]).type], [['"text"', "5"], "application/json"]);
  assertEquals(toBodies(falsy), ["null"]);
  assertEquals(toBodies(absent), [""]);
});

Deno.test("a body that is a single argument is sent as text, or as JSON with its content type", async () => {
  const [object, list, number, text, absent] = await send(
    { body: "{{any}}" },
    { any: { a: 1 } },
    { any: [1] },
    { any: 5 },
    { any: '{"a":1}' },
    {},
  ) as readonly Seen[];
  const types = [object, list, number].map(({ type, body }) => [type, body]);
  assertEquals(types, [["application/json", '{"a":1}'], ["application/json", "[1]"], ["application/json", "5"]]);
  assertEquals([text.type?.startsWith("text/plain"), text.body, absent.body], [true, '{"a":1}', ""]);
  const [own] = await send({ body: "{{any}}", headers: { "content-type": "application/vnd.a+json" } }, { any: {} });
  assertEquals([Object(own).type, Object(own).body], ["application/vnd.a+json", "{}"]);
});

Deno.test("a header is left out with its argument, and an argument stays one part of a header", async () => {
  const headers = {
    "x-fixed": "a,b;c",
    "X-Whole": "{{name}}",
    "x-part": "v={{note}}; n={{count}}",
    cookie: "id={{any}}; role=guest",
  };
  const toHeaders = (all: readonly (Seen | string)[]) =>
    all.map((each) => typeof each === "string" ? "refused" : each.headers);
  const base = { "x-fixed": "a,b;c" };
  assertEquals(
    toHeaders(
      await send(
        { headers, method: "POST" },
        {},
        { name: "a, b;c", note: "x y", any: "1; role=admin" },
        ...["a; n=9", "a,b", 'a"', "a\\", "a\r\nx-more: 1", "a\0", "日"].map((note) => ({ note })),
        ...["a\r\nx-more: 1", "日"].map((name) => ({ name })),
      ),
    ),
    [
      base,
      { ...base, "x-whole": "a, b;c", "x-part": "v=x y; n=3", cookie: "id=1%3B%20role%3Dadmin; role=guest" },
      ...Array(9).fill("refused"),
    ],
  );
  const [text] = await send({ headers: { "x-part": "v={{note}}" } }, { note: "a;b" });
  assertEquals(text, sentence("note", '";"', "x-part"));
});

function make(fetch: object) {
  return httpTool({ name: "t", input: bodyInput, fetch: { url: "https://a.example/", ...fetch } as HttpToolRequest });
}

for (
  const [i, [fetch, ...names]] of ([
    // The argument could change the structure of the body.
    [{ headers: { "content-type": "application/json" }, body: '{"role":"guest","name":"{{name}}"}' }, "body", "json"],
    [{ headers: { "content-type": "application/ld+json" }, body: '["{{name}}", 1]' }, "body", "json"],
    [{ body: '{"name":"{{name}}"}' }, "body", "json"],
    [{ body: ' [{{count}}, "{{name}}"]' }, "body", "json"],
    [{ body: '"{{name}}"' }, "body", "json"],
    [{ body: "<name>{{name}}</name>" }, "body", "application/xml"],
    [{ headers: { "content-type": "application/graphql" }, body: "{ user(name: {{name}}) }" }, "application/graphql"],
    [
      { headers: { "content-type": "multipart/form-data; boundary=a" }, body: "--a\r\n{{name}}" },
      "multipart/form-data",
    ],
    [{ headers: { "content-type": "text/html" }, body: "<p>{{name}}" }, "text/html"],
    ...[
      "<!-- <a> --> <b {{name}}",
      "<a {{name}}>",
      "<a b={{name}}>",
      "<{{name}}>",
      "<![CDATA[ {{name}}",
      "<!-- > {{name}}",
      "<a b='1'{{name}}>",
      // A quoted attribute may contain the end of a tag, or the other kind of quote.
      "<a b='>' {{name}}='1'>",
      `<a b="x>y" c={{name}}>`,
      `<a b='"' {{name}}="1">`,
      `<a b="'>" c="1"{{name}}>`,
      `<a b="<" c="{{name}}">`,
    ]
      .map((body) => [{ headers: { "content-type": "application/xml" }, body }, "body"] as const),
    // The parts of the request contradict each other.
    [{ body: "a", json: {} }, "json", "body"],
    [{ json: {}, form: {} }, "form", "json"],
    [{ form: {}, method: "GET" }, "form", "GET"],
    [{ json: 0, method: "HEAD" }, "json", "HEAD"],
    [{ json: {}, headers: { "content-type": FORM } }, "json", FORM],
    [{ body: {}, headers: { "content-type": "text/plain" } }, "body", "text/plain"],
    [{ form: {}, headers: { "Content-Type": "application/json" } }, "form", "application/json"],
    [{ headers: { "content-type": "{{name}}" }, body: "{{note}}" }, "headers.content-type"],
    // These values would be ignored, or fail in each call.
    [{ headers: () => ({ a: "b" }) }, "fetch.headers"],
    [{ headers: new Headers({ a: "b" }) }, "fetch.headers"],
    [{ headers: [["a", "b"]] }, "fetch.headers"],
    [{ headers: { a: 5 } }, "fetch.headers"],
    [{ headers: { "a b": "c" } }, "headers.a b"],
    [{ headers: { a: "b\n" } }, "headers.a"],
    [{ headers: { a: "b", A: "c" } }, "headers.A"],
    [{ query: new URLSearchParams({ a: "b" }) }, "fetch.query"],
    [{ query: "a=b" }, "fetch.query"],
    [{ form: new Map([["a", "b"]]) }, "fetch.form"],
    [{ form: { a: 5 } }, "fetch.form"],
    [{ json: () => 1 }, "json"],
    [{ url: new URL("https://a.example/") }, "fetch.url"],
    [{ timeoutMs: Infinity }, "timeoutMs"],
    [{ timeoutMs: "5" }, "timeoutMs"],
    [{ maxBytes: -1 }, "maxBytes"],
    // An argument that does not exist.
    [{ json: { a: [{ b: "{{none}}" }] } }, "json.a.0.b", "{{none}}"],
    [{ form: { a: "{{none}}" } }, "form.a", "{{none}}"],
    [{ headers: { a: "{{none}}" } }, "headers.a", "{{none}}"],
    // The text looks like a form.
    [{ body: "role=guest&name={{name}}" }, "body", "form"],
    [{ body: "user[name]={{name}}" }, "body", "form"],
    [{ body: "{{name}}={{note}}" }, "body", "form"],
    [{ body: "role={{name}} {{note}}" }, "body", "form"],
    [{ body: "title=Dear guest&name={{name}}" }, "body", "form"],
    [{ body: "{{name}}&admin=false" }, "body", "form"],
    [{ body: "admin=false&{{name}}" }, "body", "form"],
    [{ body: "admin=false&&{{name}}={{note}}&\n" }, "body", "form"],
    [{ body: "a:b=1&\n $top={{count}}&note={{note}}" }, "body", "form"],
    [{ body: "$filter=name eq '{{name}}'" }, "body", "form"],
    [{ body: "näme=Dear {{name}}" }, "body", "form"],
    // An argument is next to a character that separates the fields of a form.
    [{ body: "flag&{{name}}" }, "body", "form"],
    [{ body: "a flag&{{name}}" }, "body", "form"],
    [{ body: "{{name}}&a flag" }, "body", "form"],
    [{ body: "my role=user&n={{name}}" }, "body", "form"],
    [{ body: "{{name}}=my role" }, "body", "form"],
    [{ body: "(key)={{name}}" }, "body", "form"],
    [{ body: "@id={{name}}" }, "body", "form"],
    [{ body: "n\u00e4me={{name}}" }, "body", "form"],
    [{ body: "?name={{name}}" }, "body", "form"],
    [{ body: "a=1\nb={{name}}" }, "body", "form"],
    [{ body: "Q&A: name={{name}}" }, "body", "form"],
    [{ body: "salt & pepper={{name}}" }, "body", "form"],
    [{ body: "temperature,city={{name}} value=1" }, "body", "form"],
    [{ body: "Dear {{name}}{{note}}& others" }, "body", "form"],
  ] as const).entries()
) {
  Deno.test(`a request is refused when the tool is made (${i + 1}: ${names})`, () => {
    assertThrows(() => make(fetch), TypeError, sentence(...names));
  });
}

Deno.test("a text that only resembles a form is sent as text", async () => {
  for (
    const body of [
      ...[
        "name = {{name}}",
        "R&D: {{name}}",
        "salt & pepper = {{name}}",
        "a=1\nb: {{name}}",
        "see https://a.example/?q=1 {{name}}",
      ],
      ...['name="{{name}}"\nrole = "user"', "1 == {{name}} && 2 == 2"],
    ]
  ) {
    assertEquals(toBodies(await send({ body }, { name: "a&b=c" })), [body.replace("{{name}}", "a&b=c")]);
  }
});

Deno.test("hostile: half of a surrogate pair is refused where it has no encoding", async () => {
  const name = "\ud83d";
  const requests: readonly Sent[] = [
    { query: { name: "{{name}}" } },
    { form: { name: "{{name}}" } },
    { headers: { cookie: "a={{name}}" } },
    { headers: { "content-type": FORM }, body: "name={{name}}" },
  ];
  for (const fetch of requests) {
    assertEquals(await send(fetch, { name }), [sentence("surrogate")], JSON.stringify(fetch));
  }
});

Deno.test("hostile: an argument in the path adds no dot segment, in any reading of its characters", async () => {
  const paths: string[] = [];
  await withApi((request) => {
    paths.push(new URL(request.url).pathname);
    return new Response("");
  }, async (host) => {
    const it = httpTool({
      name: "it",
      input: { ...bodyInput, required: ["name"] },
      fetch: { url: `http://${host}/users/{{name}}/notes`, allowPrivate: [host] },
    });
    await using client = await testClient({ handlers: [it] });
    const call = async (name: string) => textOf(await client.callTool("it", { name }));
    const odd = [
      ...["..", "../admin", "a/../../admin", "a/..", "..\\admin", "./a", "..;", "..;a=b", "..,a=b", ".,", ".\u3000;"],
      // Servers may ignore white space and control characters, or the text after a NUL character.
      ...[" ..", "\u00a0.", ". .", ".\u0007.", "..\r\n", "a/.. /b", "..\u200b", "..\0notes", ".\0", "\ufeff../b"],
      // Servers may convert these characters to ASCII.
      ...["\uff0e\uff0e", ".\u2024", "\u2025", "\uff0e\uff0e\uff0fadmin", "a\uff3c..", "..\uff1bv"],
    ];
    for (const name of odd) assertEquals(await call(name), sentence(".."), JSON.stringify(name));
    assertEquals(await call("a\ud83d"), sentence("surrogate"));
    for (const name of ["a/b", "a..b", "...", "a;b", ".a", "%2e%2e", ".. a", "a, b", "Zoë.", "é"]) await call(name);
  });
  const sent = ["a%2Fb", "a..b", "...", "a%3Bb", ".a", "%252e%252e", "..%20a", "a%2C%20b", "Zo%C3%AB.", "%C3%A9"];
  assertEquals(paths.map((path) => path.split("/")[2]), sent);
});

Deno.test("hostile: an argument that forms a dot segment together with the URL is refused", async () => {
  await withApi(() => new Response("sent"), async (host) => {
    const rows = [
      ["/a/.{{name}}", "."],
      ["/a/{{name}},v=1/b", ".."],
      ["/a/%2e{{name}}/b", "."],
      ["/a/{{name}}%00b", ".."],
      ["/a/%ef%bc%8e{{name}}", "."],
      ["/%ff/{{name}}/100%", ".."],
      ["/a/.{{name}}", "..", "sent"],
      ["/a/{{name}}%00b", "b..", "sent"],
      ["/%ff/{{name}}/100%", "b", "sent"],
    ];
    for (const [path, name, text = sentence("..")] of rows) {
      const fetch = { url: `http://${host}${path}`, allowPrivate: [host] };
      const it = httpTool({ name: "it", input: { ...bodyInput, required: ["name"] }, fetch });
      await using client = await testClient({ handlers: [it] });
      assertEquals(textOf(await client.callTool("it", { name })), text, `${path} ${name}`);
    }
  });
});

Deno.test("an argument whose name is a member of all objects can be missing", async () => {
  const names = ["constructor", "__proto__", "toString", "hasOwnProperty"];
  const template = (name: string) => `{{${name}}}`;
  const members = { properties: Object.fromEntries(names.map((name) => [name, { type: "string" }])) };
  const seen: string[] = [];
  await withApi(async (request) => {
    const extra = [...request.headers].filter(([name]) => name.startsWith("x-"));
    seen.push(`${new URL(request.url).search} ${await request.text()} ${JSON.stringify(extra)}`);
    return new Response("ok");
  }, async (host) => {
    const common = { url: `http://${host}/`, method: "POST", allowPrivate: [host] } as const;
    const query = Object.fromEntries(names.map((name, at) => [`q${at}`, template(name)]));
    const headers = Object.fromEntries(names.map((name, at) => [`x-${at}`, template(name)]));
    const requests: readonly Omit<HttpToolRequest, "url">[] = [
      { query, headers },
      { form: query },
      { json: { list: names.map(template), text: names.map(template).join() } },
      { body: `${names.map(template).join()}.` },
    ];
    const handlers = requests.map((fetch, at) =>
      httpTool({ name: `t${at}`, input: members, fetch: { ...fetch, ...common } })
    );
    await using client = await testClient({ handlers });
    for (const at of requests.keys()) await client.callTool(`t${at}`, {});
    await client.callTool("t0", JSON.parse('{"constructor":"a","__proto__":"b"}'));
  });
  assertEquals(seen, [
    "  []",
    "  []",
    ' {"list":[],"text":",,,"} []',
    " ,,,. []",
    '?q0=a&q1=b  [["x-0","a"],["x-1","b"]]',
  ]);
});

Deno.test("a resource refuses headers that it would not send", () => {
  const url = "https://a.example/";
  for (const headers of [() => ({}), new Headers({ a: "b" }), { a: 5 }, { "a b": "c" }, { a: "b\r\n" }]) {
    // The cast is necessary, because the types forbid such headers.
    const options = { url, name: "r", headers: headers as unknown as Record<string, string> };
    assertThrows(() => httpResource(options), TypeError, sentence("headers"));
  }
});
