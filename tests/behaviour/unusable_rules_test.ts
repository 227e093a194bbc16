// A visibility change that cannot be applied throws immediately, and changes nothing.
import { assertEquals, assertThrows } from "@std/assert";
import { extension, tool } from "../../mod.ts";
import { behaviour } from "../support/behaviour.ts";

behaviour(
  "disable() and enable() throw if a list cannot be compiled, and the next rules apply without the failed rule",
  async (join) => {
    const views = extension({ id: "com.example/views" });
    let isBroken = false;
    const verify = () => {
      if (isBroken) throw new Error("the check is broken");
      return undefined;
    };
    const shown = tool({ name: "shown", tags: ["b"], use: [views.layer({ verify })], run: () => "shown" });
    const secret = tool({ name: "secret", tags: ["a"], run: () => "the secret" });
    const { client, server } = await join({ handlers: [views, shown, secret] });
    const list = async () => (await client.listTools()).map(({ name }) => name);
    isBroken = true;
    assertThrows(() => server.handlers.disable({ tag: "a" }), Error, "the check is broken");
    assertThrows(() => server.handlers.disable({ tool: "secret" }), Error, "the check is broken");
    assertEquals(await list(), ["shown", "secret"]);
    isBroken = false;
    server.handlers.disable({ tag: "b" });
    assertEquals(await list(), ["secret"]);
    isBroken = true;
    assertThrows(() => server.handlers.enable({ tag: "b" }), Error, "the check is broken");
    assertEquals(await list(), ["secret"]);
    isBroken = false;
  },
);
