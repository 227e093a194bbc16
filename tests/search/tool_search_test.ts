// The search for tools, in every era and over every transport.
import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import {
  createServer,
  group,
  McpError,
  media,
  type Server,
  type Tool,
  tool,
  ToolError,
  toolProvider,
  transform,
} from "../../mod.ts";
import { confirm, idempotent } from "../../src/layers/layers.ts";
import { toolSearch, type ToolSearchOptions } from "../../src/ready/search/search.ts";
import type { Connection } from "../../src/testing/testing.ts";
import { behaviour, textOf, until } from "../support/behaviour.ts";
import { testLimits } from "../support/limits.ts";
import { sentence } from "../support/messages.ts";
import { testServer } from "../support/test_server.ts";
import { throwing } from "../support/throwing.ts";
import { z } from "zod";
import { connect } from "../../src/client/client.ts";
import { toCommand } from "../../src/testing/http_server.ts";
import { readReply, toRequest } from "../support/requests.ts";

const names = async (client: Connection) => (await client.listTools()).map(({ name }) => name);
const isAda = ({ principal }: { readonly principal?: { readonly id: string } }) => principal?.id === "ada";
const search = async (client: Connection, query: string, others: object = {}) =>
  textOf(await client.callTool("search_tools", { query, ...others }));

/** Returns the names of the tools in the result of a search. */
async function find(client: Connection, query: string, others: object = {}): Promise<readonly string[]> {
  const lines = (await search(client, query, others)).split("\n");
  return lines.flatMap((line) =>
    line.startsWith("{") ? [String(JSON.parse(line).name)] : /^- ([\w.-]+)/.exec(line)?.[1] ?? []
  );
}

const open = tool({
  name: "open_issue",
  title: "Open an issue",
  description: "Opens an issue in a repository. The team is notified.",
  input: z.object({ title: z.string().describe("Title of the issue") }),
  run: ({ title }) => ({ opened: title }),
});
const list = tool({
  name: "list_issues",
  description: "Lists the issues of a repository",
  annotations: { readOnlyHint: true },
  tags: ["reports"],
  run: () => "#1",
});
const close = tool({ name: "close_issue", description: "Closes an issue", run: () => "closed" });
const wipe = tool({
  name: "wipe_disk",
  description: "Erases a whole disk",
  annotations: { readOnlyHint: true },
  allow: isAda,
  run: () => "wiped",
});
const whoami = tool({ name: "whoami", description: "Names the caller", run: () => "nobody" });

behaviour("a search replaces the list, and finds and calls the tools", async (connect) => {
  const handlers = [open, list, close, whoami, toolSearch({ always: ["whoami"] })];
  const { client } = await connect({ handlers });
  const tools = await client.listTools();
  const reads = { readOnlyHint: true, destructiveHint: false };
  assertEquals(tools.map(({ name, title, annotations }) => [name, title, annotations]), [
    ["search_tools", "Search tools", { ...reads, openWorldHint: false }],
    ["call_tool", "Call a tool", { readOnlyHint: false, destructiveHint: true, openWorldHint: true }],
    ["call_read_only_tool", "Call a read-only tool", { ...reads, openWorldHint: true }],
    ["whoami", undefined, undefined],
  ]);
  const found = await search(client, "open an issue");
  assertEquals(found.split("\n").slice(0, 2), [
    sentence("3 matching", "call_tool", "call_read_only_tool"),
    JSON.stringify({
      name: "open_issue",
      title: "Open an issue",
      description: "Opens an issue in a repository. The team is notified.",
      inputSchema: {
        type: "object",
        properties: { title: { type: "string", description: "Title of the issue" } },
        required: ["title"],
      },
    }),
  ]);
  assertEquals(await find(client, "open an issue"), ["open_issue", "close_issue", "list_issues"]);
  const opening = { name: "open_issue", arguments: { title: "Rain" } };
  const { content, structuredContent } = await client.callTool("call_tool", opening);
  assertEquals([content, structuredContent], [[{ type: "text", text: '{"opened":"Rain"}' }], { opened: "Rain" }]);
  assertEquals(textOf(await client.callTool("call_read_only_tool", { name: "list_issues" })), "#1");
  assertEquals(textOf(await client.callTool("close_issue")), "closed");
  assertEquals(await search(client, "xylophone"), sentence("xylophone"));
  assertEquals(await find(client, "list_issues", { tags: ["reports"] }), ["list_issues"]);
  assertEquals(await find(client, "issue", { tags: ["reports", "none"] }), ["list_issues"]);
  assertEquals(await search(client, "issue", { tags: ["none"] }), sentence("issue"));
});

