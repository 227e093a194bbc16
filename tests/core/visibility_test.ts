// Hidden handlers do not exist for a caller: everything it can observe is the same with and without them.
import { assert, assertEquals } from "@std/assert";
import { createServer, type Handler, prompt, resource, resourceProvider, type Server, tool } from "../../mod.ts";
import { connect, type Connection } from "../../src/testing/testing.ts";
import { type Random, random as createRandom } from "../support/random.ts";
import { toRequest } from "../support/requests.ts";
import { byKey, enter, listWaysIn, toPrincipal, toSigned } from "../support/ways_in.ts";
import { INTERNALS } from "../../src/core/internals.ts";

/** Handlers of every kind, each hidden or not. */
interface Made {
  readonly handler: Handler;
  readonly isHidden: boolean;
}

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

/** The content of an error or a result, without parts that differ between runs. */
async function outcomeOf(asked: Promise<unknown>): Promise<string> {
  const text = (value: unknown) => JSON.stringify(value, (key, value) => key === "nextCursor" ? value.length : value);
  return await asked.then(text, ({ code, message, data }) => text([code, message, data]));
}

/** Every page of a list. */
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

/** The response to a call whose header does not match its arguments. */
async function callWithHeader(server: Server, name: string): Promise<string> {
  const params = { name, arguments: { region: "north" } };
  const headers = { "mcp-param-region": "south", ...toSigned("bob") };
  const response = await server.fetch(toRequest("tools/call", params, headers));
  return `${response.status} ${(await response.text()).replace(/"id":\d+/, "")}`;
}

/** Everything bob can observe, given that he guesses every name. */
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
  const subscription = await client.subscribe({ ...lists, resourceSubscriptions: uris });
  seen.push(subscription.granted);
  for (const each of made.filter(isHere)) {
    server.handlers.remove(each.handler);
    server.handlers.add(each.handler);
    const isResource = each.handler[INTERNALS].feature.name === "resources";
    if (isResource) server.resourceUpdated(each.handler[INTERNALS].key.replace("{text}", "x").replace(/:$/, "://1"));
    // Changes are batched for some milliseconds.
    await new Promise((resolve) => setTimeout(resolve, 15));
  }
  await new Promise((resolve) => setTimeout(resolve, 15));
  seen.push(subscription.received.map(({ method, params }) => `${method} ${params.uri}`));
  await subscription.close();
  return seen;
}

for (const era of ["modern", "legacy"] as const) {
  for (const way of listWaysIn(era)) {
    Deno.test(`a handler hidden from a caller does not exist for it (${era} over ${way})`, async () => {
      for (let seed = 1; seed <= 8; seed++) {
        const random = createRandom(seed);
        const made = Array.from({ length: 8 }, (_, at): Made => {
          const isHidden = random.below(2) === 0;
          return { isHidden, handler: make(random, at, isHidden) };
        });
        // Both servers have all features, and both lists depend on the caller.
        const base = [
          tool({ name: "base", run: () => "", allow: () => true }),
          prompt({ name: "base", run: () => "", allow: () => true, input: TEXT, complete: { text: () => [] } }),
          resource({ uri: "base:/1", name: "base", allow: () => true, read: () => "" }),
          resource({ uri: "base://{x}", name: "base", allow: () => true, list: () => [], read: () => "" }),
        ];
        const options = { name: "seen", version: "1.0.0", auth: byKey, limits: { calls: { pageItems: 2 } } };
        const isSeen = ({ isHidden }: Made) => !isHidden;
        const observed: unknown[] = [];
        for (const handlers of [made, made.filter(isSeen)]) {
          const server = createServer({ ...options, handlers: [...base, ...handlers.map(({ handler }) => handler)] });
          const client = await enter(server, "bob", { era, way });
          if (handlers === made) {
            // The property would hold for a server that shows nothing to anyone.
            const other = await enter(server, "ada", { era, way });
            const all = await list(other, "tools/list");
            const tools = made.filter(({ handler }) => handler[INTERNALS].feature.name === "tools");
            for (const { handler } of tools) assert(all.join().includes(`"${handler[INTERNALS].key}"`));
            await other.close();
          }
          observed.push(
            handlers === made
              ? await observe(server, client, made, () => true)
              : await observe(server, client, made, isSeen),
          );
          await client.close();
          await server.close();
        }
        assertEquals(observed[0], observed[1], `seed ${seed}`);
      }
    });
  }
}

/** The ids of two tenants of one server. The principal is the same at both. */
const TENANTS = ["acme", "bee"] as const;

for (const era of ["modern", "legacy"] as const) {
  for (const transport of ["memory", "pipe"] as const) {
    Deno.test(`a handler of another tenant does not exist for a tenant (${era} over ${transport})`, async () => {
      for (let seed = 1; seed <= 8; seed++) {
        const random = createRandom(seed);
        // A hidden handler belongs to the other tenant. `allow` hides nothing from the caller of this test.
        const made = Array.from({ length: 8 }, (_, at): Made => {
          const isHidden = random.below(2) === 0;
          return { isHidden, handler: make(random, at, false) };
        });
        const own = made.filter(({ isHidden }) => !isHidden);
        const observed: unknown[] = [];
        for (const others of [made, own]) {
          const server = createServer({
            name: "seen",
            version: "1.0.0",
            path: "/:tenant/mcp",
            limits: { calls: { pageItems: 2 } },
            secret: "a secret of at least thirty-two characters",
            handlers: ({ tenant }) => [
              tool({ name: "base", run: () => "", allow: () => true }),
              prompt({ name: "base", run: () => "", allow: () => true, input: TEXT, complete: { text: () => [] } }),
              resource({ uri: "base:/1", name: "base", allow: () => true, read: () => "" }),
              resource({ uri: "base://{x}", name: "base", allow: () => true, list: () => [], read: () => "" }),
              ...(tenant === TENANTS[0] ? own : others).map(({ handler }) => handler),
            ],
          });
          const [tenant, other] = await Promise.all(
            TENANTS.map((tenant) =>
              connect(server, { era, transport, principal: toPrincipal("bob"), params: { tenant } })
            ),
          );
          // The other tenant works meanwhile, and its changes reach only its own clients.
          const changes = await other.subscribe({ toolsListChanged: true, resourceSubscriptions: ["base:/1"] });
          const all = await list(other, "tools/list");
          const tools = others.filter(({ handler }) => handler[INTERNALS].feature.name === "tools");
          for (const { handler } of tools) assert(all.join().includes(`"${handler[INTERNALS].key}"`));
          observed.push(await observe(server, tenant, made, () => false));
          await changes.close();
          await tenant.close();
          await other.close();
          await server.close();
        }
        assertEquals(observed[0], observed[1], `seed ${seed}`);
      }
    });
  }
}
