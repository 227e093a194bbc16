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

Deno.test("an `allow` that answers neither true nor false does not end the process with the next news", async () => {
  const read = () => "";
  const odd = resource({ uri: "test://odd", name: "odd", allow: () => "yes" as unknown as boolean, read });
  const server = start({ handlers: [odd] });
  const response = await server.fetch(toListen({ resourceSubscriptions: ["test://odd"] }));
  const errors: unknown[] = [];
  const { setTimeout: real } = globalThis;
  // What a timer throws, nobody catches.
  globalThis.setTimeout = ((job: () => void, ms?: number) =>
    real(() => {
      try {
        job();
      } catch (error) {
        errors.push(error);
      }
    }, ms)) as typeof setTimeout;
  try {
    server.updated("test://odd");
    await new Promise((resolve) => real(resolve, 100));
  } finally {
    globalThis.setTimeout = real;
  }
  await response.body?.cancel();
  await server.close();
  assertEquals(errors, []);
});
