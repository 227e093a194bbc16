// The server checks the scopes that a handler requires before the handler runs and before the response status is sent.
import { assertEquals, assertMatch, assertRejects, assertThrows } from "@std/assert";
import { createServer, prompt, resource, resourceProvider, type ServerOptions, tool } from "../../mod.ts";
import { allScopes } from "../../src/auth/auth.ts";
import { McpError } from "../../src/testing/testing.ts";
import { behaviour, textOf, until } from "../support/behaviour.ts";
import { readReply, toRequest } from "../support/requests.ts";
import { sentence } from "../support/messages.ts";

const TEXT = { type: "object", properties: { text: { type: "string" } } } as const;
const needed = ["notes:read", "notes:write"];
const reader = { id: "reader", scopes: ["notes:read", "other"] };
const writer = { id: "writer", scopes: ["notes:write", "notes:read"] };

function makeHandlers(ran: string[]) {
  const run = (name: string) => {
    ran.push(name);
    return name;
  };
  const complete = { text: () => [run("completed")] };
  return [
    tool({ name: "open", run: () => run("open") }),
    tool({ name: "tool", scopes: needed, run: () => run("tool") }),
    prompt({ name: "prompt", scopes: needed, input: TEXT, complete, run: () => run("prompt") }),
    resource({ uri: "note://fixed", name: "fixed", scopes: needed, read: () => run("fixed") }),
    resource({ uri: "of://{text}", name: "of", scopes: needed, complete, read: () => run("of") }),
    resourceProvider({ scheme: "all", name: "all", scopes: needed, read: () => run("all") }),
  ];
}

behaviour("a handler does not run for a caller that lacks a scope", async (connect, { transport }) => {
  const ran: string[] = [];
  const seen: string[] = [];
  const use: ServerOptions["use"] = [async (call, next) => {
    seen.push(call.method);
    return await next();
  }];
  const { client, join } = await connect({ handlers: makeHandlers(ran), use }, { principal: reader });
  const attempt = (client: Awaited<ReturnType<typeof join>>) => [
    () => client.callTool("tool"),
    () => client.getPrompt("prompt"),
    () => client.readResource("note://fixed"),
    () => client.readResource("of://x"),
    () => client.readResource("all://x"),
    () => client.complete({ type: "ref/prompt", name: "prompt" }, { name: "text", value: "" }),
    () => client.complete({ type: "ref/resource", uri: "of://{text}" }, { name: "text", value: "" }),
  ];
  seen.length = 0;
  for (const each of attempt(client)) {
    const error = await assertRejects(each, McpError, sentence(needed.join(" ")));
    assertEquals([error.code, error.data], [-31403, { scopes: needed }]);
    assertEquals(error.status, transport === "pipe" ? undefined : 403);
  }
  assertEquals([ran, seen], [[], []], "a handler or middleware ran");
  assertEquals(textOf(await client.callTool("open")), "open");
  assertEquals((await client.listTools()).length, 2, "the list lacks a handler that the caller cannot call");
  for (const principal of [writer, { id: "all", scopes: allScopes }]) {
    ran.length = 0;
    const able = await join({ principal });
    for (const each of attempt(able)) await each();
    assertEquals(ran, ["tool", "prompt", "fixed", "of", "all", "completed", "completed"]);
  }
});

behaviour(
  "a caller without a principal has scopes only in the server's own process",
  async (connect, { transport }) => {
    const { client } = await connect({ handlers: makeHandlers([]) });
    const called = client.callTool("tool");
    if (transport === "pipe") assertEquals(textOf(await called), "tool");
    else assertEquals((await assertRejects(() => called, McpError)).status, 403);
  },
);

