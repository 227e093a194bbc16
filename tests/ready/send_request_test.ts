// Tests of `sendRequest()`, which sends HTTP requests with limits. Hostile servers and names try to get around them.
import { assert, assertEquals, assertRejects } from "@std/assert";
import { ToolError } from "../../mod.ts";
import { sendRequest } from "../../src/ready/ready.ts";
import { findProcess } from "../../src/core/runtime.ts";
import { until } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";
import { patch } from "../support/patch.ts";
import { withApi } from "./api.ts";

/** Replaces the lookup of host names: the names get these addresses in order, and the last address for good. */
async function withAddresses(addresses: readonly string[], use: () => Promise<void>): Promise<void> {
  const { promises } = findProcess().getBuiltinModule("dns");
  const { lookup } = promises;
  let at = 0;
  const replaced = () => Promise.resolve([{ address: addresses[Math.min(at++, addresses.length - 1)] }]);
  Object.defineProperty(promises, "lookup", { value: replaced, configurable: true, writable: true });
  try {
    await use();
  } finally {
    Object.defineProperty(promises, "lookup", { value: lookup, configurable: true, writable: true });
  }
}

/** Replaces the global `fetch`. */
async function withFetch(replaced: (url: URL, init: RequestInit) => Response, use: () => Promise<void>): Promise<void> {
  using _patched = patch(globalThis, { fetch: (url: URL, init: RequestInit) => Promise.resolve(replaced(url, init)) });
  await use();
}

Deno.test("hostile: a name that changes its address is connected at the address that was checked", async () => {
  const seen: string[] = [];
  await withAddresses(["8.8.4.4", "127.0.0.1"], async () => {
    await withFetch((url, { headers }) => {
      seen.push(`${url.href} ${new Headers(headers).get("host")}`);
      return new Response("ok");
    }, async () => {
      const response = await sendRequest(new Request("http://rebind.example:8080/a?b=c"));
      assertEquals(await response.text(), "ok");
      const ask = () => sendRequest(new Request("http://rebind.example:8080/a"));
      await assertRejects(ask, ToolError, sentence("127.0.0.1"));
    });
  });
  assertEquals(seen, ["http://8.8.4.4:8080/a?b=c rebind.example:8080"]);
});

Deno.test("hostile: every hop of a redirect is checked, with a lookup of its own", async () => {
  const seen: string[] = [];
  await withAddresses(["8.8.4.4", "10.0.0.1"], async () => {
    await withFetch((url) => {
      seen.push(url.href);
      return new Response(null, { status: 302, headers: { location: "/again" } });
    }, async () => {
      await assertRejects(() => sendRequest(new Request("http://rebind.example/")), ToolError, sentence("10.0.0.1"));
    });
  });
  assertEquals(seen, ["http://8.8.4.4/"]);
});

const PRIVATE = [
  ...["127.0.0.1", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "0", "169.254.169.254", "[::1]", "[::]"],
  ...["[::ffff:127.0.0.1]", "[::ffff:a9fe:a9fe]", "[64:ff9b::7f00:1]", "[64:ff9b:1::7f00:1]", "[2002:7f00:1::]"],
  ...["[fe80::1]", "[fd00::1]", "[::127.0.0.1]", "[ff02::1]", "10.1", "192.168.257", "100.64.0.1", "%31%32%37.0.0.1"],
];

Deno.test("hostile: no notation of a private address reaches it", async () => {
  const sent: string[] = [];
  await withFetch((url) => (sent.push(url.href), new Response("inner")), async () => {
    for (const host of PRIVATE) await assertRejects(() => sendRequest(new Request(`http://${host}/`)), ToolError);
  });
  assertEquals(sent, []);
});

