// Answers of `allow` that are neither true nor false.
import { assert, assertEquals } from "@std/assert";
import { resource, tool } from "../../mod.ts";
import { toRequest } from "../requests.ts";
import { as, start, toCall, toListen } from "./attack.ts";

/** What a query builder returns: it can be awaited, and is no promise. */
const no = { then: (settle: (allowed: boolean) => void) => settle(false) } as unknown as Promise<boolean>;

Deno.test("an `allow` that answers with something that can be awaited is awaited", async () => {
  const server = start({ handlers: [tool({ name: "hidden", allow: () => no, run: () => "secret" })] });
  const text = await (await server.fetch(toCall("hidden"), as("eve"))).text();
  await server.close();
  assert(!text.includes("secret"), text);
});
