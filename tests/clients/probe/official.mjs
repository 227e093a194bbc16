// The probe with the official SDK, which shows what a client does with results that this library does not write. Serves
// HTTP on the port in the first argument. Sessions have a transport each; other requests are independent.
import {
  createMcpHandler,
  inputRequired,
  isLegacyRequest,
  McpServer,
  WebStandardStreamableHTTPServerTransport,
} from "@modelcontextprotocol/server";
import { z } from "zod";

const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAEklEQVR4nGP4z8CAFWEXHbQSACj/P8Fu7N9hAAAAAElFTkSuQmCC";
const image = { type: "image", data: PNG, mimeType: "image/png" };
const link = { type: "resource_link", uri: "probe://static", name: "LINK-MARK" };
const text = (text) => ({ type: "text", text });
const chart = { day: "CHART-MARK", chart: "result:chart" };

/** The results of tools without arguments, by name. */
const results = {
  fail: { content: [text("FAIL-MARK: no flight on this day; try the day after")], isError: true },
  both: { content: [text("TEXT-MARK")], structuredContent: { mark: "STRUCTURED-MARK" } },
  quiet: { content: [], structuredContent: { mark: "QUIET-MARK" } },
  picture: { content: [image] },
  chart: { content: [text(JSON.stringify(chart)), image], structuredContent: chart },
  link: { content: [link] },
  linked: { content: [text("BESIDE-MARK"), link] },
  embedded: {
    content: [{ type: "resource", resource: { uri: "probe://static", mimeType: "text/plain", text: "EMBEDDED-MARK" } }],
  },
};

function createServer() {
  const server = new McpServer({ name: "probe", version: "1.0.0" }, { instructions: "INSTRUCTIONS-MARK: call tools." });
  server.registerTool("add", { description: "Adds", inputSchema: z.object({ a: z.number(), b: z.number() }) }, (
    { a, b },
  ) => ({ content: [text(String(a + b))] }));
  for (const [name, result] of Object.entries(results)) {
    server.registerTool(name, { description: `Returns ${name}` }, () => result);
  }
  const ask = (name, mark, question) =>
    server.registerTool(name, { description: `Asks: ${name}` }, (ctx) => {
      const answer = ctx.mcpReq.inputResponses?.[name];
      return answer
        ? { content: [text(`${mark} ${answer.action}`)] }
        : inputRequired({ inputRequests: { [name]: question } });
    });
  const color = { type: "object", properties: { color: { type: "string", default: "red" } } };
  ask("ask", "ASK-MARK", inputRequired.elicit({ message: "Which color?", requestedSchema: color }));
  ask("visit", "VISIT-MARK", inputRequired.elicitUrl({ message: "Open the page", url: "https://example.com/page" }));
  return server;
}

const transports = new Map();

async function serveSession(request) {
  const id = request.headers.get("mcp-session-id");
  const known = id && transports.get(id);
  if (known) return await known.handleRequest(request);
  const transport = new WebStandardStreamableHTTPServerTransport({
    sessionIdGenerator: () => crypto.randomUUID(),
    onsessioninitialized: (id) => void transports.set(id, transport),
  });
  await createServer().connect(transport);
  return await transport.handleRequest(request);
}

const { fetch } = createMcpHandler(createServer, { legacy: "reject" });
Deno.serve(
  { hostname: "127.0.0.1", port: Number(Deno.args[0]) },
  async (request) => await isLegacyRequest(request) ? await serveSession(request) : await fetch(request),
);