Deno.test("hostile: a public host cannot redirect to a private host, not even to one in allowPrivate", async () => {
  const seen: string[] = [];
  const locations = new Map([
    ["inner.example", "http://other-inner.example/"],
    ["other-inner.example", "http://detour.example/"],
  ]);
  const allowPrivate = ["inner.example", "other-inner.example"];
  const send = (host: string) => sendRequest(new Request(`http://${host}/`), { allowPrivate });
  const follow = (url: URL) => {
    seen.push(url.hostname);
    // The public host is reached by its address.
    const location = url.hostname === "8.8.4.4" ? "http://inner.example/" : locations.get(url.hostname);
    return new Response(null, { status: 302, headers: { location: location ?? "" } });
  };
  for (const host of ["public.example", "inner.example"]) {
    await withAddresses(["8.8.4.4", "10.0.0.1"], async () => {
      await withFetch(follow, async () => {
        await assertRejects(() => send(host), ToolError, sentence("inner.example", "10.0.0.1", "redirected"));
      });
    });
  }
  assertEquals(seen, ["8.8.4.4", "inner.example", "other-inner.example", "8.8.4.4"]);
});

Deno.test("hostile: a redirect to another origin gets neither credentials nor a body", async () => {
  const seen: string[] = [];
  await withApi(async (request) => {
    const { headers, method } = request;
    seen.push(`other ${method} ${headers.get("authorization")} ${headers.get("cookie")} ${await request.text()}`);
    return new Response("other");
  }, async (other) => {
    await withApi((request) => {
      seen.push(`first ${request.method} ${request.headers.get("authorization")}`);
      const status = Number(new URL(request.url).pathname.slice(1));
      return new Response(null, { status, headers: { location: `http://${other}/there` } });
    }, async (host) => {
      const send = (status: number, init: RequestInit) =>
        sendRequest(
          new Request(`http://${host}/${status}`, { ...init, headers: { authorization: "Bearer s", cookie: "a=b" } }),
          { allowPrivate: [host, other] },
        );
      assertEquals(await (await send(302, {})).text(), "other");
      assertEquals(await (await send(303, { method: "POST", body: "secret" })).text(), "other");
      await assertRejects(() => send(307, { method: "POST", body: "secret" }), ToolError, sentence("GET"));
      await assertRejects(() => send(308, { method: "DELETE" }), ToolError, sentence("GET"));
    });
  });
  assertEquals(seen, [
    "first GET Bearer s",
    "other GET null null ",
    "first POST Bearer s",
    "other GET null null ",
    "first POST Bearer s",
    "first DELETE Bearer s",
  ]);
});

Deno.test("bytes and forms with files are sent, also again after a redirect", async () => {
  await withApi(async (request) => {
    if (new URL(request.url).pathname === "/first") {
      await request.arrayBuffer();
      return new Response(null, { status: 307, headers: { location: "/second" } });
    }
    const type = request.headers.get("content-type") ?? "";
    if (!type.startsWith("multipart/")) return new Response(await request.arrayBuffer());
    const form = await request.formData();
    const file = form.get("file");
    assert(file instanceof File);
    return new Response(`${form.get("name")} ${file.name} ${file.type} ${await file.text()}`);
  }, async (host) => {
    const limits = { allowPrivate: [host] };
    const bytes = Uint8Array.from([0, 255, 128]);
    const echoed = await sendRequest(new Request(`http://${host}/first`, { method: "PUT", body: bytes }), limits);
    assertEquals(new Uint8Array(await echoed.arrayBuffer()), bytes);
    const body = new FormData();
    body.append("name", "Ada");
    body.append("file", new File(["hello"], "a.csv", { type: "text/csv" }));
    const sent = await sendRequest(new Request(`http://${host}/first`, { method: "POST", body }), limits);
    assertEquals(await sent.text(), "Ada a.csv text/csv hello");
  });
});

