// Tools and resources in config files that send HTTP requests.
import { assert, assertEquals, assertMatch, assertRejects, assertStringIncludes } from "@std/assert";
import { platform } from "../../../src/cli/platform.ts";
import { load } from "../../../src/cli/load.ts";
import { isPrivateAddress } from "../../../src/ready/private_addresses.ts";
import type { Connection } from "../../../src/testing/testing.ts";
import { toOutcome, withFolder, withServer } from "../folder.ts";
import { sentence } from "../../support/messages.ts";

interface SeenRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Headers;
  readonly body: string;
}

interface Api {
  /** The host and port of the test server, such as `127.0.0.1:40000`. */
  readonly host: string;
  readonly seen: readonly SeenRequest[];
}

/**
 * Starts an HTTP server on this machine, and connects to an MCP server whose config file sends requests to the HTTP
 * server.
 */
async function withApi(
  respond: (request: Request, api: Api) => Response | Promise<Response>,
  make: (api: Api) => Record<string, unknown>,
  use: (client: Connection, api: Api) => Promise<void>,
): Promise<void> {
  const seen: SeenRequest[] = [];
  const state = { host: "", seen };
  const served = await platform.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: async (request) => {
      const { method, url, headers } = request;
      seen.push({ method, url: url.slice(url.indexOf("/", 8)), headers, body: await request.clone().text() });
      return await respond(request, state);
    },
  });
  state.host = `127.0.0.1:${served.port}`;
  try {
    await withServer({ "mcp.jsonc": make(state) }, (client) => use(client, state));
  } finally {
    await served.stop();
  }
}

/** Returns a config file with one tool, `it`. */
function toFile(fetch: Record<string, unknown>, properties: Record<string, unknown> = {}, required: string[] = []) {
  return { tools: { it: { description: "Does it", input: { properties, required }, fetch } } };
}

const text = { type: "string" };
const echo = () => Response.json({ ok: true });

Deno.test("an argument cannot change the structure of a URL", async () => {
  await withApi(
    echo,
    ({ host }) =>
      toFile(
        {
          url: `http://${host}/users/{{a}}/posts?fixed=1&q={{a}}`,
          query: { list: "{{list}}", more: "{{more}}", said: "<{{a}}>" },
          allowPrivate: [host],
        },
        { a: text, list: { type: "array", items: text }, more: text },
        ["a"],
      ),
    async (client, { seen }) => {
      for (
        const [a, path, query] of [
          ["ada", "ada", "ada"],
          ["a/b", "a%2Fb", "a%2Fb"],
          ["?x=1&y#z", "%3Fx%3D1%26y%23z", "%3Fx%3D1%26y%23z"],
          ["%2e%2e", "%252e%252e", "%252e%252e"],
          ["@evil.example", "%40evil.example", "%40evil.example"],
          ["é\r\nx: y", "%C3%A9%0D%0Ax%3A%20y", "%C3%A9%0D%0Ax%3A%20y"],
        ]
      ) {
        assertEquals(toOutcome(await client.callTool("it", { a })).isError, false);
        const { url } = seen[seen.length - 1];
        assert(url.startsWith(`/users/${path}/posts?fixed=1&q=${query}&said=%3C`), url);
      }
      await client.callTool("it", { a: "x", list: ["1", "2&3"], more: "" });
      assertEquals(seen[seen.length - 1].url, "/users/x/posts?fixed=1&q=x&list=1&list=2%263&more=&said=%3Cx%3E");
      const before = seen.length;
      // Some servers decode a path before they resolve its dot segments.
      for (const a of ["..", ".", "", "../admin"]) {
        const { isError } = toOutcome(await client.callTool("it", { a }));
        assert(isError, a);
      }
      assertEquals(seen.length, before);
    },
  );
});

