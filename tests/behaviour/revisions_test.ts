// Downgrades for clients of older revisions, and behaviour that all revisions share.
import { assertEquals, assertRejects } from "@std/assert";
import { z } from "zod";
import { media, prompt, resource, resourceLink, tool } from "../../mod.ts";
import { RpcError } from "../../src/testing/testing.ts";
import { behaviour, LEGACY_VERSIONS, until } from "../support/behaviour.ts";

const sound = media(new Uint8Array([1]), "audio/wav");
const file = resourceLink("file:///a.txt", { title: "A file" });
const handlers = [
  tool({ name: "object", output: z.object({ n: z.number() }), run: () => ({ n: 1 }) }),
  tool({ name: "list", output: z.array(z.number()), run: () => [1] }),
  tool({ name: "content", run: () => [sound, file, { type: "text", text: "x" }] }),
  prompt({ name: "sing", run: () => [sound, file] }),
  resource({ uri: "note://1", name: "note", read: () => "hello" }),
];

const asText = { type: "text", text: "A file: file:///a.txt" };

behaviour("each revision gets only the fields it knows", async (connect, { version }) => {
  const { client } = await connect({ handlers });
  const isStructured = version >= "2025-06-18";
  const [object, list] = await client.listTools();
  assertEquals(object.outputSchema !== undefined, isStructured);
  // Before 2026-07-28 the structured content of a tool is an object.
  assertEquals(list.outputSchema !== undefined, version === "2026-07-28");
  const structured = await Promise.all(["object", "list"].map((name) => client.callTool(name)));
  assertEquals(structured.map(({ structuredContent }) => structuredContent), [
    isStructured ? { n: 1 } : undefined,
    version === "2026-07-28" ? [1] : undefined,
  ]);
  assertEquals(structured.map(({ content }) => content), [[{ type: "text", text: '{"n":1}' }], [{
    type: "text",
    text: "[1]",
  }]]);
  const blocks = [sound, version >= "2025-06-18" ? file : asText];
  assertEquals((await client.callTool("content")).content, [...JSON.parse(JSON.stringify(blocks)), {
    type: "text",
    text: "x",
  }]);
  const { messages } = await client.getPrompt("sing");
  assertEquals(messages.map(({ content }) => content), JSON.parse(JSON.stringify(blocks)));
}, { versions: LEGACY_VERSIONS });

behaviour("a missing resource has the error code of the revision", async (connect, { era }) => {
  const { client } = await connect({ handlers });
  const error = await assertRejects(() => client.readResource("note://2"), RpcError);
  assertEquals([error.code, error.data], [era === "modern" ? -32602 : -32002, { uri: "note://2" }]);
  assertEquals((await client.readResource("note://1")).contents, [{
    uri: "note://1",
    mimeType: "text/plain",
    text: "hello",
  }]);
}, { versions: LEGACY_VERSIONS, transports: ["memory", "pipe"] });

behaviour("clients that subscribed to a resource are notified of its changes, and no others", async (connect) => {
  const { client, server, join } = await connect({ handlers });
  const other = await join();
  const watching = await client.subscribe({ resourceSubscriptions: ["note://1", "note://gone"] });
  const elsewhere = await other.subscribe({ resourceSubscriptions: ["note://3"], toolsListChanged: true });
  server.resourceUpdated("note://1");
  server.resourceUpdated("note://2");
  server.resourceUpdated("note://1");
  const [news] = await watching.take(1);
  assertEquals([news.method, news.params.uri], ["notifications/resources/updated", "note://1"]);
  server.resourceUpdated("note://3");
  await elsewhere.take(1);
  server.resourceUpdated("note://1");
  await watching.take(2);
  assertEquals(watching.received.map(({ params }) => params.uri), ["note://1", "note://1"]);
  assertEquals(elsewhere.received.map(({ params }) => params.uri), ["note://3"]);
  await watching.close();
  server.resourceUpdated("note://1");
  server.resourceUpdated("note://3");
  await elsewhere.take(2);
  assertEquals(watching.received.length, 2);
});

behaviour("the limit on a client's watched resources is enforced and named", async (connect, { era }) => {
  const { client } = await connect({ handlers, limits: { streams: { watchedUris: 2 } } });
  const uris = ["a:1", "a:2", "a:3"];
  const error = await assertRejects(
    () => client.subscribe({ resourceSubscriptions: uris }),
    RpcError,
    "(streams.watchedUris)",
  );
  assertEquals(error.code, -32602);
  if (era === "modern") return;
  assertEquals(await client.request("resources/unsubscribe", { uri: "a:1" }), {});
  assertEquals(await client.request("resources/subscribe", { uri: "a:3" }), {});
  assertEquals((await assertRejects(() => client.request("resources/subscribe", {}), RpcError)).code, -32602);
});

behaviour("the limit on a client's subscriptions is enforced and named", async (connect, { transport }) => {
  const { client } = await connect({ handlers, limits: { streams: { open: 2 } } });
  const [first] = await Promise.all([client.subscribe({}), client.subscribe({})]);
  const error = await assertRejects(() => client.subscribe({}), RpcError, "streams");
  assertEquals(error.status, transport === "pipe" ? undefined : 503);
  await first.close();
  // Over HTTP the server notices a closed stream a moment later.
  let again: unknown;
  await until(() => {
    if (!again) client.subscribe({}).then((opened) => again = opened, () => {});
    return again !== undefined;
  }, "there is room again");
}, { eras: ["modern"] });
