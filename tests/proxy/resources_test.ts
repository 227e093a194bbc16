// Resources, templates, their completion and subscriptions pass through a proxy.
import { assert, assertEquals, assertRejects } from "@std/assert";
import { createServer, McpError, resource, resourceProvider, tool } from "../../mod.ts";
import { behaviour, until } from "../support/behaviour.ts";
import { testLimits } from "../support/limits.ts";
import { createUpstream, pairs, proxyOf } from "./fixture.ts";

const note = resource({ uri: "note://one", name: "one", title: "One", mimeType: "text/x-note", read: () => "Milk" });
const pixel = resource({ uri: "pixel://1", name: "pixel", mimeType: "image/png", read: () => new Uint8Array([1, 2]) });
const book = resource({
  uri: "book://{shelf}/{name}",
  name: "books",
  complete: { name: (value, { shelf }) => [`${value}ooks of ${shelf}`] },
  read: ({ shelf, name }) => `${name} on ${shelf}`,
});

pairs("resources are listed and read as the server behind the proxy has them", async (join) => {
  const { client } = await join({ upstream: { handlers: [note, pixel] }, proxy: { prefix: "up_" } });
  const [one, two] = await client.listResources();
  assertEquals([one.uri, one.name, one.title, one.mimeType, two.uri], [
    "note://one",
    "one",
    "One",
    "text/x-note",
    "pixel://1",
  ]);
  const { contents: [text] } = await client.readResource("note://one");
  assertEquals([text.uri, text.mimeType, text.text], ["note://one", "text/x-note", "Milk"]);
  const { contents: [blob] } = await client.readResource("pixel://1");
  assertEquals([blob.mimeType, blob.blob], ["image/png", "AQI="]);
});

pairs("templates are listed, matched and completed", async (join) => {
  const { client } = await join({ upstream: { handlers: [book] } });
  const [listed] = await client.listResourceTemplates();
  assertEquals([listed.uriTemplate, listed.name], ["book://{shelf}/{name}", "books"]);
  const { contents: [{ text }] } = await client.readTemplate("book://{shelf}/{name}", { shelf: "a b", name: "x" });
  assertEquals(text, "x on a b");
  const { values } = await client.complete(
    { type: "ref/resource", uri: "book://{shelf}/{name}" },
    { name: "name", value: "b" },
    { arguments: { shelf: "left" } },
  );
  assertEquals(values, ["books of left"]);
});

pairs(
  "a linked resource that the server behind the proxy does not list is read by its prefix in `uris`",
  async (join) => {
    const hidden = resourceProvider({ scheme: "hidden", name: "hidden", read: (uri) => `text of ${uri}` });
    const options = { upstream: { handlers: [note, hidden] } };
    const { client } = await join({ ...options, proxy: { uris: ["hidden:"] } });
    assertEquals((await client.readResource("hidden:1")).contents[0].text, "text of hidden:1");
    assertEquals((await client.readResource("note://one")).contents[0].text, "Milk");
    await assertRejects(() => client.readResource("note://two"), McpError);
    const { client: other } = await join(options);
    await assertRejects(() => other.readResource("hidden:1"), McpError);
  },
);

pairs("a missing resource has the error code of the caller's revision", async (join, { era }) => {
  const gone = resource({
    uri: "gone://{id}",
    name: "gone",
    read() {
      throw McpError.resourceNotFound("gone://1");
    },
  });
  const { client } = await join({ upstream: { handlers: [gone] } });
  for (const uri of ["gone://1", "other://1"]) {
    const { code } = await assertRejects(() => client.readResource(uri), McpError);
    assertEquals([uri, code], [uri, era === "modern" ? -32602 : -32002]);
  }
});

pairs("a subscription learns of changes, also for the URI of a template, until it ends", async (join) => {
  const began: string[] = [];
  const live = resource({
    uri: "live://{id}",
    name: "live",
    read: ({ id }) => id,
    subscribe: (uri) => void began.push(`+${uri}`),
    unsubscribe: (uri) => void began.push(`-${uri}`),
  });
  const { client, upstream } = await join({ upstream: { handlers: [note, live] } });
  await client.listResources();
  const subscription = await client.subscribe({ resourceSubscriptions: ["note://one", "live://7"] });
  await until(() => began.includes("+live://7"), "the server behind the proxy has a subscriber");
  await until(() => {
    upstream.resourceUpdated("live://7");
    return subscription.received.some(({ params }) => params.uri === "live://7");
  }, "the change of the template's resource has arrived");
  await until(() => {
    upstream.resourceUpdated("note://one");
    return subscription.received.some(({ params }) => params.uri === "note://one");
  }, "the change of the resource has arrived");
  assert(subscription.received.every(({ method }) => method === "notifications/resources/updated"));
  await subscription.close();
  await until(() => began.includes("-live://7"), "the server behind the proxy has no subscriber");
});

pairs("a subscription to a resource does not load the lists again", async (join) => {
  const methods: string[] = [];
  const { client, upstream } = await join({
    upstream: {
      handlers: [note, tool({ name: "any", run: () => "" })],
      use: [async (ctx, next) => {
        methods.push(ctx.method);
        return await next();
      }],
    },
  });
  await client.listResources();
  await client.listTools();
  const listed = methods.filter((method) => method.endsWith("/list"));
  await using subscription = await client.subscribe({ resourceSubscriptions: ["note://one"] });
  await until(() => {
    upstream.resourceUpdated("note://one");
    return subscription.received.length;
  }, "the change has arrived");
  assertEquals(methods.filter((method) => method.endsWith("/list")), listed);
});