Deno.test("arguments keep their types in a JSON body, and headers can contain environment variables", async () => {
  await withApi(
    echo,
    ({ host }) =>
      toFile(
        {
          url: `http://${host}/`,
          headers: { authorization: "Bearer ${MCP_NOT_SET:-key}", "x-for": "{{a}}" },
          body: { title: "{{a}}", count: "{{n}}", nested: ["{{flag}}", "n={{n}}", { deep: "{{a}}!" }], fixed: null },
          allowPrivate: ["127.0.0.1"],
        },
        { a: text, n: { type: "integer", default: 3 }, flag: { type: "boolean" } },
        ["a"],
      ),
    async (client, { seen }) => {
      await client.callTool("it", { a: '"quoted"' });
      await client.callTool("it", { a: "b", n: 1, flag: false });
      assertEquals(seen.map(({ body }) => JSON.parse(body)), [
        { title: '"quoted"', count: 3, nested: ["n=3", { deep: '"quoted"!' }], fixed: null },
        { title: "b", count: 1, nested: [false, "n=1", { deep: "b!" }], fixed: null },
      ]);
      assertEquals(seen.map(({ method }) => method), ["POST", "POST"]);
      assertEquals(seen[0].headers.get("content-type"), "application/json");
      assertEquals(seen[0].headers.get("authorization"), "Bearer key");
      assertEquals(seen[1].headers.get("x-for"), "b");
      const { isError } = toOutcome(await client.callTool("it", { a: "x\r\ninjected: yes" }));
      assert(isError);
      assertEquals(seen.length, 2);
    },
  );
  await withApi(
    echo,
    ({ host }) =>
      toFile({ url: `http://${host}/`, method: "PUT", body: "a: {{a}}", allowPrivate: [host] }, { a: text }, ["a"]),
    async (client, { seen }) => {
      await client.callTool("it", { a: "1" });
      assertEquals(seen.map(({ method, body }) => `${method} ${body}`), ["PUT a: 1"]);
    },
  );
});

Deno.test("the fields of a form are encoded, and json keeps the types of arguments", async () => {
  for (
    const [body, type, expected] of [
      [{ form: { role: "guest", name: "{{a}}", n: "{{n}}" } }, "application/x-www-form-urlencoded", [
        "role=guest&name=x%26role%3Dadmin&n=3",
      ]],
      [{ json: { name: "{{a}}", n: "{{n}}" } }, "application/json", ['{"name":"x&role=admin","n":3}']],
    ] as const
  ) {
    await withApi(
      echo,
      ({ host }) =>
        toFile({ url: `http://${host}/`, headers: { "x-optional": "{{o}}" }, ...body, allowPrivate: [host] }, {
          a: text,
          n: { type: "integer", default: 3 },
          o: text,
        }, ["a"]),
      async (client, { seen }) => {
        await client.callTool("it", { a: "x&role=admin" });
        assertEquals(seen.map(({ body }) => body), [...expected]);
        assertEquals([seen[0].headers.get("content-type"), seen[0].headers.get("x-optional")], [type, null]);
      },
    );
  }
});

Deno.test("a response becomes text, structured content, media or an error", async () => {
  const png = new Uint8Array([137, 80, 78, 71, 0, 1]);
  const answers: Record<string, () => Response> = {
    "/text": () => new Response("hello"),
    "/json": () => Response.json({ a: 1 }),
    "/list": () => Response.json([1]),
    "/broken": () => new Response("{", { headers: { "content-type": "application/json" } }),
    "/png": () => new Response(png, { headers: { "content-type": "image/png" } }),
    "/bytes": () => new Response(png),
    "/fails": () => new Response("no such user", { status: 404 }),
    "/empty": () => new Response(null, { status: 204 }),
  };
  await withApi(
    (request) => answers[new URL(request.url).pathname](),
    ({ host }) => toFile({ url: `http://${host}/{{a}}`, allowPrivate: [host] }, { a: text }, ["a"]),
    async (client, { host }) => {
      const call = (a: string) => client.callTool("it", { a });
      assertEquals(toOutcome(await call("text")), { text: "hello", isError: false });
      const json = await call("json");
      assertEquals([toOutcome(json).text, json.structuredContent], ['{"a":1}', { a: 1 }]);
      assertEquals((await call("list")).structuredContent, undefined);
      assertEquals(toOutcome(await call("broken")), { text: "{", isError: false });
      assertEquals((await call("png")).content, [{ type: "image", data: "iVBORwAB", mimeType: "image/png" }]);
      const [block] = (await call("bytes")).content;
      assertEquals(block, {
        type: "resource",
        resource: { uri: `http://${host}/bytes`, mimeType: "application/octet-stream", blob: "iVBORwAB" },
      });
      assertEquals(toOutcome(await call("fails")), {
        text: `${sentence(host, 404)}\nno such user`,
        isError: true,
      });
      assertEquals(toOutcome(await call("empty")), { text: "", isError: false });
    },
  );
});

