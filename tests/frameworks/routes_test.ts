// The server as a route in frameworks that have a build step. Their handlers get a web-standard Request.
import { assertEquals } from "@std/assert";
import { connect } from "../../src/client/client.ts";
import * as next from "../../examples/frameworks/next_route.ts";
import * as sveltekit from "../../examples/frameworks/sveltekit_route.ts";
import { serve } from "../peers/runtime.ts";

type Respond = (request: Request) => Promise<Response>;
type Method = "GET" | "POST" | "DELETE";

const addressed = (respond: typeof sveltekit.GET): Respond => (request) =>
  respond({ request, getClientAddress: () => "127.0.0.1" });

const frameworks: Readonly<Record<string, Readonly<Record<Method, Respond>>>> = {
  Next: next,
  SvelteKit: {
    GET: addressed(sveltekit.GET),
    POST: addressed(sveltekit.POST),
    DELETE: addressed(sveltekit.DELETE),
  },
};

function isMethod(method: string, handlers: object): method is Method {
  return Object.hasOwn(handlers, method);
}

for (const [name, handlers] of Object.entries(frameworks)) {
  for (const version of ["2026-07-28", "2025-11-25"]) {
    Deno.test(`a client of ${version} can call a route of ${name}`, async () => {
      await using port = serve({
        fetch: async (request) =>
          isMethod(request.method, handlers)
            ? await handlers[request.method](request)
            : new Response(null, { status: 405 }),
      });
      await using client = await connect(`http://${port.host}/mcp`, { revisions: [version] });
      const { content } = await client.callTool("add", { a: 2, b: 3 });
      assertEquals(content, [{ type: "text", text: "5" }]);
    });
  }
}
