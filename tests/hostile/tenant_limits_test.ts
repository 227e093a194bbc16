// Limits apply to a client that uses many paths, and rules that change continuously do not fill the memory.
import { assertEquals } from "@std/assert";
import { createServer, tool } from "../../mod.ts";
import { quota } from "../../src/layers/layers.ts";
import { INTERNALS } from "../../src/core/internals.ts";
import { until } from "../support/behaviour.ts";
import { readAnswer, toRequest } from "../support/requests.ts";

function open(options: Parameters<typeof quota>[0], run: () => Promise<string> | string = () => "done") {
  const work = tool({ name: "work", use: [quota(options)], run });
  const server = createServer({ name: "tenants", version: "1.0.0", path: "/:tenant/mcp", handlers: [work] });
  const call = async (tenant: string) => {
    const request = new Request(`http://localhost/${tenant}/mcp`, toRequest("tools/call", { name: "work" }));
    const { result, error } = await readAnswer(await server.fetch(request));
    return result ? "done" : error?.code;
  };
  return { server, call };
}

Deno.test("all paths of a server share the rate limit of a client", async () => {
  const { server, call } = open({ rate: { calls: 2, perMs: 600_000 } });
  const codes = [];
  for (const tenant of ["a", "b", "c", "a"]) codes.push(await call(tenant));
  await server.close();
  assertEquals(codes, ["done", "done", -31429, -31429]);
});

Deno.test("all paths of a server share the concurrency limit of a handler", async () => {
  const held = Promise.withResolvers<string>();
  const { server, call } = open({ concurrency: { calls: 1, waiting: 0 } }, () => held.promise);
  const first = call("a");
  const second = await call("b");
  held.resolve("done");
  assertEquals([await first, second], ["done", -31503]);
  await server.close();
});

Deno.test("if rules replace each other, only the latest rules are applied to a new path", async () => {
  let applied = 0;
  const never = () => false;
  const selected = {
    get tag() {
      applied++;
      return "slow";
    },
  };
  const work = tool({ name: "work", tags: ["slow"], run: () => "done" });
  const server = createServer({ name: "tenants", version: "1.0.0", path: "/:tenant/mcp", handlers: [work] });
  for (let i = 0; i < 100; i++) {
    server.handlers.disable(selected);
    server.handlers.enable(work);
    server.handlers.disable({ tool: "work" }, never);
    server.handlers.enable(selected);
  }
  const count = async (tenant: string) => {
    const response = await server.fetch(new Request(`http://localhost/${tenant}/mcp`, toRequest("tools/list")));
    return (await readAnswer(response)).result.tools.length;
  };
  assertEquals(await count("a"), 1);
  applied = 0;
  assertEquals(await count("b"), 1);
  await server.close();
  assertEquals(applied < 10, true, `${applied} rules`);
});

Deno.test("a call that waits at one path does not count as waiting at another path", async () => {
  const gates: PromiseWithResolvers<string>[] = [];
  const work = tool({
    name: "work",
    run() {
      gates.push(Promise.withResolvers());
      return gates.at(-1)?.promise ?? "";
    },
  });
  const server = createServer({
    name: "tenants",
    version: "1.0.0",
    path: "/:tenant/mcp",
    handlers: [work],
    limits: { calls: { running: 1, runningPerClient: 1 }, perTenant: { running: 10 } },
  });
  const { accounts, scheduler } = server[INTERNALS].engine;
  const send = async (tenant: string, id: string) => {
    const request = new Request(`http://localhost/${tenant}/mcp`, toRequest("tools/call", { name: "work" }));
    const response = await server.fetch(request, { principal: { id } });
    return (await readAnswer(response)).result.content[0].text;
  };
  const count = () =>
    ["/a/mcp", "/b/mcp"].map((tenant) => accounts.find("principal ada", tenant).amount(accounts.running));
  const calls = [send("a", "ada")];
  await until(() => gates.length === 1, "a call runs");
  calls.push(send("a", "bob"));
  await until(() => scheduler.waiting === 1, "a call waits for the process");
  calls.push(send("b", "ada"));
  await until(() => scheduler.waiting === 2, "a call waits for its client");
  gates[0].resolve("done");
  await until(() => gates.length === 2 && scheduler.waiting === 1, "the call of the client waits for the process");
  assertEquals(count(), [0, 1]);
  gates[1].resolve("done");
  await until(() => gates.length === 3, "the last call runs");
  gates[2].resolve("done");
  assertEquals(await Promise.all(calls), ["done", "done", "done"]);
  assertEquals([accounts.running.used, ...count()], [0, 0, 0]);
  await server.close();
});