Deno.test("a response that is too large or too slow is an error", async () => {
  const endless = () =>
    new Response(new ReadableStream({ pull: (sink) => sink.enqueue(new Uint8Array(10_000).fill(65)) }));
  await withApi(
    endless,
    ({ host }) => toFile({ url: `http://${host}/`, maxBytes: 50_000, allowPrivate: [host] }),
    async (client) => {
      const { text, isError } = toOutcome(await client.callTool("it"));
      assert(isError);
      assertEquals(text, sentence(50_000, "maxBytes"));
    },
  );
  const silent = new AbortController();
  const never = () =>
    new Promise<Response>((resolve) => silent.signal.addEventListener("abort", () => resolve(new Response())));
  await withApi(
    never,
    ({ host }) => toFile({ url: `http://${host}/`, timeoutMs: 200, allowPrivate: [host] }),
    async (client, { host }) => {
      const { text, isError } = toOutcome(await client.callTool("it"));
      assert(isError);
      assertEquals(text, sentence(`http://${host}`, "200 ms", "timeoutMs"));
      silent.abort();
    },
  );
});

/** Replaces the address of localhost in a message, because the address is ::1 on some machines. */
const withAddress = (text: string) => text.replace(/(localhost\S*:) \S+/, "$1 127.0.0.1");

Deno.test("redirect targets are checked too, and other origins do not get the headers", async () => {
  let target = "";
  const second = await platform.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: (request) => Promise.resolve(Response.json({ method: request.method, key: request.headers.get("x-key") })),
  });
  try {
    await withApi(
      (request) => {
        const { pathname } = new URL(request.url);
        if (pathname === "/end") return Response.json({ method: request.method, key: request.headers.get("x-key") });
        return new Response(null, { status: Number(pathname.slice(1)), headers: { location: target } });
      },
      ({ host }) =>
        toFile(
          {
            url: `http://${host}/{{status}}`,
            method: "POST",
            body: {},
            headers: { "x-key": "secret" },
            allowPrivate: [host],
          },
          { status: { type: "integer" } },
          ["status"],
        ),
      async (client, { host }) => {
        const call = async (status: number, to: string) => {
          target = to;
          return toOutcome(await client.callTool("it", { status }));
        };
        assertEquals(await call(307, "/end"), { text: '{"method":"POST","key":"secret"}', isError: false });
        assertEquals((await call(303, "/end")).text, '{"method":"GET","key":"secret"}');
        assertEquals((await call(302, `http://${host}/end`)).text, '{"method":"GET","key":"secret"}');
        for (
          const to of [
            `http://127.0.0.1:${second.port}/`,
            `http://localhost:${second.port}/`,
            "http://169.254.169.254/latest/meta-data",
            "http://[::1]/",
          ]
        ) {
          const { text, isError } = await call(303, to);
          assert(isError, to);
          assertEquals(withAddress(text), sentence(`allowPrivate: ["${new URL(to).host}"]`), to);
        }
        assertEquals((await call(302, "file:///etc/passwd")).text, sentence("file:", "https"));
        assertEquals((await call(302, "http://")).text, sentence());
        assertEquals((await call(302, "/302")).text, sentence(5));
      },
    );
    // Another origin gets no headers even if its host is allowed.
    await withApi(
      () => new Response(null, { status: 307, headers: { location: `http://localhost:${second.port}/` } }),
      ({ host }) =>
        toFile({ url: `http://${host}/`, headers: { "x-key": "secret" }, allowPrivate: [host, "localhost"] }),
      async (client) => assertEquals(toOutcome(await client.callTool("it")).text, '{"method":"GET","key":null}'),
    );
  } finally {
    await second.stop();
  }
});