behaviour("a search shows only tools in full that match almost as well as the best", async (connect) => {
  const other = tool({ name: "billing_report", description: "Lists invoices of an account", run: () => "" });
  const accounts = tool({ name: "list_eu_accounts", description: "Lists accounts", run: () => "" });
  const twin = tool({ name: "list_us_accounts", description: "Lists accounts", run: () => "" });
  const { client } = await connect({ handlers: [other, accounts, twin, toolSearch()] });
  const toFull = async (query: string) =>
    (await search(client, query)).split("\n").filter((line) => line.startsWith("{")).map((line) =>
      JSON.parse(line).name
    );
  // A tool of another API shares a word with the query.
  assertEquals((await toFull("list accounts")).sort(), ["list_eu_accounts", "list_us_accounts"]);
  assertEquals(await toFull("invoices of an account"), ["billing_report"]);
  assertEquals(await toFull("list_us_accounts"), ["list_us_accounts"]);
});

behaviour("a search shows two tools in full, and one line for each other tool", async (connect) => {
  const tools = Array.from({ length: 41 }, (_, at) => {
    const description = `Makes report ${at}.\nIt is long: ${"x".repeat(500)}`;
    return tool({ name: `make_report_${at}`, description, run: () => at });
  });
  const { client } = await connect({ handlers: [...tools, toolSearch()] });
  const lines = (await search(client, "make a report")).split("\n");
  assertEquals(lines[0], sentence("8 best"));
  assertEquals(lines.map((line) => line[0]).join(""), "T{{T------");
  assert(lines.every((line) => line.length < 1000), "each line is short");
  assertEquals((await find(client, "make_report_40"))[0], "make_report_40");
  assertEquals(await names(client), ["search_tools", "call_tool"]);
});

behaviour(
  "a tool that a search calls gets the metadata of the call, but no tool that this tool calls",
  async (connect) => {
    let runs = 0;
    const pay = tool({
      name: "pay",
      use: [idempotent((_input, { meta }) => meta["com.example/key"] as string | undefined)],
      run: async (_input, ctx) => `${++runs} ${textOf(await ctx.callTool("show"))}`,
    });
    const show = tool({ name: "show", run: (_input, { meta }) => `${meta["com.example/key"]}` });
    const { join } = await connect({ handlers: [pay, show, toolSearch()] });
    const ada = await join({ principal: { id: "ada" } });
    const call = async (key: string) =>
      textOf(
        await ada.callTool("call_tool", { name: "pay" }, { meta: { "com.example/key": key, progressToken: key } }),
      );
    assertEquals([await call("a"), await call("a"), await call("b")], ["1 undefined", "1 undefined", "2 undefined"]);
  },
);

behaviour("a hidden tool and an unknown tool are the same for a search", async (connect) => {
  const { client, join } = await connect({ handlers: [open, wipe, toolSearch()] });
  const ada = await join({ principal: { id: "ada" } });
  assertEquals(await names(client), ["search_tools", "call_tool"]);
  assertEquals(await names(ada), ["search_tools", "call_tool", "call_read_only_tool"]);
  assertEquals(await find(ada, "erase a disk"), ["wipe_disk"]);
  for (const query of ["erase a disk", "wipe_disk", "disk"]) {
    assertEquals((await search(client, query)).replace(query, "…"), (await search(client, "zzz")).replace("zzz", "…"));
  }
  const outcome = async (name: string, by: string) => {
    const { content, isError } = await client.callTool(by, { name });
    return JSON.stringify([content, isError]).replaceAll(name, "…");
  };
  for (const by of ["call_tool", "call_read_only_tool"]) {
    assertEquals(await outcome("wipe_disk", by), await outcome("unknown", by));
    assertEquals(textOf(await ada.callTool(by, { name: "wipe_disk" })), "wiped");
  }
  assertEquals(
    textOf(await client.callTool("call_tool", { name: "wipe_disk" })),
    sentence("wipe_disk", "search_tools"),
  );
});