Deno.test("hostile: huge, endless and compressed answers end at the limits", async () => {
  const endless = () => new ReadableStream({ pull: (controller) => controller.enqueue(new Uint8Array(10_000)) });
  const silent = () => new ReadableStream({ start: (controller) => controller.enqueue(new Uint8Array(1)) });
  const { promise: ended, resolve: end } = Promise.withResolvers<void>();
  await withApi(async (request) => {
    const { pathname } = new URL(request.url);
    if (pathname === "/endless") return new Response(endless());
    if (pathname === "/silent") return new Response(silent());
    if (pathname === "/hang") await ended;
    const zeros = new Blob([new Uint8Array(50_000_000)]).stream().pipeThrough(new CompressionStream("gzip"));
    const bomb = await new Response(zeros).arrayBuffer();
    return new Response(bomb, { headers: { "content-encoding": "gzip" } });
  }, async (host) => {
    const read = async (path: string, limits: object) => {
      const response = await sendRequest(new Request(`http://${host}${path}`), { allowPrivate: [host], ...limits });
      return await response.text();
    };
    await assertRejects(() => read("/endless", { maxBytes: 100_000 }), ToolError, sentence("maxBytes"));
    await assertRejects(() => read("/bomb", { maxBytes: 100_000 }), ToolError, sentence("maxBytes"));
    await assertRejects(() => read("/silent", { timeoutMs: 50 }), ToolError, sentence("timeoutMs"));
    await assertRejects(() => read("/hang", { timeoutMs: 50 }), ToolError, sentence("timeoutMs"));
    end();
  });
});

Deno.test("hostile: the bytes up to the limit can be read before the error", async () => {
  const fetch = () => new Response("0123456789");
  const { body } = await sendRequest(new Request("https://app.example/"), { fetch, maxBytes: 4 });
  const reader = body?.getReader();
  assertEquals(new TextDecoder().decode((await reader?.read())?.value), "0123");
  await assertRejects(async () => await reader?.read(), ToolError, sentence("maxBytes"));
});

Deno.test("errors contain neither the path nor the query, which may contain secrets", async () => {
  await withApi(() => new Response("x"), async (host) => {
    // The certificate cannot be valid, because the server speaks no TLS.
    const request = new Request(`https://${host}/private?key=secret`);
    const error = await assertRejects(() => sendRequest(request, { allowPrivate: [host] }), ToolError);
    assert(!/secret|private/.test(error.message), error.message);
  });
});

Deno.test("an app in this process responds, and a redirect cannot leave it", async () => {
  const fetch = (request: Request) => {
    const { pathname } = new URL(request.url);
    if (pathname === "/out") return Response.redirect("https://other.example/");
    return pathname === "/old" ? Response.redirect("https://app.example/new") : new Response(pathname);
  };
  const send = (path: string) => sendRequest(new Request(`https://app.example${path}`), { fetch });
  assertEquals(await (await send("/old")).text(), "/new");
  await assertRejects(() => send("/out"), ToolError, sentence("other.example"));
  const never = { fetch: () => new Promise<Response>(() => {}), timeoutMs: 50 };
  await assertRejects(() => sendRequest(new Request("https://app.example/"), never), ToolError, sentence("timeoutMs"));
});

Deno.test("the signal of a request ends the request and its body", async () => {
  const controller = new AbortController();
  const fetch = () => new Response(new ReadableStream());
  const request = new Request("https://app.example/", { signal: controller.signal });
  const response = await sendRequest(request, { fetch });
  const text = response.text();
  controller.abort();
  await assertRejects(() => text, ToolError);
});

Deno.test("the timeout of a request ends with its body, and does not abort work that the app continues", async () => {
  const signals: AbortSignal[] = [];
  const answer = (response: () => Response | Promise<Response>) => (request: Request) => {
    signals.push(request.signal);
    return response();
  };
  const send = async (response: () => Response | Promise<Response>) =>
    await sendRequest(new Request("https://app.example/"), { fetch: answer(response), timeoutMs: 40 });
  assertEquals(await (await send(() => new Response("whole"))).text(), "whole");
  await send(() => new Response(null, { status: 204 }));
  await (await send(() => new Response("left"))).body?.cancel();
  await assertRejects(
    () =>
      sendRequest(new Request("https://app.example/"), { fetch: answer(() => new Response("long")), maxBytes: 1 })
        .then((response) => response.text()),
    ToolError,
  );
  const unread = await send(() => new Response("unread"));
  // This timeout ends after the timeouts of the requests before it.
  await assertRejects(() => send(() => new Promise(() => {})), ToolError, sentence("timeoutMs"));
  await until(() => signals[4].aborted, "the timeout of the response that nobody has read");
  assertEquals(signals.map(({ aborted }) => aborted), [false, false, false, false, true, true]);
  await assertRejects(() => unread.text(), ToolError);
});
