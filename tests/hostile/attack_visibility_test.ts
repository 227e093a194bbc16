// `allow` functions that do not return a boolean, and lists that differ between callers.
import { assert, assertEquals } from "@std/assert";
import { type Middleware, onlyMethods, resource, tool } from "../../mod.ts";
import { readReply, toRequest } from "../support/requests.ts";
import { as, start, toCall, toListen } from "./attack.ts";
import { testLimits } from "../support/limits.ts";

/** A thenable that is not a promise, such as the query builder of a database library. */
const no = { then: (settle: (allowed: boolean) => void) => settle(false) } as unknown as Promise<boolean>;

Deno.test("an `allow` that returns a thenable is awaited", async () => {
  const server = start({ handlers: [tool({ name: "hidden", allow: () => no, run: () => "secret" })] });
  const text = await (await server.fetch(toCall("hidden"), as("eve"))).text();
  await server.close();
  assert(!text.includes("secret"), text);
});

Deno.test("an `allow` that returns neither true nor false does not crash the process when a notification is sent", async () => {
  const read = () => "";
  const odd = resource({ uri: "test://odd", name: "odd", allow: () => "yes" as unknown as boolean, read });
  const server = start({ handlers: [odd] });
  const response = await server.fetch(toListen({ resourceSubscriptions: ["test://odd"] }));
  const errors: unknown[] = [];
  const { setTimeout: real } = globalThis;
  // Wrap `setTimeout`, because a test cannot catch an error that a timer callback throws.
  globalThis.setTimeout = ((job: () => void, ms?: number) =>
    real(() => {
      try {
        job();
      } catch (error) {
        errors.push(error);
      }
    }, ms)) as typeof setTimeout;
  try {
    server.resourceUpdated("test://odd");
    await new Promise((resolve) => real(resolve, 100));
  } finally {
    globalThis.setTimeout = real;
  }
  await response.body?.cancel();
  await server.close();
  assertEquals(errors, []);
});

Deno.test("a list is private to its caller if middleware could have removed entries", async () => {
  const server = start({
    handlers: [tool({ name: "hidden", run: () => "" })],
    use: [async ({ method, principal }, next) => {
      const result = await next();
      return method === "tools/list" && principal?.id !== "admin" ? { ...result, tools: [] } : result;
    }],
  });
  const { result } = await readReply(await server.fetch(toRequest("tools/list"), as("admin")));
  await server.close();
  assertEquals(result.cacheScope, "private");
});

Deno.test("if a list differs between callers, a cursor is valid only for the caller who received the cursor", async () => {
  const handlers = [1, 2, 3].map((i) => tool({ name: `t${i}`, allow: () => true, run: () => "" }));
  const shown = [1, 2, 3].map((i) => tool({ name: `t${i}`, run: () => "" }));
  for (const [list, isPrivate] of [[handlers, true], [shown, false]] as const) {
    const server = start({ handlers: list, limits: testLimits({ calls: { pageItems: 1 } }) });
    const ask = async (id: string, cursor?: string) =>
      await readReply(await server.fetch(toRequest("tools/list", cursor === undefined ? {} : { cursor }), as(id)));
    const { result: { nextCursor } } = await ask("ada");
    assertEquals((await ask("ada", nextCursor)).result.tools[0].name, "t2");
    const { result, error } = await ask("eve", nextCursor);
    assertEquals([result?.tools[0].name, error?.code], isPrivate ? [undefined, -32602] : ["t2", undefined]);
    await server.close();
  }
});

Deno.test("a list request does not call middleware for other methods, and the list stays public", async () => {
  const seen: string[] = [];
  const note: Middleware = async ({ method }, next) => {
    seen.push(method);
    return await next();
  };
  const cases: readonly (readonly [use: readonly Middleware[], cacheScope: string])[] = [
    [[onlyMethods(["tools/call"], note)], "public"],
    [[onlyMethods(["tools/call"], note), onlyMethods(["tools/call", "prompts/list"], note)], "private"],
    [[onlyMethods(["tools/call"], note), note], "private"],
    [[onlyMethods(["tools/list"], note)], "private"],
  ];
  for (const [use, cacheScope] of cases) {
    const server = start({ handlers: [tool({ name: "hi", run: () => "Hi" })], use });
    seen.length = 0;
    const listed = await readReply(await server.fetch(toRequest("tools/list")));
    assertEquals(listed.result.cacheScope, cacheScope);
    const sees = use.some((each) => each === note) || use.length === 1 && cacheScope === "private";
    assertEquals(seen, sees ? ["tools/list"] : []);
    // The list for an authenticated caller is private, because it may differ from other lists.
    const own = await readReply(await server.fetch(toRequest("tools/list"), as("admin")));
    assertEquals(own.result.cacheScope, "private");
    await server.close();
  }
});

Deno.test("if middleware mutates a list, the list of the next caller does not change", async () => {
  const server = start({
    handlers: [tool({ name: "hidden", run: () => "" }), tool({ name: "shown", run: () => "" })],
    use: [async ({ method, principal }, next) => {
      const result = await next() as { tools: { readonly name: string }[] } & Record<string, unknown>;
      if (method === "tools/list" && principal?.id !== "admin") {
        result.tools = result.tools.filter(({ name }) => name !== "hidden");
      }
      return result;
    }],
  });
  await (await server.fetch(toRequest("tools/list"), as("admin"))).text();
  const text = await (await server.fetch(toRequest("tools/list"), as("eve"))).text();
  await server.close();
  assert(!text.includes("hidden"), text);
});