behaviour("call_read_only_tool calls only tools that the author marks as read-only", async (connect) => {
  const varied = tool({
    name: "varied",
    forCaller: (ctx) => isAda(ctx) ? { annotations: { readOnlyHint: true } } : undefined,
    run: () => "varied",
  });
  const { client, join } = await connect({ handlers: [open, list, varied, toolSearch()] });
  const ada = await join({ principal: { id: "ada" } });
  const refused = await client.callTool("call_read_only_tool", { name: "open_issue" });
  assert(refused.isError);
  assertEquals(textOf(refused), sentence("open_issue", "call_read_only_tool", "call_tool"));
  assertEquals(textOf(await client.callTool("call_read_only_tool", { name: "varied" })), sentence("varied"));
  assertEquals(textOf(await ada.callTool("call_read_only_tool", { name: "varied" })), "varied");
});

behaviour(
  "a search finds and calls tools of providers and of other servers, whose hints do not count",
  async (connect) => {
    const listed = (name: string, others: object = {}) => ({
      name,
      description: `Paints a ${name.replace("_", " ")}`,
      inputSchema: { type: "object" },
      annotations: { readOnlyHint: true },
      ...others,
    });
    const foreign = tool.from(listed("red_house"), () => ({ content: [] }), { about: ["villa"], tags: ["art"] });
    const odd = tool.from(
      { ...listed("odd_house"), title: 1, inputSchema: { type: "object", properties: [1] } } as never,
      () => ({ content: [] }),
    );
    const app = tool.from(listed("app_house", { _meta: { ui: { visibility: ["app"] } } }), () => ({ content: [] }));
    const paint = (color: string) =>
      tool.from(
        listed(`${color}_tree`),
        () => ({ content: [{ type: "text", text: color }], _meta: { "a.b/c": color } }),
      );
    const provider = toolProvider({
      list: (_cursor, ctx) => isAda(ctx) ? [paint("blue"), paint("gold")] : [paint("blue")],
      find: (name, ctx) =>
        ["blue", ...isAda(ctx) ? ["gold"] : []].filter((each) => `${each}_tree` === name).map(paint)[0],
    });
    const renamed = transform(list, { name: "show_issues" });
    const { client, join } = await connect({ handlers: [foreign, odd, app, provider, renamed, toolSearch()] });
    const ada = await join({ principal: { id: "ada" } });
    assertEquals(await names(client), ["search_tools", "call_tool", "call_read_only_tool"]);
    assertEquals(await find(client, "gold tree"), ["blue_tree"]);
    assertEquals(await find(ada, "gold tree"), ["gold_tree", "blue_tree"]);
    assertEquals((await find(client, "house")).toSorted(), ["odd_house", "red_house"]);
    assertEquals(await find(client, "villa"), ["red_house"]);
    assertEquals(await find(client, "house", { tags: ["art"] }), ["red_house"]);
    assertEquals(await find(client, "show issues"), ["show_issues"]);
    const outcome = async (by: string, name: string) =>
      JSON.stringify(await client.callTool(by, { name })).replaceAll(name, "…");
    for (const by of ["call_tool", "call_read_only_tool"]) {
      assertEquals(await outcome(by, "gold_tree"), await outcome(by, "unknown_tree"));
    }
    assertEquals(textOf(await ada.callTool("call_tool", { name: "gold_tree" })), "gold");
    assertEquals(
      textOf(await ada.callTool("call_read_only_tool", { name: "gold_tree" })),
      sentence("gold_tree", "call_tool"),
    );
    assertEquals(textOf(await client.callTool("call_read_only_tool", { name: "red_house" })), sentence("red_house"));
    assertEquals(textOf(await client.callTool("call_read_only_tool", { name: "show_issues" })), "#1");
    assertEquals(textOf(await client.callTool("call_tool", { name: "app_house" })), sentence("app_house"));
    assertEquals(await client.callTool("call_tool", { name: "blue_tree" }), await client.callTool("blue_tree"));
  },
);