Deno.test("requests reach this machine and its network only if the config file allows the host", async () => {
  for (
    const host of [
      "127.0.0.1:1",
      "127.1:1",
      "2130706433:1",
      "0x7f.0.0.1:1",
      "0177.0.0.1:1",
      "localhost:1",
      "LOCALHOST:1",
      "[::1]:1",
      "[::ffff:127.0.0.1]:1",
      "[::ffff:a00:1]:1",
      "0.0.0.0:1",
      "10.0.0.1:1",
      "169.254.169.254",
    ]
  ) {
    await withServer({ "mcp.jsonc": toFile({ url: `http://${host}/` }) }, async (client) => {
      const { text, isError } = toOutcome(await client.callTool("it"));
      assert(isError);
      assertEquals(withAddress(text), sentence(`allowPrivate: ["${new URL(`http://${host}/`).host}"]`), host);
    });
  }
});

Deno.test("an address is private unless it is on the public internet", () => {
  const open = ["1.1.1.1", "8.8.8.8", "100.63.255.255", "100.128.0.0", "172.15.0.1", "172.32.0.1", "192.167.0.1"];
  open.push("223.255.255.255", "2606:4700:4700::1111", "2001:4860:4860::8888", "::ffff:8.8.8.8", "64:ff9b::808:808");
  const closed = [
    "0.0.0.0",
    "10.255.255.255",
    "100.64.0.1",
    "127.0.0.1",
    "169.254.1.1",
    "172.16.0.1",
    "172.31.255.255",
  ];
  closed.push("192.168.0.1", "198.18.0.1", "224.0.0.1", "255.255.255.255", "::", "::1", "fe80::1", "fe80::1%eth0");
  closed.push("fc00::1", "fd12:3456::1", "ff02::1", "::ffff:127.0.0.1", "::ffff:7f00:1", "64:ff9b::7f00:1");
  closed.push("64:ff9b:1::1", "2002:7f00:1::", "2001:db8::1", "2001::1", "::127.0.0.1", "example", "1.2.3", "");
  assertEquals(open.filter(isPrivateAddress), []);
  assertEquals(closed.filter((address) => !isPrivateAddress(address)), []);
});

Deno.test("a URL can be served as a resource", async () => {
  let status = 200;
  await withApi(
    (request) =>
      request.headers.get("x-key") === "k"
        ? new Response(status === 200 ? "# Hi" : "", {
          status,
          headers: { "content-type": "text/markdown; charset=utf-8" },
        })
        : new Response("", { status: 401 }),
    ({ host }) => {
      const common = { headers: { "x-key": "k" }, allowPrivate: [host] };
      return {
        resources: [
          { url: `http://${host}/a`, name: "a", ...common },
          { url: `http://${host}/b`, name: "b", uri: "status://b", mimeType: "text/plain", ...common },
        ],
      };
    },
    async (client, { host }) => {
      assertEquals((await client.readResource(`http://${host}/a`)).contents, [
        { uri: `http://${host}/a`, mimeType: "text/markdown", text: "# Hi" },
      ]);
      assertEquals((await client.readResource("status://b")).contents, [
        { uri: "status://b", mimeType: "text/plain", text: "# Hi" },
      ]);
      status = 404;
      const error = await assertRejects(() => client.readResource("status://b"), Error);
      assertEquals(error.message, sentence());
      status = 500;
      const second = await assertRejects(() => client.readResource("status://b"), Error);
      assertEquals(second.message, sentence("status://b", host, 500));
    },
  );
});

for (
  const [title, fetch, ...names] of [
    ["an argument in the host", { url: "https://{{a}}/x" }, "tools.it.fetch.url: "],
    ["an argument in the host", { url: "https://api.{{a}}.com/x" }, "tools.it.fetch.url: "],
    ["an argument right after the host", { url: "https://api.com{{a}}" }, "tools.it.fetch.url: "],
    ["an argument in the port", { url: "https://api.com:{{a}}/" }, "tools.it.fetch.url: "],
    ["an argument as the scheme", { url: "{{a}}://api.com/" }, "tools.it.fetch.url: ", "http://"],
    ["a file URL", { url: "file:///etc/passwd" }, "tools.it.fetch.url: ", "http://", "https://"],
    ["an invalid URL", { url: "http://a b/" }, "tools.it.fetch.url: ", "https://host/path"],
    ["a password", { url: "https://me:secret@api.com/" }, "tools.it.fetch.url: "],
    ["a variable that is not set", { url: "https://${MCP_NOT_SET}/" }, "tools.it.fetch.url: ", "MCP_NOT_SET"],
    [
      "a variable that is not set",
      { url: "https://a.b/", headers: { a: "${MCP_NOT_SET}" } },
      "tools.it.fetch.headers.a: ",
      "MCP_NOT_SET",
    ],
    ["an unknown argument", { url: "https://a.b/{{c}}" }, "tools.it.fetch.url: {{c}} "],
    ["a body for GET", { url: "https://a.b/", method: "GET", body: {} }, "tools.it.fetch.body: ", "GET"],
    [
      "an argument in JSON text",
      { url: "https://a.b/", headers: { "content-type": "application/json" }, body: '{"a":"{{a}}"}' },
      "tools.it.fetch.body: ",
      "json",
    ],
    ["a form and a body", { url: "https://a.b/", form: { a: "{{a}}" }, body: "x" }, "tools.it.fetch.form: ", "body"],
    [
      "an unknown argument in the body",
      { url: "https://a.b/", body: { a: ["{{c}}"] } },
      "tools.it.fetch.body.a[0]: {{c}} ",
    ],
  ] as const
) {
  Deno.test(`a config file with ${title} (${JSON.stringify(fetch)}) is rejected with its position`, async () => {
    await withFolder({ "mcp.jsonc": toFile(fetch, { a: text }, ["a"]) }, async (folder) => {
      const error = await assertRejects(() => load(`${folder}/mcp.jsonc`), Error);
      assertMatch(error.message, /\/mcp\.jsonc:1:\d+: tools\.it\.fetch\./);
      assertStringIncludes(error.message, sentence(...names));
    });
  });
}

for (
  const [path, args, url] of [
    ["/notes/{{a}}", { a: "" }, undefined],
    ["/notes/{{a}}/", { a: "" }, undefined],
    ["/notes/{{a}}/items/{{b}}", { a: "x", b: "" }, undefined],
    ["/notes/{{a}}/items/{{b}}", { a: "", b: "x" }, undefined],
    ["/{{a}}", { a: "" }, undefined],
    ["/{{a}}{{b}}", { a: "", b: "" }, undefined],
    ["/notes/{{a}}?q={{b}}", { a: "", b: "x" }, undefined],
    ["/notes/{{a}}#{{b}}", { a: "", b: "x" }, undefined],
    ["/notes/{{a}}?q=/{{b}}", { a: "x", b: "" }, "/notes/x?q=/"],
    ["/{{a}}{{b}}", { a: "", b: "x" }, "/x"],
    ["/notes-{{a}}", { a: "" }, "/notes-"],
    ["/notes//{{a}}", { a: "x" }, "/notes//x"],
    ["/notes/{{a}}", { a: "/" }, "/notes/%2F"],
    ["/notes/{{a}}", { a: " " }, "/notes/%20"],
  ] as const
) {
  Deno.test(`an empty argument cannot change the path: ${path} with ${JSON.stringify(args)}`, async () => {
    const { a = "", b = "" }: { a?: string; b?: string } = args;
    await withApi(
      echo,
      ({ host }) =>
        toFile({ url: `http://${host}${path}`, method: "DELETE", allowPrivate: [host] }, { a: text, b: text }, [
          "a",
          "b",
        ]),
      async (client, { seen }) => {
        const outcome = toOutcome(await client.callTool("it", { a, b }));
        assertEquals(seen.map(({ url }) => url), url === undefined ? [] : [url]);
        assertEquals(outcome.isError, url === undefined);
        if (url === undefined) assertEquals(outcome.text, sentence());
      },
    );
  });
}

for (const status of [301, 302, 303, 307, 308]) {
  for (const method of ["GET", "POST", "PUT", "PATCH", "DELETE"]) {
    Deno.test(`a ${method} request that is redirected with ${status} to another origin sends neither its body nor its headers there`, async () => {
      const others: SeenRequest[] = [];
      const other = await platform.serve({
        hostname: "127.0.0.1",
        port: 0,
        fetch: async (request) => {
          const { method, url, headers } = request;
          others.push({ method, url, headers, body: await request.text() });
          return Response.json({ ok: true });
        },
      });
      const elsewhere = `127.0.0.1:${other.port}`;
      const body = method === "GET" ? {} : { body: { key: "s3cret" } };
      try {
        await withApi(
          () => new Response(null, { status, headers: { location: `http://${elsewhere}/in` } }),
          ({ host }) =>
            toFile({
              ...{ url: `http://${host}/`, method, headers: { "x-key": "s3cret", authorization: "s3cret" } },
              ...body,
              allowPrivate: [host, elsewhere],
            }),
          async (client) => {
            const { isError, text } = toOutcome(await client.callTool("it"));
            const becomesGet = method === "GET" || status === 303 || method === "POST" && status < 303;
            assertEquals(others.map(({ method }) => method), becomesGet ? ["GET"] : []);
            assertEquals(isError, !becomesGet);
            if (!becomesGet) assertEquals(text, sentence(`http://${elsewhere}`, "GET", "HEAD"));
            for (const { body, headers } of others) {
              assertEquals(body, "");
              assert(![...headers].flat().includes("s3cret"));
            }
          },
        );
      } finally {
        await other.stop();
      }
    });
  }
}
