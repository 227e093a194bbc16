// Redirects: doctor sends requests only to the origin that it examines.
import { assert, assertEquals } from "@std/assert";
import { examine } from "../../src/cli/doctor/examination.ts";
import { startHttpServer } from "../../src/testing/http_server.ts";
import { createLibrary } from "../client/server.ts";

Deno.test("doctor sends nothing to another origin", async () => {
  const server = createLibrary();
  const others: string[] = [];
  const other = startHttpServer((request) => {
    others.push(request.url);
    return server.fetch(request);
  });
  let [count, first] = [0, 0];
  const named = startHttpServer(async (request, info) => {
    const location = `${other.origin}/mcp`;
    return count++ < first
      ? await server.fetch(request, info)
      : new Response(null, { status: 307, headers: { location } });
  });
  try {
    // Each run redirects from a later request than the run before, until a run has no redirect.
    for (let isRedirected = true; isRedirected; first += 3) {
      count = 0;
      const url = `${named.origin}/mcp`;
      assert((await examine({ url, headers: { "x-api-key": "k" }, timeoutMs: 2000 })).length);
      assertEquals(others, [], `with redirects from request ${first}`);
      isRedirected = count > first;
    }
  } finally {
    await named.stop();
    await other.stop();
    await server.close();
  }
});
