// A server on AWS Lambda: events of API Gateway and load balancers become requests, and each response is sent as a whole.
import { assert, assertEquals, assertRejects } from "@std/assert";
import { Hono } from "hono";
import { getConnInfo, handle, type LambdaEvent } from "hono/aws-lambda";
import { z } from "zod";
import { handler as documented } from "../../examples/frameworks/lambda.ts";
import { createServer, resource, type Server, type ServerOptions, tool } from "../../mod.ts";
import { connect } from "../../src/client/client.ts";
import { textOf, until } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";

interface Answer {
  readonly statusCode: number;
  readonly headers?: Record<string, string | string[]>;
  readonly multiValueHeaders?: Record<string, string[]>;
  readonly body: string;
  readonly isBase64Encoded: boolean;
}
/** A Lambda function. The types of `hono/aws-lambda` require many members of events that the function never reads. */
type Handler = (event: LambdaEvent) => Promise<Answer>;
type Fetch = (request: Request) => Promise<Response>;

const HOST = "mcp.example.com";
const URL_ = `https://${HOST}/mcp`;
const SOURCE = "203.0.113.7";
const SECRET = "s".repeat(32);

interface Sent {
  readonly method: string;
  readonly headers: Record<string, string>;
  readonly body: string | null;
  readonly isBase64Encoded: boolean;
}
const toLists = (headers: Record<string, string>) =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value]]));

/** The shapes of events that AWS documents. */
const shapes: Readonly<Record<string, (sent: Sent) => object>> = {
  "API Gateway v2": ({ method, headers, body, isBase64Encoded }) => ({
    version: "2.0",
    routeKey: "$default",
    rawPath: "/mcp",
    rawQueryString: "",
    headers,
    requestContext: { domainName: HOST, http: { method, path: "/mcp", sourceIp: SOURCE } },
    ...body === null ? {} : { body },
    isBase64Encoded,
  }),
  "API Gateway v1": ({ method, headers, body, isBase64Encoded }) => ({
    version: "1.0",
    resource: "/mcp",
    path: "/mcp",
    httpMethod: method,
    headers,
    multiValueHeaders: toLists(headers),
    requestContext: { domainName: HOST, identity: { sourceIp: SOURCE } },
    body,
    isBase64Encoded,
  }),
  "a load balancer": ({ method, headers, body, isBase64Encoded }) => ({
    requestContext: { elb: { targetGroupArn: "arn" } },
    httpMethod: method,
    path: "/mcp",
    queryStringParameters: {},
    headers: { ...headers, "x-forwarded-for": `198.51.100.1, ${SOURCE}` },
    body: body ?? "",
    isBase64Encoded,
  }),
  "a load balancer with header lists": ({ method, headers, body, isBase64Encoded }) => ({
    requestContext: { elb: { targetGroupArn: "arn" } },
    httpMethod: method,
    path: "/mcp",
    multiValueHeaders: toLists({ ...headers, "x-forwarded-for": SOURCE }),
    body: body ?? "",
    isBase64Encoded,
  }),
};

/** Returns a `fetch` that sends each request as an event, in turn to each of the functions. */
function toFetch(handlers: readonly Handler[], shape: string, { base64 = false, seen = [] as Answer[] } = {}): Fetch {
  let next = 0;
  return async (request) => {
    const text = await request.text();
    const body = text && base64
      ? btoa(Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join(""))
      : text;
    const headers = { ...Object.fromEntries(request.headers), host: HOST };
    const sent = { method: request.method, headers, body: body || null, isBase64Encoded: base64 };
    // The cast is safe, because the shapes have all members that the function reads.
    const answer = await handlers[next++ % handlers.length](shapes[shape](sent) as LambdaEvent);
    seen.push(answer);
    const bytes = answer.isBase64Encoded
      ? Uint8Array.from(atob(answer.body), (char) => char.charCodeAt(0))
      : new TextEncoder().encode(answer.body);
    const [status, all] = [answer.statusCode, answer.headers ?? answer.multiValueHeaders ?? {}];
    const list = Object.entries(all).map(([name, value]): [string, string] => [name, String(value)]);
    return new Response(bytes.length ? bytes : null, { status, headers: list });
  };
}

function toHandler(server: Server): Handler {
  const app = new Hono();
  app.all("/mcp", (c) => server.fetch(c.req.raw, { remoteAddr: { hostname: getConnInfo(c).remote.address } }));
  return handle(app);
}

