// For a caller, a hidden handler does not exist: all responses to the caller are the same with and without the hidden
// handler.
import { assert, assertEquals } from "@std/assert";
import { createServer, group, type Handler, prompt, resource, resourceProvider, type Server, tool } from "../../mod.ts";
import { type Connection, connectTest } from "../../src/testing/testing.ts";
import { FENCE, fence, withoutFences } from "../support/behaviour.ts";
import { type Random, random as createRandom } from "../support/random.ts";
import { toRequest } from "../support/requests.ts";
import { byKey, enter, listWaysIn, toPrincipal, toSigned } from "../support/ways_in.ts";
import { INTERNALS } from "../../src/core/internals.ts";
import { testLimits } from "../support/limits.ts";

/** A handler of any kind, which is hidden or visible. */
interface Made {
  readonly handler: Handler;
  readonly isHidden: boolean;
}

const ABOUT = { name: "seen", version: "1.0.0" };
const toHandler = ({ handler }: { readonly handler: Handler }) => handler;

function make(random: Random, at: number, isHidden: boolean): Handler {
  const sync = (call: { readonly principal?: { readonly id: string } }) => call.principal?.id === toPrincipal("ada").id;
  const allow = !isHidden
    ? random.pick([undefined, () => true])
    : random.pick([sync, async (call) => await sync(call)]);
  const name = `${random.pick(["a", "b", "c"])}${at}`;
  const region = { type: "string", "x-mcp-header": "Region" };
  switch (random.below(5)) {
    case 0:
      return tool({ name, allow, input: { type: "object", properties: { region } }, run: () => name });
    case 1:
      return prompt({ name, allow, run: () => name, input: TEXT, complete: { text: () => [name] } });
    case 2:
      return resource({ uri: `own://${name}`, name, allow, read: () => name });
    case 3:
      return resource({
        uri: `of${name}://{text}`,
        name,
        allow,
        complete: { text: () => [name] },
        list: () => [{ uri: `of${name}://x`, name: "x" }, { uri: `of${name}://y`, name: "y" }],
        read: ({ text }) => text,
      });
    default:
      return resourceProvider({
        scheme: `all${name}`,
        name,
        allow,
        list: (cursor) => ({
          resources: [{ uri: `all${name}://${cursor ?? 0}`, name }],
          nextCursor: cursor ? undefined : "1",
        }),
        read: (uri) => uri,
      });
  }
}

const TEXT = { type: "object", properties: { text: { type: "string" } } } as const;

/** Handlers of both servers. With them, every feature has a handler, and lists depend on the caller. */
const BASE: readonly Handler[] = [
  tool({ name: "base", run: () => "", allow: () => true }),
  prompt({ name: "base", run: () => "", allow: () => true, input: TEXT, complete: { text: () => [] } }),
  resource({ uri: "base:/1", name: "base", allow: () => true, read: () => "" }),
  resource({ uri: "base://{x}", name: "base", allow: () => true, list: () => [], read: () => "" }),
];

/** Returns random handlers. If `hides` is set, `allow` hides those that count as hidden. */
function makeAll(random: Random, hides: boolean): readonly Made[] {
  return Array.from({ length: 8 }, (_, at) => {
    const isHidden = random.below(2) === 0;
    return { isHidden, handler: make(random, at, isHidden && hides) };
  });
}

/** Returns the content of a result or an error, without parts that differ between runs. */
async function outcomeOf(asked: Promise<unknown>): Promise<string> {
  const text = (value: unknown) => JSON.stringify(value, (key, value) => key === "nextCursor" ? value.length : value);
  return await asked.then(text, ({ code, message, data }) => text([code, message, data]));
}

/** Returns the entries on every page of a list. */
async function list(client: Connection, method: string): Promise<string[]> {
  const pages: string[] = [];
  let cursor: unknown;
  do {
    const page = await client.request(method, cursor === undefined ? {} : { cursor });
    const { tools, prompts, resources, resourceTemplates, ttlMs, cacheScope, nextCursor } = page;
    pages.push(JSON.stringify([tools, prompts, resources, resourceTemplates, ttlMs, cacheScope, typeof nextCursor]));
    cursor = nextCursor;
  } while (cursor !== undefined && pages.length < 50);
  return pages;
}