behaviour("tools that only apps may call are neither found nor called", async (connect) => {
  const show = tool({ name: "show_chart", _meta: { ui: { visibility: ["model", "app"] } }, run: () => "shown" });
  const drag = tool({ name: "drag_chart", _meta: { ui: { visibility: ["app"] } }, run: () => "dragged" });
  const odd = tool({ name: "odd_chart", _meta: { ui: { visibility: "model" } }, run: () => "odd" });
  const { client } = await connect({ handlers: [show, drag, odd, toolSearch()] });
  assertEquals(await find(client, "chart"), ["show_chart"]);
  assertEquals(textOf(await client.callTool("call_tool", { name: "drag_chart" })), sentence("drag_chart"));
  assertEquals(textOf(await client.callTool("call_tool", { name: "show_chart" })), "shown");
  assertEquals(textOf(await client.callTool("drag_chart")), "dragged");
});

behaviour("call_tool asks a provider for one tool, and not for its list", async (connect) => {
  let lists = 0;
  const visible = (visibility: readonly string[]) => ({ _meta: { ui: { visibility } } });
  const made = new Map<string, Tool>(
    [
      tool({ name: "unlisted", run: () => "called" }),
      tool({ name: "picky", run: () => Promise.reject(McpError.invalidParams("pick another")) }),
      tool({ name: "for_apps", ...visible(["app"]), run: () => "called" }),
      tool({ name: "for_both", ...visible(["model", "app"]), run: () => "called" }),
      tool({ name: "for_ada", allow: isAda, run: () => "called" }),
      tool({ name: "varied", forCaller: (ctx) => isAda(ctx) ? { title: "Yours" } : undefined, run: () => "called" }),
    ].map((each) => [each.name, each]),
  );
  const provider = toolProvider({ list: () => (lists++, []), find: (name) => made.get(name) });
  const { join } = await connect({ handlers: [provider, toolSearch()] });
  const client = await join({ principal: { id: "eve" } });
  const ada = await join({ principal: { id: "ada" } });
  const outcome = async (name: string, by = client) =>
    textOf(await by.callTool("call_tool", { name })).replaceAll(name, "…");
  for (const name of ["unlisted", "for_both", "varied"]) assertEquals([name, await outcome(name)], [name, "called"]);
  const unknown = await outcome("unknown");
  assertEquals(unknown, sentence("no such tool", "search_tools"));
  for (const name of ["for_apps", "for_ada"]) assertEquals([name, await outcome(name)], [name, unknown]);
  assertEquals([await outcome("for_ada", ada), await outcome("varied", ada)], ["called", "called"]);
  assertEquals(textOf(await client.callTool("for_apps")), "called");
  const error = await assertRejects(() => client.callTool("call_tool", { name: "picky" }), McpError);
  assertEquals(error.message, "pick another");
  assertEquals(lists, 0);
});

behaviour("a search calls list of a provider once for all pages of an array", async (connect) => {
  const lists: (string | undefined)[] = [];
  const made = Array.from({ length: 8 }, (_, at) => tool({ name: `paint_${at}`, run: () => "painted" }));
  const provider = toolProvider({
    list: (cursor) => {
      lists.push(cursor);
      if (cursor === undefined) return { tools: made.slice(0, 1), nextCursor: "more" };
      return made.slice(1);
    },
    find: (name) => made.find((each) => each.name === name),
  });
  const all = tool({ name: "count", run: async (_input, ctx) => `${(await ctx.list("tools")).length}` });
  const limits = testLimits({ calls: { pageItems: 2 } });
  const { client } = await connect({ handlers: [provider, all, toolSearch()], limits });
  for (const run of [1, 2]) {
    assertEquals((await find(client, "paint")).length, 8, `search ${run}`);
    assertEquals(lists.splice(0), [undefined, "more"]);
  }
  assertEquals(textOf(await client.callTool("count")), "9");
  assertEquals(lists.splice(0), [undefined, "more"]);
}, { perInstance: "limits" });

behaviour("a result passes through call_tool unchanged", async (connect) => {
  const picture = media(new Uint8Array([1, 2, 3]), "image/png");
  const paint = tool({ name: "paint", run: () => ["painted", picture] });
  const fail = tool({ name: "fail", run: throwing(new ToolError("no paint")) });
  const full = tool({
    name: "full",
    run: () => ({ content: [{ type: "text", text: "x" }], structuredContent: { content: [] }, _meta: { "a.b/c": 1 } }),
  });
  const checked = tool({ name: "checked", output: z.object({ n: z.number() }), run: () => ({ n: 1 }) });
  const { client } = await connect({ handlers: [paint, fail, full, checked, toolSearch()] });
  for (const name of ["paint", "fail", "full", "checked"]) {
    assertEquals(await client.callTool("call_tool", { name }), await client.callTool(name), name);
  }
});