pairs("a resource may ask, and its error reaches the caller", async (join) => {
  const form = { type: "object", properties: { by: { type: "string" } } } as const;
  const ask = resource({
    uri: "ask://1",
    name: "ask",
    read: async (_uri, ctx) => `by ${(await ctx.elicit("who", { message: "Who?", schema: form })).content?.by}`,
  });
  const { client } = await join({
    upstream: { handlers: [ask] },
    client: { onElicit: ({ message }) => ({ action: "accept", content: { by: message } }) },
  });
  const { contents: [{ text }] } = await client.readResource("ask://1");
  assertEquals(text, "by up: Who?");
});

behaviour("a URI belongs to the server that lists it, whatever another one answers", async (connect, { transport }) => {
  const way = transport === "http" ? "http" : "pipe";
  const hostile = createUpstream("modern", {
    handlers: [
      resourceProvider({ scheme: "note", name: "all", list: () => ({ resources: [] }), read: () => "forged" }),
      tool({ name: "any", run: () => "" }),
    ],
  });
  const honest = createUpstream("legacy", { handlers: [note] });
  const { client, server } = await connect({
    handlers: [proxyOf(hostile, way, { name: "hostile" }), proxyOf(honest, way, { name: "honest", share: "all" })],
  });
  const { contents: [{ text }] } = await client.readResource("note://one");
  assertEquals(text, "Milk");
  await server.close();
  await hostile.close();
  await honest.close();
}, { transports: ["http", "pipe"], perInstance: "handlers" });

behaviour("a client has a share of the resources that a proxy watches", async (connect, { era }) => {
  const watched = new Set<string>();
  const live = resource({
    uri: "live://{id}",
    name: "live",
    subscribe: (uri) => void watched.add(uri),
    unsubscribe: (uri) => void watched.delete(uri),
    read: () => "",
  });
  const upstream = createUpstream("legacy", { handlers: [live] });
  const reached: string[] = [];
  const { client: ada, server, join } = await connect({
    handlers: [proxyOf(upstream, "http")],
    limits: testLimits({ proxy: { watched: 16, watchedPerClient: 4 } }),
    observer: { limit: ({ limit }) => void reached.push(limit) },
  }, { principal: { id: "ada" } });
  const bob = await join({ principal: { id: "bob" } });
  const uris = Array.from({ length: 20 }, (_, i) => `live://${i}`);
  const first = await ada.subscribe({ resourceSubscriptions: uris });
  await until(() => watched.size === 4, "the share is watched");
  const second = await bob.subscribe({ resourceSubscriptions: ["live://bob", uris[0]] });
  await until(() => watched.has("live://bob"), "another client's resource is watched");
  await until(() => {
    upstream.resourceUpdated("live://bob");
    upstream.resourceUpdated(uris[0]);
    return [uris[0], "live://bob"].every((uri) => second.received.some(({ params }) => params.uri === uri));
  }, "notifications");
  assertEquals([watched.size, new Set(reached)], [5, new Set(["proxy.watchedPerClient"])], era);
  await first.close();
  await until(() => watched.size === 2, "the share is free");
  const third = await ada.subscribe({ resourceSubscriptions: ["live://x", "live://y"] });
  await until(() => watched.size === 4, "the share is used again");
  for (const each of [second, third]) await each.close();
  await server.close();
  await upstream.close();
}, { transports: ["http"], perInstance: "services" });

behaviour("a change in the lists of one caller is not announced to another caller", async (connect) => {
  const upstream = createServer({
    name: "up",
    version: "1.0.0",
    auth: ({ headers }) => ({ id: headers.get("x-key") ?? "nobody" }),
    handlers: [
      resource({ uri: "inbox://me", name: "inbox", read: (_uri, ctx) => `of ${ctx.principal?.id}` }),
      resource({ uri: "news://all", name: "news", read: () => "news" }),
    ],
  });
  const gateway = proxyOf(upstream, "http", { headers: (ctx) => ({ "x-key": ctx.principal?.id ?? "" }) });
  const { client: ada, server, join } = await connect({ handlers: [gateway] }, { principal: { id: "ada" } });
  const bob = await join({ principal: { id: "bob" } });
  const read = async (client: typeof ada) => (await client.readResource("inbox://me")).contents[0].text;
  assertEquals([await read(ada), await read(bob)], ["of ada", "of bob"]);
  const filter = { resourceSubscriptions: ["inbox://me", "news://all"] };
  const ofAda = await ada.subscribe(filter);
  const ofBob = await bob.subscribe(filter);
  const has = (subscription: typeof ofAda, uri: string) =>
    subscription.received.some(({ params }) => params.uri === uri);
  await until(() => {
    upstream.resourceUpdated("inbox://me", { to: ({ principal }) => principal?.id === "ada" });
    return has(ofAda, "inbox://me");
  }, "the caller was notified of its own change");
  await until(() => {
    upstream.resourceUpdated("news://all");
    return has(ofAda, "news://all") && has(ofBob, "news://all");
  }, "both were notified of a change for all");
  assertEquals(has(ofBob, "inbox://me"), false);
  await ofAda.close();
  await ofBob.close();
  await server.close();
  await upstream.close();
}, { transports: ["http"], perInstance: "services" });
