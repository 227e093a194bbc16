// Requests whose body has been read, cut or emptied by code in front of the server. The error names the usual causes.
import { assertEquals } from "@std/assert";
import { createServer, tool } from "@x/mcp";
import { readAnswer, toRequest } from "../support/requests.ts";
import { sentence } from "../support/messages.ts";

const server = createServer({ name: "plain", version: "1.0.0", handlers: [tool({ name: "ping", run: () => "pong" })] });

const INCOMPLETE = { code: -32600, message: sentence("the body is incomplete") };
const EMPTY = { code: -32700, message: sentence("it is empty") };

/** A request whose body has another source. */
function withBody(request: Request, body: ReadableStream<Uint8Array<ArrayBuffer>>): Request {
  // `duplex` is required for a stream, but missing in the types of some runtimes.
  const init: RequestInit & { readonly duplex: "half" } = {
    method: "POST",
    headers: request.headers,
    body,
    duplex: "half",
  };
  return new Request(request.url, init);
}

type Change = (request: Request) => Request | Promise<Request>;

/** What code in front of the server does to the body of a request. */
const changes: Readonly<Record<string, Change>> = {
  "is read as JSON": async (request) => {
    await request.json();
    return request;
  },
  "is read as bytes": async (request) => {
    await request.arrayBuffer();
    return request;
  },
  "is locked by a reader": (request) => {
    request.body?.getReader();
    return request;
  },
  "fails at the limit of a framework": (request) =>
    withBody(request, new ReadableStream({ start: (controller) => controller.error(new Error("413")) })),
  "fails after its first piece": (request) => {
    let pieces = 0;
    const pull = (controller: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>>) => {
      if (pieces++) controller.error(new Error("413"));
      else controller.enqueue(new TextEncoder().encode("{"));
    };
    return withBody(request, new ReadableStream({ pull }));
  },
};

for (const [what, change] of Object.entries(changes)) {
  for (const size of ["small", "large", "unsized"]) {
    Deno.test(`the error for ${size === "unsized" ? "an" : "a"} ${size} body that ${what} names its usual causes`, async () => {
      // The server reads a body below 64 KiB with a Content-Length in another way.
      const headers: Record<string, string> = size === "unsized"
        ? {}
        : { "content-length": size === "large" ? "99000" : "900" };
      const request = toRequest("ping", {}, headers);
      const { status, error } = await readAnswer(await server.fetch(await change(request)));
      assertEquals([status, { ...error }], [400, INCOMPLETE]);
    });
  }
}

Deno.test("the error for an empty body names body parsers", async () => {
  const requests = [
    withBody(toRequest("ping"), new ReadableStream({ start: (controller) => controller.close() })),
    new Request("http://localhost/mcp", { method: "POST", headers: toRequest("ping").headers, body: "" }),
    new Request("http://localhost/mcp", { method: "POST", headers: toRequest("ping").headers }),
  ];
  for (const request of requests) {
    const { status, error } = await readAnswer(await server.fetch(request));
    assertEquals([status, { ...error }], [400, EMPTY]);
  }
});