behaviour("questions, progress and scopes of a tool work behind call_tool", async (connect) => {
  let runs = 0;
  const remove = tool({
    name: "remove",
    input: z.object({ path: z.string() }),
    use: [confirm(({ path }) => `Delete ${path}?`)],
    run: ({ path }) => (runs++, `deleted ${path}`),
  });
  const slow = tool({
    name: "slow",
    run: async (_input, ctx) => {
      await ctx.progress(1, { total: 2 });
      return "done";
    },
  });
  const secret = tool({ name: "secret", scopes: ["vault"], run: () => "42" });
  const asked: string[] = [];
  const { client, join } = await connect({ handlers: [remove, slow, secret, toolSearch()] }, {
    onElicit: ({ message }) => {
      asked.push(message);
      return { action: "accept", content: {} };
    },
  });
  const removal = { name: "remove", arguments: { path: "a" } };
  assertEquals(textOf(await client.callTool("call_tool", removal)), "deleted a");
  assertEquals([asked, runs], [["Delete a?"], 1]);
  const invalid = await client.callTool("call_tool", { name: "remove", arguments: { path: 1 } });
  assertEquals([invalid.isError, textOf(invalid)], [true, sentence("remove", "path")]);
  await client.callTool("call_tool", { name: "slow" }, { meta: { progressToken: "p" } });
  const progress = client.received.filter(({ method }) => method === "notifications/progress");
  assertEquals(progress.map(({ params }) => Object(params).total), [2]);
  const bob = await join({ principal: { id: "bob", scopes: [] } });
  await assertRejects(() => bob.callTool("call_tool", { name: "secret" }), Error, sentence("vault"));
});

behaviour("a call through call_tool is cancelled together with its tool", async (connect) => {
  let state = "";
  const wait = tool({
    name: "wait",
    run: async (_input, { signal }) => {
      state = "started";
      await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      state = "cancelled";
    },
  });
  const { client } = await connect({ handlers: [wait, toolSearch()] });
  const controller = new AbortController();
  const calling = client.callTool("call_tool", { name: "wait" }, { signal: controller.signal });
  await until(() => state === "started", "the tool runs");
  controller.abort();
  await assertRejects(() => calling);
  await until(() => state === "cancelled", "the tool is cancelled");
});

behaviour("a search follows groups, rules, tools for one caller and added tools", async (connect) => {
  const add = tool({ name: "add", about: ["ticket"], run: () => "added" });
  const drop = tool({ name: "drop", tags: ["admin"], run: () => "dropped" });
  const menu = tool({
    name: "menu",
    forCaller: (ctx) => ({ description: isAda(ctx) ? "Serves pancakes" : "Serves waffles" }),
    run: () => "served",
  });
  const desk = group("desk", [add, drop], { about: ["helpdesk"] });
  const { client, server, join } = await connect({ handlers: [desk, menu, toolSearch()] });
  const ada = await join({ principal: { id: "ada" } });
  assertEquals(await find(client, "ticket"), ["desk_add"]);
  assertEquals((await find(client, "helpdesk")).toSorted(), ["desk_add", "desk_drop"]);
  assertEquals([await find(client, "waffles"), await find(ada, "waffles")], [["menu"], []]);
  assertEquals([await find(client, "pancakes"), await find(ada, "pancakes")], [[], ["menu"]]);
  server.handlers.disable({ tag: "admin" }, (ctx) => !isAda(ctx));
  assertEquals(await find(client, "helpdesk"), ["desk_add"]);
  assertEquals((await find(ada, "helpdesk")).toSorted(), ["desk_add", "desk_drop"]);
  server.handlers.add(tool({ name: "late", description: "Takes a ticket", run: () => "late" }));
  assertEquals(await find(client, "ticket"), ["desk_add", "late"]);
  server.handlers.remove(desk);
  assertEquals(await find(client, "ticket"), ["late"]);
  assertEquals((await client.listTools()).some(({ name }) => name.startsWith("desk")), false);
  server.handlers.disable({ tool: "search_tools" });
  assertEquals(await names(client), ["menu", "late"]);
}, { perInstance: "handlers" });