/** Returns the response to a call whose header does not match its arguments. */
async function callWithHeader(server: Server, name: string): Promise<string> {
  const params = { name, arguments: { region: "north" } };
  const headers = { "mcp-param-region": "south", ...toSigned("bob") };
  const response = await server.fetch(toRequest("tools/call", params, headers));
  return `${response.status} ${(await response.text()).replace(/"id":\d+/, "")}`;
}

/** Returns all responses that bob can get by guessing every name. */
async function observe(
  server: Server,
  client: Connection,
  made: readonly Made[],
  isHere: (made: Made) => boolean,
): Promise<unknown> {
  const seen: unknown[] = [];
  for (const method of ["tools/list", "prompts/list", "resources/list", "resources/templates/list"]) {
    seen.push(await list(client, method));
  }
  const names = made.map(({ handler }) => handler[INTERNALS].key);
  const uris = names.flatMap((key) => [key, key.replace("{text}", "x"), `${key}//1`]);
  for (const name of names) {
    seen.push(await outcomeOf(client.request("tools/call", { name, arguments: { region: "north" } })));
    seen.push(await outcomeOf(client.request("tools/call", { name, arguments: 5 })));
    if (client.era === "modern") seen.push(await callWithHeader(server, name));
    seen.push(await outcomeOf(client.request("prompts/get", { name, arguments: { text: "x" } })));
    const argument = { name: "text", value: "" };
    seen.push(await outcomeOf(client.request("completion/complete", { ref: { type: "ref/prompt", name }, argument })));
  }
  for (const uri of uris) {
    seen.push(await outcomeOf(client.request("resources/read", { uri })));
    const ref = { type: "ref/resource", uri };
    const argument = { name: "text", value: "" };
    seen.push(await outcomeOf(client.request("completion/complete", { ref, argument })));
  }
  const lists = { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true };
  const subscription = await client.subscribe({ ...lists, resourceSubscriptions: [...uris, FENCE] });
  seen.push(subscription.granted);
  for (const each of made.filter(isHere)) {
    server.handlers.remove(each.handler);
    server.handlers.add(each.handler);
    const isResource = each.handler[INTERNALS].feature.name === "resources";
    if (isResource) server.resourceUpdated(each.handler[INTERNALS].key.replace("{text}", "x").replace(/:$/, "://1"));
    // The fence ends the batch, because changes within one batch are sent as one notification.
    await fence(server, subscription);
  }
  seen.push(withoutFences(subscription).map(({ method, params }) => `${method} ${params.uri}`));
  await subscription.close();
  return seen;
}

for (const era of ["modern", "legacy"] as const) {
  for (const way of listWaysIn(era)) {
    Deno.test(`for a caller from which a handler is hidden, the handler does not exist (${era} over ${way})`, async () => {
      for (let seed = 1; seed <= 8; seed++) {
        const random = createRandom(seed);
        const made = makeAll(random, true);
        const options = { ...ABOUT, auth: byKey, limits: testLimits({ calls: { pageItems: 2 } }) };
        const isSeen = ({ isHidden }: Made) => !isHidden;
        const observed: unknown[] = [];
        for (const handlers of [made, made.filter(isSeen)]) {
          await using server = createServer({ ...options, handlers: [...BASE, ...handlers.map(toHandler)] });
          await using client = await enter(server, "bob", { era, way });
          if (handlers === made) {
            // Check that another caller sees the handlers, because a server that shows no handlers would pass too.
            await using other = await enter(server, "ada", { era, way });
            const all = await list(other, "tools/list");
            const tools = made.filter(({ handler }) => handler[INTERNALS].feature.name === "tools");
            for (const { handler } of tools) assert(all.join().includes(`"${handler[INTERNALS].key}"`));
          }
          observed.push(await observe(server, client, made, handlers === made ? () => true : isSeen));
        }
        assertEquals(observed[0], observed[1], `seed ${seed}`);
      }
    });
  }
}

