// Guards that return `null` instead of `undefined`.
import { assertEquals } from "@std/assert";
import { tool } from "../../mod.ts";
import { guard, type GuardOptions } from "../../src/layers/layers.ts";
import { start, toCall } from "./attack.ts";

const empty: GuardOptions = { output: [() => null] };

for (const place of ["the handler", "the server"]) {
  Deno.test(`an output guard of ${place} can replace a value with null`, async () => {
    const secret = tool({
      name: "secret",
      use: [guard(place === "the handler" ? empty : {})],
      run: () => "the secret",
    });
    const server = start({ handlers: [secret], use: [guard(place === "the server" ? empty : {})] });
    const text = await (await server.fetch(toCall("secret"))).text();
    await server.close();
    assertEquals(text.includes("the secret"), false, text);
  });
}
