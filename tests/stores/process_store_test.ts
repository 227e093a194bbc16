// A store in another process fulfils the contract of a store, even if commands are slow, repeated or lost.
import { testStore } from "../../src/testing/test_store.ts";
import type { Store } from "../../src/stores/stores.ts";
import { type Faults, startStore, type StoreProcess } from "../support/store_client.ts";

let running: Promise<StoreProcess> | undefined;

/** Ends the store process after the last test. */
let left = 0;

function testWith(title: string, faults: Faults): void {
  const make = async (): Promise<Store> => (await (running ??= startStore())).open({ ...faults });
  testStore(make, {
    test(name, run) {
      left++;
      Deno.test(`${title} ${name}`, async () => {
        try {
          await run();
        } finally {
          if (!--left) await (await running)?.[Symbol.asyncDispose]();
        }
      });
    },
  });
}

testWith("process", {});
testWith("slow process", { delayMs: 20 });
testWith("repeating process", { repeats: true });