/** The tenants of one server. The principal is the same on both tenants' paths. */
const TENANTS = ["acme", "bee"] as const;

for (const era of ["modern", "legacy"] as const) {
  for (const transport of ["memory", "pipe"] as const) {
    Deno.test(`for a tenant, a handler of another tenant does not exist (${era} over ${transport})`, async () => {
      for (let seed = 1; seed <= 8; seed++) {
        const random = createRandom(seed);
        // Here, hidden handlers are the other tenant's handlers, and `allow` hides no handlers.
        const made = makeAll(random, false);
        const own = made.filter(({ isHidden }) => !isHidden);
        const observed: unknown[] = [];
        for (const others of [made, own]) {
          await using server = createServer({
            ...ABOUT,
            path: "/:tenant/mcp",
            limits: testLimits({ calls: { pageItems: 2 } }),
            secret: "a secret of at least thirty-two characters",
            handlers: ({ tenant }) => [...BASE, ...(tenant === TENANTS[0] ? own : others).map(toHandler)],
          });
          const [tenant, other] = await Promise.all(
            TENANTS.map((tenant) =>
              connectTest(server, { era, transport, principal: toPrincipal("bob"), pathParams: { tenant } })
            ),
          );
          // The other tenant's client is active at the same time, and the other tenant's changes reach only this
          // client.
          const changes = await other.subscribe({ toolsListChanged: true, resourceSubscriptions: ["base:/1"] });
          const all = await list(other, "tools/list");
          const tools = others.filter(({ handler }) => handler[INTERNALS].feature.name === "tools");
          for (const { handler } of tools) assert(all.join().includes(`"${handler[INTERNALS].key}"`));
          observed.push(await observe(server, tenant, made, () => false));
          await changes.close();
          await tenant.close();
          await other.close();
        }
        assertEquals(observed[0], observed[1], `seed ${seed}`);
      }
    });
  }
}

// A model of visibility by tags, groups, `allow`, enable and disable. It shares no code with the library.

type Caller = "ada" | "bob";
type Kind = "tool" | "prompt" | "resource" | "template";

/** A tool, a prompt or a resource, which can be in groups. */
interface Leaf {
  readonly kind: Kind;
  /** The name or URI that clients see. */
  readonly key: string;
  /** The selectors that match the leaf: its kind and name, its tags, and its groups. */
  readonly selectors: ReadonlySet<string>;
  readonly allowed: ReadonlySet<Caller>;
}

/** A handler of the server, with the leaves that it contains. */
interface Tree {
  readonly handler: Handler;
  readonly leaves: readonly Leaf[];
}

interface ModelRule {
  readonly selector: string;
  readonly isShown: boolean;
  readonly callers: ReadonlySet<Caller>;
}

const BOTH: readonly Caller[] = ["ada", "bob"];
const LISTS = ["tools", "prompts", "resources"] as const;
const TAGS = ["red", "blue"];

/** The functions that select callers. Rules for the same callers always use the same function, as users should do. */
const SELECT: readonly { readonly callers: ReadonlySet<Caller>; readonly test?: Handler["allow"] }[] = [
  { callers: new Set(BOTH) },
  { callers: new Set(["ada"]), test: ({ principal }) => principal?.id === toPrincipal("ada").id },
  { callers: new Set(["bob"]), test: async ({ principal }) => await principal?.id === toPrincipal("bob").id },
];

function makeLeaf(random: Random, at: number): Tree {
  const kind = random.pick<Kind>(["tool", "prompt", "resource", "template"]);
  const name = `h${at}`;
  const { test: allow, callers: allowed } = random.pick(SELECT);
  const tags = TAGS.filter(() => random.below(3) === 0);
  const options = { name, allow, tags };
  const key = kind === "resource" ? `fix:/${name}` : kind === "template" ? `${name}://{text}` : name;
  const complete = { text: () => [name] };
  const handler = kind === "tool"
    ? tool({ ...options, run: () => name })
    : kind === "prompt"
    ? prompt({ ...options, input: TEXT, complete, run: () => name })
    : kind === "resource"
    ? resource({ ...options, uri: key, read: () => name })
    : resource({
      ...options,
      uri: `${name}://{text}`,
      complete,
      list: () => [{ uri: `${name}://x`, name }],
      read: () => name,
    });
  const type = kind === "template" ? "resource" : kind;
  const selectors = new Set([`${type} ${key}`, ...tags.map((tag) => `tag ${tag}`)]);
  return { handler, leaves: [{ kind, key, selectors, allowed }] };
}