behaviour("middleware that hides a tool from lists also hides it from a search", async (connect) => {
  const { client } = await connect({
    handlers: [open, list, close, toolSearch()],
    use: [async (ctx, next) => {
      const result = await next();
      if (ctx.method !== "tools/list" || !Array.isArray(result.tools)) return result;
      return { ...result, tools: result.tools.filter(({ name }) => name !== "close_issue") };
    }],
  });
  assertEquals(await find(client, "close issue"), ["open_issue", "list_issues"]);
  const outcome = async (name: string) =>
    textOf(await client.callTool("call_read_only_tool", { name })).replace(name, "…");
  assertEquals(await outcome("close_issue"), await outcome("unknown"));
  assertEquals(
    textOf(await client.callTool("call_tool", { name: "open_issue", arguments: { title: "a" } })).length,
    14,
  );
});

behaviour("when decides who gets the short list, and fails closed", async (connect) => {
  let verdict: unknown = true;
  const { client, takeFaults } = await connect({
    cacheScope: "public",
    handlers: [open, list, toolSearch({ when: () => verdict as boolean })],
  });
  assertEquals(await names(client), ["search_tools", "call_tool", "call_read_only_tool"]);
  verdict = false;
  assertEquals(await names(client), ["open_issue", "list_issues"]);
  for (const odd of [undefined, null, "yes", 1, Promise.resolve(true)]) {
    verdict = odd;
    await assertRejects(() => client.listTools(), Error, sentence("Internal error"));
    assertEquals(takeFaults().length, 1);
  }
});

behaviour("rank replaces the ranking, and fails closed", async (connect) => {
  let ranked: unknown;
  const seen: unknown[] = [];
  const { client, takeFaults } = await connect({
    handlers: [
      open,
      list,
      wipe,
      toolSearch({
        rank: (query, tools, ctx) => {
          seen.push([query, tools.map(({ name, tags }) => [name, tags]), ctx.method]);
          return ranked as readonly string[];
        },
      }),
    ],
  });
  ranked = ["wipe_disk", "list_issues", "nothing", "list_issues", "call_tool", "open_issue"];
  assertEquals(await find(client, "x"), ["list_issues", "open_issue"]);
  assertEquals(seen, [["x", [["open_issue", []], ["list_issues", ["reports"]]], "tools/call"]]);
  ranked = Promise.resolve(["open_issue"]);
  assertEquals(await find(client, "x"), ["open_issue"]);
  for (const odd of [undefined, null, "open_issue", [1], [undefined], {}, Promise.resolve()]) {
    ranked = odd;
    assert((await client.callTool("search_tools", { query: "x" })).isError);
    assertEquals(takeFaults().length, 1);
  }
});

behaviour("the tools of a search can have other names", async (connect) => {
  const inner = tool({ name: "search_tools", description: "Searches an upstream", run: () => "inner" });
  const names = { search: "find", call: "use", callReadOnly: "look" };
  const { client } = await connect({ handlers: [inner, list, toolSearch({ names })] });
  assertEquals((await client.listTools()).map(({ name }) => name), ["find", "use", "look"]);
  const found = textOf(await client.callTool("find", { query: "upstream" }));
  assertEquals(found.split("\n")[0], sentence("use"));
  assertEquals(textOf(await client.callTool("use", { name: "search_tools" })), "inner");
  for (const name of ["find", "use", "look"]) {
    assertEquals(textOf(await client.callTool("use", { name })), sentence(name));
  }
});

behaviour("the tools of another search are passed on, with a warning", async (connect) => {
  const inner = (name: string) =>
    tool.from({ name, inputSchema: { type: "object" } }, () => ({ content: [{ type: "text", text: name }] }));
  const { client, server, takeFaults } = await connect({
    handlers: [inner("git_search_tools"), inner("call_tool"), toolSearch({ names: { call: "use" } })],
  });
  assertEquals(takeFaults().map(({ error }) => Object(error).message), [
    sentence("git_search_tools", "?search=off"),
    sentence("call_tool", "?search=off"),
  ]);
  assertEquals(textOf(await client.callTool("use", { name: "git_search_tools" })), "git_search_tools");
  server.handlers.add(list);
  assertEquals(takeFaults(), []);
}, { perInstance: "handlers" });