behaviour("`satisfies` of an authentication decides which scopes include other scopes", async (connect) => {
  const auth = {
    authenticate: () => undefined,
    satisfies: (granted: readonly string[], needed: readonly string[]) =>
      needed.every((scope) => granted.includes(scope.split(":")[0])),
  };
  const { client, join } = await connect({ handlers: makeHandlers([]), auth }, {
    principal: { id: "a", scopes: ["notes"] },
  });
  assertEquals(textOf(await client.callTool("tool")), "tool");
  const other = await join({ principal: reader });
  await assertRejects(() => other.callTool("tool"), McpError, sentence(needed.join(" ")));
});

behaviour(
  "a caller that lacks a resource's scope is not notified of changes of the resource",
  async (connect, { era }) => {
    const { server, join } = await connect({ handlers: makeHandlers([]) }, { principal: reader });
    const [able, unable] = [await join({ principal: writer }), await join({ principal: reader })];
    const uris = { resourceSubscriptions: ["note://fixed"] };
    const [told, untold] = [await able.subscribe(uris), await unable.subscribe(uris)];
    const isUpdate = ({ method }: { readonly method: string }) => method === "notifications/resources/updated";
    server.resourceUpdated("note://fixed");
    await until(() => told.received.some(isUpdate), `the update (${era})`);
    assertEquals(untold.received.filter(isUpdate), []);
    await told.close();
    await untold.close();
  },
);

behaviour("in a batch, a missing scope refuses only the message that requires it", async (connect) => {
  const { server } = await connect({ handlers: makeHandlers([]) }, { principal: reader });
  const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
  const call = (id: number, name: string) => ({ jsonrpc: "2.0", id, method: "tools/call", params: { name } });
  const response = await server.fetch(
    new Request("http://localhost/mcp", {
      method: "POST",
      headers: { ...headers, "mcp-protocol-version": "2025-03-26" },
      body: JSON.stringify([call(1, "tool"), call(2, "open")]),
    }),
    { principal: reader },
  );
  const [refused, served] = await readReply(response);
  assertEquals([response.status, response.headers.get("www-authenticate")], [200, null]);
  assertEquals([refused.error.code, refused.error.data], [-31403, { scopes: needed }]);
  assertEquals(textOf(served.result), "open");
}, { eras: ["legacy"], transports: ["memory"] });

Deno.test("the challenge names all scopes that the operation requires, with the parameters of the authentication", async () => {
  const challenge = { scheme: "Bearer", params: { resource_metadata: "https://mcp.example/.well-known/x" } };
  for (
    const [auth, wanted] of [
      [undefined, 'Bearer error="insufficient_scope", scope="notes:read notes:write"'],
      [
        { authenticate: () => reader, challenge },
        'Bearer error="insufficient_scope", scope="notes:read notes:write", ' +
        'resource_metadata="https://mcp.example/.well-known/x"',
      ],
    ] as const
  ) {
    await using server = createServer({ name: "t", version: "1", auth, handlers: makeHandlers([]) });
    const info = auth ? undefined : { principal: reader };
    const modern = toRequest("tools/call", { name: "tool" });
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "tool" } });
    const legacy = new Request("http://localhost/mcp", {
      method: "POST",
      headers: { "content-type": "application/json", accept: "application/json, text/event-stream" },
      body,
    });
    for (const request of [modern, legacy]) {
      const response = await server.fetch(request, info);
      assertEquals([response.status, response.headers.get("www-authenticate")], [403, wanted]);
      assertMatch(response.headers.get("content-type") ?? "", /json/);
      await response.body?.cancel();
    }
  }
});

Deno.test("creating a handler throws if `scopes` is not a list of scopes", () => {
  for (const scopes of ["notes:read", {}, null, [""], ["a b"], ['a"'], ["\u00e4"]] as unknown as string[][]) {
    for (
      const make of [
        () => tool({ name: "t", scopes, run: () => "" }),
        () => prompt({ name: "t", scopes, run: () => "" }),
        () => resource({ uri: "x://t", name: "t", scopes, read: () => "" }),
      ]
    ) assertThrows(make, TypeError, sentence("notes:read"));
  }
  tool({ name: "t", scopes: [], run: () => "" });
});
