// Guards that return `null` instead of `undefined`.
import { assertEquals } from "@std/assert";
import { type Guards, tool } from "../../mod.ts";
import { start, toCall } from "./attack.ts";

const empty: Guards = { output: [() => null] };

for (const place of ["the handler", "the server"]) {
  Deno.test(`an output guard of ${place} can replace a value with null`, async () => {
    const secret = tool({ name: "secret", guards: place === "the handler" ? empty : {}, run: () => "the secret" });
    const server = start({ handlers: [secret], guards: place === "the server" ? empty : {} });
    const text = await (await server.fetch(toCall("secret"))).text();
    await server.close();
    assertEquals(text.includes("the secret"), false, text);
  });
}
