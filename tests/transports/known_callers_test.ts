// The server remembers hosts and paths that it has accepted. What it remembers decides about no other request.
import { assertEquals } from "@std/assert";
import { z } from "zod";
import { createServer, type Server, tool } from "../../mod.ts";
import { toRequest } from "../support/requests.ts";

const add = tool({ name: "add", run: () => "3" });
const base = { name: "calc", version: "1.0.0" };

/** Sends a call, and returns the status of the response. */
async function send(server: Server, url: string, headers: Record<string, string> = {}): Promise<number> {
  const { host } = new URL(url);
  const response = await server.fetch(new Request(url, toRequest("tools/call", { name: "add" }, { host, ...headers })));
  await response.body?.cancel();
  return response.status;
}

for (const [path, url] of [["/mcp", "/mcp"], ["/:tenant/mcp", "/ada/mcp"]] as const) {
  Deno.test(`a host that was accepted at ${path} is remembered for requests of this host only`, async () => {
    const hosts = ["a.example.com", "b.example.com"];
    await using server = createServer({ ...base, handlers: [add], hosts, path });
    for (let round = 0; round < 2; round++) {
      for (const host of [...hosts, "localhost:8000", "127.0.0.1"]) {
        assertEquals(await send(server, `http://${host}${url}`), 200);
        assertEquals(await send(server, `http://${host}${url}?a=1`), 200);
        assertEquals(await send(server, `http://${host}${url}`, { origin: "https://evil.example" }), 403);
        assertEquals(await send(server, `http://${host}${url}x`), 404);
        assertEquals(await send(server, `http://${host}/other`), 404);
      }
      for (const host of ["c.example.com", "a.example.com.evil.example", "a.example.co", "a.example.com:1x"]) {
        assertEquals(await send(server, `http://a.example.com${url}`, { host }), host.endsWith("x") ? 400 : 403, host);
      }
      assertEquals(await send(server, `http://evil.example${url}`), 403);
    }
  });

  Deno.test(`a closing server refuses requests of remembered hosts at ${path}`, async () => {
    const server = createServer({ ...base, handlers: [add], path });
    for (let round = 0; round < 2; round++) assertEquals(await send(server, `http://localhost${url}`), 200);
    await server.close();
    assertEquals(await send(server, `http://localhost${url}`), 503);
  });
}

Deno.test("all spellings of a path lead to the same tenant, also the second time", async () => {
  const made: string[] = [];
  const handlers = ({ tenant }: Readonly<Record<string, string>>) => {
    made.push(tenant);
    return [add];
  };
  await using server = createServer({ ...base, path: "/:tenant/mcp", handlers });
  for (let round = 0; round < 3; round++) {
    for (const name of ["ada", "%61da", "x/../ada", "./ada", "ada?tenant=eve"]) {
      const [path, query] = name.split("?");
      assertEquals(await send(server, `http://localhost/${path}/mcp${query ? `?${query}` : ""}`), 200, name);
    }
    for (const name of ["ada/x", "ada%2fx", ".."]) {
      assertEquals(await send(server, `http://localhost/${name}/mcp`), 404, name);
    }
  }
  assertEquals(made, ["ada"]);
});

Deno.test("a schema decides about the path of each request", async () => {
  const open = new Set(["ada"]);
  const pathSchema = z.object({ tenant: z.string().refine((tenant) => open.has(tenant)) });
  await using server = createServer({ ...base, path: "/:tenant/mcp", pathSchema, handlers: [add] });
  for (let round = 0; round < 2; round++) assertEquals(await send(server, "http://localhost/ada/mcp"), 200);
  open.delete("ada");
  assertEquals(await send(server, "http://localhost/ada/mcp"), 404);
});
