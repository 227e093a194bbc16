// `allow` of a resource with parameters decides for each concrete resource. For the caller, a hidden resource does not
// exist, and its changes are not announced.
import { assert, assertEquals, assertRejects } from "@std/assert";
import { resource, resourceProvider, service } from "../../mod.ts";
import { behaviour } from "../support/behaviour.ts";

const users = service("users", () => new Map([["ada", "ada"], ["bob", "bob"]]));
const subjects: unknown[] = [];

const note = resource({
  uri: "note://{user}/{title}",
  name: "note",
  services: { users },
  allow: (ctx, note) => {
    subjects.push(note);
    return !note || note.user === ctx.services.users.get(ctx.principal?.id ?? "");
  },
  complete: { title: (_value, _others, { principal }) => [`of ${principal?.id}`] },
  list: ({ principal }) => [{ uri: `note://${principal?.id}/1`, name: "1" }],
  read: ({ user, title }) => `${title} of ${user}`,
});
const file = resourceProvider({
  scheme: "file",
  name: "files",
  allow: async ({ principal }, uri) => await !uri || uri?.startsWith(`file://${principal?.id}/`) === true,
  read: (uri) => uri,
});
const fixed = resource({ uri: "fixed://1", name: "fixed", allow: (_, uri) => uri === "fixed://1", read: () => "1" });

behaviour("`allow` of a resource with parameters decides for each concrete resource", async (connect) => {
  const { client: ada, server, join } = await connect({ handlers: [note, file, fixed] }, { principal: { id: "ada" } });
  const bob = await join({ principal: { id: "bob" } });
  for (
    const [of, other, unknown] of [["note://ada/x", "note://bob/x", "note://eve/x"], [
      "file://ada/x",
      "file://bob/x",
      "file://eve/x",
    ]]
  ) {
    await ada.readResource(of);
    await bob.readResource(other);
    const refusals = [];
    for (const uri of [other, unknown]) refusals.push(Object(await assertRejects(() => ada.readResource(uri))));
    const [hidden, missing] = refusals.map(({ code, message }) => [code, message.replace(/bob|eve/, "")]);
    assertEquals(hidden, missing);
  }
  await ada.readResource("fixed://1");
  // Each caller sees the template and its own list of resources.
  assertEquals((await ada.listResourceTemplates()).map(({ name }) => name), ["note"]);
  assertEquals((await ada.listResources()).map(({ uri }) => uri), ["note://ada/1"]);
  const ref = { type: "ref/resource", uri: "note://{user}/{title}" } as const;
  assertEquals((await ada.complete(ref, { name: "title", value: "" })).values, ["of ada"]);

  const uris = ["note://ada/x", "note://bob/x", "file://bob/x", "file://ada/x"];
  const watching = await ada.subscribe({ resourceSubscriptions: uris });
  const others = await bob.subscribe({ resourceSubscriptions: uris });
  for (const uri of uris.toReversed()) server.resourceUpdated(uri);
  assertEquals((await watching.take(2)).map(({ params }) => params.uri).sort(), ["file://ada/x", "note://ada/x"]);
  assertEquals((await others.take(2)).map(({ params }) => params.uri).sort(), ["file://bob/x", "note://bob/x"]);
  // `allow` gets decoded variables, and gets no variables in a list request.
  subjects.length = 0;
  await assertRejects(() => ada.readResource("note://%62ob/x"));
  // The server may at the same time check changes that another instance announced, so `subjects` can contain more
  // entries.
  const users = subjects.map((subject) => Object(subject).user);
  assertEquals([users.includes("%62ob"), users.includes("bob")], [false, true]);
  assertEquals(subjects.includes(undefined), false);
  await ada.listResources();
  assert(subjects.includes(undefined));
});
