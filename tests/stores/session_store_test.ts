// Sessions behave in the same way, whichever store contains their state.
import { INTERNALS } from "../../src/core/internals.ts";
import { customStore, memoryStore, type Store } from "../../src/stores/stores.ts";
import { testSessions } from "../eras/session_suite.ts";
import { type Faults, startStore, type StoreProcess, TIMEOUT_MS } from "../support/store_client.ts";

let running: Promise<StoreProcess> | undefined;

function makeStore(faults: Faults): () => Store {
  return () =>
    customStore(async () => await (await (running ??= startStore())).open(faults)[INTERNALS].connect(), {
      timeoutMs: TIMEOUT_MS,
    });
}

const memory = memoryStore();
testSessions("a store in memory", () => customStore(memory[INTERNALS].connect));
testSessions("a store in another process", makeStore({}));
testSessions(
  "a slow store that repeats commands and loses notifications",
  makeStore({ delayMs: 5, repeats: true, isDeaf: true }),
);
testSessions("a store that loses responses", makeStore({ loses: 0.2 }));

Deno.test("cleanup: the store process ends", async () => {
  await (await running)?.[Symbol.asyncDispose]();
});