const form = z.object({ name: z.string() });
const options: ServerOptions = {
  name: "lambda",
  version: "1.0.0",
  streams: false,
  hosts: [HOST],
  secret: SECRET,
  handlers: [
    tool({
      name: "add",
      input: z.object({ a: z.number(), b: z.number() }),
      async run({ a, b }, ctx) {
        await ctx.progress(1);
        await ctx.log.warning("adding");
        return a + b;
      },
    }),
    tool({ name: "echo", input: z.object({ text: z.string() }), run: ({ text }) => text }),
    tool({
      name: "ask",
      run: async (_input, ctx) =>
        `Hello ${(await ctx.elicit("name", { message: "Name?", schema: form })).content?.name}`,
    }),
    tool({ name: "picture", run: () => new Blob([new Uint8Array([137, 80, 78, 71, 0, 255])], { type: "image/png" }) }),
    resource({ uri: "test://bytes", name: "bytes", read: () => new Uint8Array([0, 255, 128]) }),
  ],
};

for (const shape of Object.keys(shapes)) {
  for (const version of ["2026-07-28", "2025-11-25"] as const) {
    Deno.test(`two instances behind ${shape} serve calls, sessions and binary results (${version})`, async () => {
      const peers = new Set<unknown>();
      const servers = [1, 2].map(() =>
        createServer({ ...options, observer: { start: ({ peer }) => peers.add(peer) } })
      );
      const seen: Answer[] = [];
      for (const base64 of [false, true]) {
        const fetch = toFetch(servers.map(toHandler), shape, { base64, seen });
        const warnings: string[] = [];
        const client = await connect(URL_, {
          fetch,
          revisions: [version],
          onElicit: () => ({ action: "accept", content: { name: "Ada" } }),
          onWarning: (warning) => warnings.push(warning),
        });
        const progress: number[] = [];
        const sum = await client.callTool("add", { a: 2, b: 3 }, {
          onProgress: (each) => progress.push(each.progress),
        });
        assertEquals([textOf(sum), progress], ["5", []]);
        const text = "žluťoučký 😀".repeat(1000);
        assertEquals(textOf(await client.callTool("echo", { text })), text);
        const long = "x".repeat(300_000);
        assertEquals(textOf(await client.callTool("echo", { text: long })), long);
        assertEquals((await client.callTool("picture")).content, [
          { type: "image", data: "iVBORwD/", mimeType: "image/png" },
        ]);
        assertEquals(Object((await client.readResource("test://bytes")).contents[0]).blob, "AP+A");
        const asked = client.callTool("ask");
        if (version === "2026-07-28") {
          assertEquals(textOf(await asked), "Hello Ada");
          const error = await assertRejects(() => client.subscribe({ toolsListChanged: true }));
          assertEquals([Object(error).code, Object(error).message], [-32601, sentence("streams: false")]);
        } else assertEquals(textOf(await asked), sentence("streams: false"));
        await client.close();
      }
      assertEquals([...peers], [SOURCE]);
      for (const { headers, multiValueHeaders, isBase64Encoded } of seen) {
        const type = headers?.["content-type"] ?? multiValueHeaders?.["content-type"]?.[0];
        assert(type === undefined || type === "application/json", `${type}`);
        assertEquals(isBase64Encoded, false);
      }
      for (const server of servers) await server.close();
    });
  }
}

Deno.test("the stream of a session gets HTTP 405 on Lambda, and DELETE ends the session", async () => {
  const server = createServer(options);
  const fetch = toFetch([toHandler(server)], "API Gateway v2");
  const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
  const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "c", version: "1" } };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params });
  const opened = await fetch(new Request(URL_, { method: "POST", headers, body }));
  const session = { "mcp-session-id": opened.headers.get("mcp-session-id") ?? "" };
  const stream = await fetch(new Request(URL_, { headers: { ...session, accept: "text/event-stream" } }));
  assertEquals([stream.status, stream.headers.get("allow")], [405, "POST, DELETE"]);
  const statuses = [];
  for (let i = 0; i < 2; i++) {
    statuses.push((await fetch(new Request(URL_, { method: "DELETE", headers: session }))).status);
  }
  assertEquals(statuses, [204, 404]);
  await server.close();
});

Deno.test("the documented Lambda function serves clients of both eras", async () => {
  for (const version of ["2026-07-28", "2025-11-25"] as const) {
    const fetch = toFetch([documented], "API Gateway v2");
    await using client = await connect(URL_, { fetch, revisions: [version] });
    assertEquals(textOf(await client.callTool("hello")), "Hello from Lambda!");
  }
});

Deno.test("a client that listens for changes on Lambda gets a warning, and does not wait", async () => {
  const server = createServer(options);
  const fetch = toFetch([toHandler(server)], "API Gateway v2");
  const warnings: string[] = [];
  await using client = await connect(URL_, {
    fetch,
    revisions: ["2025-11-25"],
    onNotification: () => {},
    onWarning: (warning) => warnings.push(warning),
  });
  await client.listTools();
  await using _subscription = await client.subscribe({ toolsListChanged: true });
  await until(() => warnings.length, "a warning");
  assertEquals(warnings, [sentence("stream")]);
  await server.close();
});
