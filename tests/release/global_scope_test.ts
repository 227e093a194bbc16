// Servers can be created at the top level of a module. Some platforms forbid randomness, timers and requests there.
import { assertEquals } from "@std/assert";
import { createServer, prompt, resource, tool } from "../../mod.ts";
import { httpSse } from "../../src/server/transports/http/sse_2024.ts";
import { webSocket } from "../../src/server/transports/websocket.ts";

Deno.test("creating a server uses no randomness, starts no timer and sends no request", () => {
  const taken: string[] = [];
  const watched = [
    [crypto, "getRandomValues"],
    [crypto, "randomUUID"],
    [Math, "random"],
    [globalThis, "setTimeout"],
    [globalThis, "setInterval"],
    [globalThis, "fetch"],
  ] as const;
  const before = watched.map(([owner, name]) => Reflect.get(owner, name));
  const replace = (i: number, value: unknown) =>
    Object.defineProperty(watched[i][0], watched[i][1], { value, configurable: true, writable: true });
  watched.forEach(([owner, name], i) =>
    replace(i, (...args: unknown[]) => {
      taken.push(name);
      return before[i].apply(owner, args);
    })
  );
  try {
    for (const secret of [undefined, "a secret of more than thirty-two characters"]) {
      const server = createServer({
        name: "early",
        version: "1.0.0",
        secret,
        handlers: [
          tool({ name: "t", run: () => "" }),
          prompt({ name: "p", run: () => "" }),
          resource({ uri: "note://{id}", name: "r", read: () => "" }),
        ],
      });
      server.handlers.add(tool({ name: "t2", run: () => "" }));
      httpSse(server);
      webSocket(server);
    }
  } finally {
    watched.forEach((_, i) => replace(i, before[i]));
  }
  assertEquals(taken, []);
});
