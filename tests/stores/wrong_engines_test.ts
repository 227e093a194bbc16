// `testStore` rejects engines that work only apparently. Each engine breaks one rule.
import { assertEquals, assertRejects } from "@std/assert";
import { INTERNALS } from "../../src/core/internals.ts";
import { customStore, memoryStore, type StoreEngine } from "../../src/stores/stores.ts";
import { listStoreCases } from "../../src/testing/test_store.ts";
import { wrapEngine } from "../support/engines.ts";
import { sentence } from "../support/messages.ts";

/** An engine with a mistake. */
interface Mistake {
  /** Words in the name of the rule that the engine breaks. No other rule's name contains all of them. */
  readonly rule: readonly string[];
  /** Returns one process's engine. `engine` fulfils all rules, and all processes share it. */
  readonly spoil: (engine: StoreEngine) => StoreEngine;
}

const rings = ["subscriber", "process", "500"];
const ascii = /[^\x20-\x7e]/g;

const mistakes: Readonly<Record<string, Mistake>> = {
  "listen never rings": {
    rule: rings,
    spoil: (engine) => wrapEngine(engine, ({ run }) => run(), { listen: () => () => {} }),
  },
  "listen rings 900 ms late": {
    rule: rings,
    spoil: (engine) =>
      wrapEngine(engine, ({ run }) => run(), {
        listen(onRing, onLost) {
          const timers = new Set<ReturnType<typeof setTimeout>>();
          const stop = engine.listen?.((log) => void timers.add(setTimeout(() => onRing(log), 900)), onLost);
          return async () => {
            timers.forEach(clearTimeout);
            (await stop)?.();
          };
        },
      }),
  },
  "a repeated token is detected only for the last entry": {
    rule: ["token", "appended"],
    spoil(engine) {
      let appended = 0;
      const last = new Map<unknown, unknown>();
      return wrapEngine(engine, async ({ name, args, run }) => {
        if (name !== "append") return await run();
        const [log, value, options] = args;
        const { token } = Object(options);
        if (last.get(log) === token) return await run();
        last.set(log, token);
        return await engine.append(String(log), String(value), { ...Object(options), token: `t${appended++}` });
      });
    },
  },
  "text beyond ASCII is lost in values": {
    rule: ["ASCII", "unchanged"],
    spoil: (engine) => wrapEngine(engine, replaceText("set")),
  },
  "text beyond ASCII is lost in logs": {
    rule: ["ASCII", "60"],
    spoil: (engine) => wrapEngine(engine, replaceText("append")),
  },
  "a time to live is read as whole seconds": {
    rule: ["expires", "500"],
    spoil: (engine) =>
      wrapEngine(engine, ({ name, args, run }) => {
        if (name !== "set") return run();
        const [key, value, options] = args;
        const { ttlMs } = Object(options);
        return engine.set(String(key), String(value), { ...Object(options), ttlMs: Math.ceil(ttlMs / 1000) * 1000 });
      }),
  },
  "an expired log is kept": {
    rule: ["expires", "500"],
    spoil: (engine) =>
      wrapEngine(engine, ({ name, args, run }) => {
        if (name !== "append") return run();
        const [log, value, options] = args;
        return engine.append(String(log), String(value), { ...Object(options), ttlMs: 1e6 });
      }),
  },
  "a page of a log holds at most 1 MB": {
    rule: ["ASCII", "60"],
    spoil: (engine) =>
      wrapEngine(engine, async ({ name, run }) => {
        const found = await run();
        if (name === "read" && JSON.stringify(found).length > 1e6) throw new Error("the message is too large");
        return found;
      }),
  },
  "a command fails forever after its first failure, because the connection is made once": {
    rule: ["engine", "failing"],
    spoil(engine) {
      let isClosed = false;
      return wrapEngine(engine, ({ run }) => {
        if (isClosed) throw new Error("the connection is closed");
        return run();
      }, { close: () => void (isClosed = true) });
    },
  },
  "the epoch of all logs is the same": {
    rule: ["epoch"],
    spoil: (engine) => wrapEngine(engine, replaceEpoch((epoch) => epoch && "constant")),
  },
  "the epoch changes with each entry": {
    rule: ["epoch"],
    spoil: (engine) => wrapEngine(engine, replaceEpoch((epoch, last) => epoch && `${epoch}-${last}`)),
  },
  "a list ignores case": {
    rule: ["prefix"],
    spoil: (engine) =>
      wrapEngine(engine, async ({ name, run }) => {
        const found = await run();
        return name === "list" && Array.isArray(found)
          ? found.sort((a, b) => a.key.toLowerCase() < b.key.toLowerCase() ? -1 : 1)
          : found;
      }),
  },
  "the states of logs are in another order": {
    rule: ["heads"],
    spoil: (engine) =>
      wrapEngine(engine, async ({ name, run }) => {
        const found = await run();
        return name === "heads" && Array.isArray(found) ? found.reverse() : found;
      }),
  },
};

function replaceText(command: string) {
  return ({ name, args, run }: Parameters<Parameters<typeof wrapEngine>[1]>[0]) => {
    if (name === command && Array.isArray(args)) args[1] = String(args[1]).replace(ascii, "?");
    return run();
  };
}

function replaceEpoch(change: (epoch: string, last: number) => string) {
  return async ({ run }: Parameters<Parameters<typeof wrapEngine>[1]>[0]) => {
    const found: unknown = await run();
    const { epoch, last } = Object(found);
    return typeof epoch === "string" ? { ...Object(found), epoch: change(epoch, last) } : found;
  };
}

for (const [title, { rule, spoil }] of Object.entries(mistakes)) {
  Deno.test(`testStore rejects an engine: ${title}`, async () => {
    const engine = await memoryStore()[INTERNALS].connect();
    const spoiled = spoil(engine);
    const cases = listStoreCases(() => customStore(() => spoiled));
    const [found, ...others] = cases.filter(({ name }) => rule.every((word) => name.includes(word)));
    assertEquals(others, []);
    await assertRejects(() => found.run(), Error, sentence());
  });
}

Deno.test("each rule of testStore has a unique name", () => {
  const names = listStoreCases(() => memoryStore()).map(({ name }) => name);
  const twice = names.filter((name, index) => names.indexOf(name) !== index);
  assertEquals(twice, []);
});