behaviour("arguments may be JSON text, and a long or empty query is refused", async (connect) => {
  const { client } = await connect({ handlers: [open, toolSearch()] });
  const called = await client.callTool("call_tool", { name: "open_issue", arguments: '{"title":"a"}' });
  assertEquals(called.structuredContent, { opened: "a" });
  for (const query of ["", "x".repeat(501)]) {
    const refused = await client.callTool("search_tools", { query });
    assertEquals([refused.isError, textOf(refused)], [true, sentence("query")]);
  }
});

Deno.test("toolSearch refuses wrong options, and a second search", () => {
  const make = (options: object) => () => toolSearch(options);
  assertThrows(make({ limit: 0 }), TypeError, sentence("limit"));
  assertThrows(make({ limit: 51 }), TypeError, sentence("limit"));
  assertThrows(make({ always: "whoami" }), TypeError, sentence("always"));
  assertThrows(make({ when: true }), TypeError, sentence("when"));
  assertThrows(make({ rank: [] }), TypeError, sentence("rank"));
  assertThrows(make({ names: { search: "a b" } }), TypeError, sentence("a b"));
  assertThrows(make({ names: { find: "a" } }), TypeError, sentence("names.find"));
  assertThrows(make({ names: { search: "call_tool" } }), TypeError, sentence("name"));
  const others = { search: "find", call: "use", callReadOnly: "look" };
  const handlers = [toolSearch(), toolSearch({ names: others })];
  assertThrows(() => createServer({ name: "a", version: "1.0.0", handlers }), TypeError, sentence("toolSearch"));
});

// Clients that ask for the list of all tools of a server with a search.

const adding = tool({ name: "add", description: "Adds an item", run: () => "added" });

function startWith(options: ToolSearchOptions = {}) {
  return testServer({ cacheScope: "public", ttlMs: 1000, handlers: [adding, toolSearch(options)] });
}

/** Requests the list of tools with a query in the URL. Returns the names, and the cache scope. */
async function listWith(server: Server, query: string) {
  const { url, headers, method, body } = toRequest("tools/list");
  const request = new Request(url + query, { headers, method, body: await new Response(body).text() });
  const { result } = await readReply(await server.fetch(request));
  return [result.tools.map(({ name }: { readonly name: string }) => name), result.cacheScope];
}

Deno.test("?search=off returns the list of all tools, which stays cacheable", async () => {
  const server = startWith();
  assertEquals(await listWith(server, ""), [["search_tools", "call_tool"], "public"]);
  assertEquals(await listWith(server, "?search=off"), [["add"], "public"]);
  assertEquals(await listWith(server, "?a=1&search=OFF"), [["add"], "public"]);
  for (const query of ["?search=on", "?search", "?search=false", "?Search=off", "?search=on&search=off"]) {
    assertEquals(await listWith(server, query), [["search_tools", "call_tool"], "public"]);
  }
});

Deno.test("lists are private with the option when", async () => {
  const server = startWith({ when: () => true });
  assertEquals(await listWith(server, ""), [["search_tools", "call_tool"], "private"]);
  assertEquals(await listWith(server, "?search=off"), [["add"], "private"]);
});

Deno.test("?search=off works in a session", async () => {
  const server = startWith();
  for (const [query, names] of [["", ["search_tools", "call_tool"]], ["?search=off", ["add"]]] as const) {
    await using client = await connect(`http://localhost/mcp${query}`, {
      fetch: async (...given) => await server.fetch(new Request(...given)),
      era: "legacy",
    });
    assertEquals((await client.listTools()).map(({ name }) => name), [...names]);
  }
});

Deno.test("MCP_SEARCH=off returns the list of all tools over stdio", async () => {
  const words = toCommand(new URL("./stdio_server.ts", import.meta.url));
  const [command, ...args] = words.flatMap((word) => word === "--no-prompt" ? [word, "--allow-env=MCP_SEARCH"] : word);
  for (
    const [value, names] of [["false", ["search_tools", "call_tool"]], ["off", ["add"]], ["OFF", ["add"]]] as const
  ) {
    await using client = await connect({ command, args, env: { MCP_SEARCH: value } });
    assertEquals((await client.listTools()).map(({ name }) => name), [...names]);
  }
});