function makeTree(random: Random, name: string, depth: number): Tree {
  if (depth && random.below(3) === 0) {
    const trees = Array.from({ length: 1 + random.below(3) }, (_, i) => makeTree(random, `${name}${i}`, depth - 1));
    const own = `g${name}`;
    const tags = TAGS.filter(() => random.below(4) === 0);
    const { test: allow, callers } = random.pick(SELECT);
    const into = (key: string) => `${own}_${key}`;
    const leaves = trees.flatMap(({ leaves }) => leaves).map(({ kind, key, selectors, allowed }): Leaf => {
      const isNamed = kind === "tool" || kind === "prompt";
      const renamed = [...selectors].map((selector) => {
        const [kind, key] = selector.split(" ");
        return kind === "resource" || kind === "tag" ? selector : `${kind} ${into(key)}`;
      });
      return {
        kind,
        key: isNamed ? into(key) : key,
        selectors: new Set([...renamed, `group ${own}`, ...tags.map((tag) => `tag ${tag}`)]),
        allowed: allowed.intersection(callers),
      };
    });
    return { handler: group(own, trees.map(({ handler }) => handler), { allow, tags }), leaves };
  }
  return makeLeaf(random, Number(name));
}

function isShown({ selectors, allowed }: Leaf, caller: Caller, rules: readonly ModelRule[]): boolean {
  const rule = rules.findLast(({ selector, callers }) => selectors.has(selector) && callers.has(caller));
  return allowed.has(caller) && (rule?.isShown ?? true);
}

function toList(kind: Kind): typeof LISTS[number] {
  return kind === "template" ? "resources" : `${kind}s`;
}

/** Returns what a client sees: its lists, and whether it can call, read and complete each handler. */
async function see(client: Connection, leaves: readonly Leaf[]): Promise<unknown> {
  const listed = [
    (await client.listTools()).map(({ name }) => `tool ${name}`),
    (await client.listPrompts()).map(({ name }) => `prompt ${name}`),
    (await client.listResources()).map(({ uri }) => `resource ${uri}`),
    (await client.listResourceTemplates()).map(({ uriTemplate }) => `template ${uriTemplate}`),
  ].flat().filter((name) => !name.endsWith("base") && !name.includes("base:"));
  const works = async (asked: Promise<unknown>) => await asked.then(() => true, () => false);
  const used = await Promise.all(leaves.map(async ({ kind, key }) => {
    const argument = { name: "text", value: "" };
    if (kind === "tool") return [await works(client.callTool(key))];
    const ref = kind === "prompt"
      ? { type: "ref/prompt" as const, name: key }
      : { type: "ref/resource" as const, uri: key };
    const canUse = kind === "prompt"
      ? client.getPrompt(key, { text: "x" })
      : client.readResource(key.replace("{text}", "x"));
    return [await works(canUse), ...kind === "resource" ? [] : [await works(client.complete(ref, argument))]];
  }));
  return { listed: listed.sort(), used };
}

/** Returns what a client should see according to the model. */
function predict(leaves: readonly Leaf[], isThere: (leaf: Leaf) => boolean): unknown {
  const listed = leaves.filter(isThere).flatMap(({ kind, key }) =>
    kind === "template" ? [`template ${key}`, `resource ${key.replace("{text}", "x")}`] : [`${kind} ${key}`]
  );
  const used = leaves.map((leaf) =>
    leaf.kind === "tool" || leaf.kind === "resource" ? [isThere(leaf)] : [isThere(leaf), isThere(leaf)]
  );
  return { listed: listed.sort(), used };
}

