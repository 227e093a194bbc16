import { assertEquals } from "@std/assert";
import { tool } from "../../mod.ts";
import { toRequest } from "../support/requests.ts";
import { testServer } from "../support/test_server.ts";

/** Connection info as Bun passes it. Its methods are not own properties, so a copy of the object lacks them. */
class BunLike {
  readonly #address: string;
  constructor(address: string) {
    this.#address = address;
  }
  requestIP(): { address: string } {
    return { address: this.#address };
  }
}

Deno.test("code that calls fetch can pass connection info in addition to a principal", async () => {
  const whoami = tool({ name: "whoami", run: (_, ctx) => String(ctx.principal?.id) });
  const server = testServer({ handlers: [whoami] });
  const statuses = await Promise.all(
    [["203.0.113.9", "mcp.example.com"], ["127.0.0.1", "mcp.example.com"], ["127.0.0.1", "localhost"]]
      .map(async ([address, host]) => {
        const request = toRequest("tools/call", { name: "whoami" });
        const headers = new Headers(request.headers);
        headers.set("host", host);
        const asked = new Request(`http://${host}/mcp`, { method: "POST", headers, body: await request.text() });
        const response = await server.fetch(asked, { info: new BunLike(address), principal: { id: "alice" } });
        return [response.status, (await response.text()).includes('"alice"')];
      }),
  );
  assertEquals(statuses, [[200, true], [403, false], [200, true]]);
});
