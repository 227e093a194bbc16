// Every ready-made tool has a title and explicit hints, because directories refuse tools that lack them.
import { assert, assertEquals } from "@std/assert";
import { prompt, resource, tool } from "../../mod.ts";
import { asTools, folder, httpTool } from "../../src/ready/ready.ts";
import { openapi } from "../../src/ready/openapi/openapi.ts";
import { toolSearch } from "../../src/ready/search/search.ts";
import { toTitle } from "../../src/ready/title.ts";
import { behaviour, textOf } from "../support/behaviour.ts";
import { withFolder } from "../support/folder.ts";

const url = "https://api.example.com/pets";
const pet = resource({ uri: "pet://{id}", name: "pet_by_id", read: ({ id }) => id });
const meeting = prompt({ name: "plan", title: "Plan a meeting", run: () => "Plan" });
const document = {
  openapi: "3.1.0",
  info: { title: "Pets", version: "1" },
  paths: { "/pets": { get: { operationId: "listPets" }, patch: { operationId: "changePets", summary: "Change" } } },
};

behaviour("every ready-made tool has a title and three explicit hints", async (connect) => {
  await withFolder({ "docs/a.md": "# A" }, async (root) => {
    const handlers = [
      asTools(),
      pet,
      asTools(pet),
      meeting,
      asTools(meeting),
      folder({ path: `${root}/docs`, uri: "docs://", tools: "docs_" }),
      httpTool({ name: "list_all", fetch: { url } }),
      openapi(document, { baseUrl: url, transform: { changePets: { annotations: { destructiveHint: false } } } }),
    ];
    const { client } = await connect({ handlers });
    // The folder has been opened before it is deleted.
    assertEquals(textOf(await client.callTool("docs_list")), "a.md (3 bytes)");
    const tools = await client.listTools();
    assertEquals(tools.length, 10);
    for (const { name, title, annotations = {} } of tools) {
      const { readOnlyHint, destructiveHint, openWorldHint } = annotations;
      assert(title, name);
      assertEquals([readOnlyHint, destructiveHint, openWorldHint].map((hint) => typeof hint), [
        "boolean",
        "boolean",
        "boolean",
      ], name);
      assert(!(readOnlyHint && destructiveHint), name);
    }
    const titles = Object.fromEntries(tools.map(({ name, title }) => [name, title]));
    assertEquals([titles.pet_by_id, titles.plan, titles.list_all], ["Pet by id", "Plan a meeting", "List all"]);
    assertEquals([titles.listPets, titles.changePets], ["List pets", "Change"]);
    const changed = tools.find(({ name }) => name === "changePets")?.annotations;
    assertEquals(changed, { readOnlyHint: false, destructiveHint: false, openWorldHint: true });
  });
});

behaviour("hints of an HTTP tool come from its method, and its own hints take precedence", async (connect) => {
  const toTool = (name: string, method: "GET" | "POST" | "DELETE", annotations?: object) =>
    httpTool({ name, annotations, fetch: { url, method } });
  const handlers = [
    toTool("get", "GET"),
    toTool("remove", "DELETE"),
    toTool("find", "POST", { readOnlyHint: true, openWorldHint: false }),
    toTool("counted", "GET", { readOnlyHint: false }),
    toTool("added", "POST", { destructiveHint: false }),
  ];
  const { client } = await connect({ handlers });
  const reads = { readOnlyHint: true, destructiveHint: false, openWorldHint: true };
  const changes = { readOnlyHint: false, destructiveHint: true, openWorldHint: true };
  assertEquals((await client.listTools()).map(({ annotations }) => annotations), [
    reads,
    { ...changes, idempotentHint: true },
    { ...reads, openWorldHint: false },
    changes,
    { ...changes, destructiveHint: false },
  ]);
});

behaviour("a search has titles and explicit hints too", async (connect) => {
  const find = tool({ name: "find", annotations: { readOnlyHint: true }, run: () => "found" });
  const { client } = await connect({ handlers: [find, toolSearch()] });
  for (const { title, annotations } of await client.listTools()) {
    assertEquals([typeof title, typeof annotations?.destructiveHint], ["string", "boolean"]);
  }
});

Deno.test("a title is the name as words", () => {
  const titles = ["list_pets", "listPets", "read.file-now", "getHTTPStatus", "Meeting notes", "x", "über_tag"].map(
    toTitle,
  );
  assertEquals(titles, ["List pets", "List pets", "Read file now", "Get HTTPStatus", "Meeting notes", "X", "Über tag"]);
});