for (const era of ["modern", "legacy"] as const) {
  for (const way of ["memory", "pipe"] as const) {
    Deno.test(`callers see the handlers that tags, groups and rules permit, and are notified of exactly the changes that they see (${era} over ${way})`, async () => {
      for (let seed = 1; seed <= 6; seed++) {
        const random = createRandom(seed);
        const trees = Array.from({ length: 6 }, (_, at) => makeTree(random, `${at + 1}`, 2));
        const leaves = trees.flatMap((tree) => tree.leaves);
        // The base handlers ensure that all lists exist.
        const base = [
          tool({ name: "base", run: () => "" }),
          prompt({ name: "base", run: () => "", input: TEXT, complete: { text: () => [] } }),
          resource({ uri: "base:/1", name: "base", read: () => "" }),
        ];
        await using server = createServer({ ...ABOUT, auth: byKey, handlers: [...base, ...trees.map(toHandler)] });
        const join = (name: Caller) => enter(server, name, { era, way });
        const clients = { ada: await join("ada"), bob: await join("bob") };
        const uris = leaves.filter(({ kind }) => toList(kind) === "resources").map(({ key }) =>
          key.replace("{text}", "x")
        );
        const lists = { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true };
        const filter = { ...lists, resourceSubscriptions: [...uris, FENCE] };
        const subscriptions = await Promise.all(BOTH.map((caller) => clients[caller].subscribe(filter)));
        const selectors = [...new Set(leaves.flatMap(({ selectors }) => [...selectors]))];
        const present = new Set<Tree>(trees);
        let rules: readonly ModelRule[] = [];
        const isThere = (caller: Caller) => (leaf: Leaf) =>
          isShown(leaf, caller, rules) && [...present].some(({ leaves }) => leaves.includes(leaf));

        for (let step = 0; step < 8; step++) {
          const before = new Map(BOTH.map((caller) => [caller, leaves.filter(isThere(caller))]));
          for (const caller of BOTH) (clients[caller].received as unknown[]).length = 0;
          const tree = random.pick(trees);
          const isToggle = random.below(4) > 0;
          if (!isToggle) {
            server.handlers[present.has(tree) ? "remove" : "add"](tree.handler);
            if (!present.delete(tree)) present.add(tree);
          } else {
            const selector = random.pick(selectors);
            const isShown = random.below(2) === 0;
            const { callers, test } = random.pick(SELECT);
            const [kind, name] = selector.split(" ");
            server.handlers[isShown ? "enable" : "disable"]({ [kind]: name } as { tag: string }, test);
            rules = [...rules, { selector, isShown, callers }];
          }
          for (const uri of uris) server.resourceUpdated(uri);
          await clients.bob.listTools(); // This request waits until the module for rules is loaded.
          await fence(server, ...subscriptions);
          for (const caller of BOTH) {
            const place = `seed ${seed}, step ${step}, ${caller}`;
            const now = leaves.filter(isThere(caller));
            const was = before.get(caller) ?? [];
            const changed = LISTS.filter((list) => {
              const keys = (all: readonly Leaf[]) =>
                all.filter(({ kind }) => toList(kind) === list).map(({ key }) => key).join();
              return keys(now) !== keys(was);
            });
            const received = withoutFences(clients[caller]);
            const told = received.flatMap(({ method }) => /(\w+)\/list_changed/.exec(method)?.[1] ?? []);
            assertEquals(told.sort(), changed.toSorted(), place);
            // A caller can be notified of a resource that does not exist, but not of a resource that is hidden from the
            // caller.
            const updated = new Set(received.flatMap(({ params }) => typeof params.uri === "string" ? params.uri : []));
            const isHidden = (leaf: Leaf) =>
              !isThere(caller)(leaf) && [...present].some(({ leaves }) => leaves.includes(leaf));
            const wanted = leaves.filter((leaf) => toList(leaf.kind) === "resources" && !isHidden(leaf));
            assertEquals(updated, new Set(wanted.map(({ key }) => key.replace("{text}", "x"))), place);
            assertEquals(await see(clients[caller], leaves), predict(leaves, isThere(caller)), place);
          }
        }
        for (const caller of BOTH) await clients[caller].close();
      }
    });
  }
}
