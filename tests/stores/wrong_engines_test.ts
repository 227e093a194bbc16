// `testStore` rejects engines that work only apparently. Each engine breaks one rule.
import { assertMatch } from "@std/assert";
import { INTERNALS } from "../../src/core/call/internals.ts";
import { customStore, memoryStore, type StoreEngine } from "../../src/stores/stores.ts";
import { listStoreCases } from "../../src/testing/stores.ts";
import { wrapEngine } from "../support/engines.ts";

/** An engine with a mistake. */
interface Mistake {
  /** The name of the rule that the engine breaks. */
  readonly rule: string;
  /** The message with which the rule's test fails. */
  readonly message: RegExp;
  /** Returns one process's engine. `engine` fulfils all rules, and all processes share it. */
  readonly spoil: (engine: StoreEngine) => StoreEngine;
}

const rings = "a subscriber in another process receives an entry within 500 ms";
const ascii = /[^\x20-\x7e]/g;

const mistakes: Readonly<Record<string, Mistake>> = {
  "listen never rings": {
    rule: rings,
    message: /not arrive within 500 ms/,
    spoil: (engine) => wrapEngine(engine, ({ run }) => run(), { listen: () => () => {} }),
  },
  "listen rings 900 ms late": {
    rule: rings,
    message: /not arrive within 500 ms/,
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
    rule: "an entry with a token is appended only once, even if other entries were appended in between",
    message: /expected \[1,1\]/,
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
    rule: "non-ASCII text is returned unchanged",
    message: /a\?/,
    spoil: (engine) => wrapEngine(engine, replaceText("set")),
  },
  "text beyond ASCII is lost in logs": {
    rule: "60 entries with 3 MB of non-ASCII text are returned completely",
    message: /expected -1/,
    spoil: (engine) => wrapEngine(engine, replaceText("append")),
  },
  "a time to live is read as whole seconds": {
    rule: "a value expires at most 500 ms after its time to live has passed",
    message: /expected undefined/,
    spoil: (engine) =>
      wrapEngine(engine, ({ name, args, run }) => {
        if (name !== "set") return run();
        const [key, value, options] = args;
        const { ttlMs } = Object(options);
        return engine.set(String(key), String(value), { ...Object(options), ttlMs: Math.ceil(ttlMs / 1000) * 1000 });
      }),
  },
  "an expired log is kept": {
    rule: "a value expires at most 500 ms after its time to live has passed",
    message: /expected 0/,
    spoil: (engine) =>
      wrapEngine(engine, ({ name, args, run }) => {
        if (name !== "append") return run();
        const [log, value, options] = args;
        return engine.append(String(log), String(value), { ...Object(options), ttlMs: 1e6 });
      }),
  },
  "a page of a log holds at most 1 MB": {
    rule: "60 entries with 3 MB of non-ASCII text are returned completely",
    message: /expected 60|has failed/,
    spoil: (engine) =>
      wrapEngine(engine, async ({ name, run }) => {
        const found = await run();
        if (name === "read" && JSON.stringify(found).length > 1e6) throw new Error("the message is too large");
        return found;
      }),
  },
  "a command fails forever after its first failure, because the connection is made once": {
    rule: "the store closes an engine that keeps failing, and creates a new engine",
    message: /within 10 seconds/,
    spoil(engine) {
      let isClosed = false;
      return wrapEngine(engine, ({ run }) => {
        if (isClosed) throw new Error("the connection is closed");
        return run();
      }, { close: () => void (isClosed = true) });
    },
  },
  "the epoch of all logs is the same": {
    rule: "a log keeps its epoch until the log is lost",
    message: /\[false,false\]|expected false/,
    spoil: (engine) => wrapEngine(engine, replaceEpoch((epoch) => epoch && "constant")),
  },
  "the epoch changes with each entry": {
    rule: "a log keeps its epoch until the log is lost",
    message: /The store returns/,
    spoil: (engine) => wrapEngine(engine, replaceEpoch((epoch, last) => epoch && `${epoch}-${last}`)),
  },
  "a list ignores case": {
    rule: "values with a prefix are listed in pages, sorted by key",
    message: /The store returns/,
    spoil: (engine) =>
      wrapEngine(engine, async ({ name, run }) => {
        const found = await run();
        return name === "list" && Array.isArray(found)
          ? found.sort((a, b) => a.key.toLowerCase() < b.key.toLowerCase() ? -1 : 1)
          : found;
      }),
  },
  "the states of logs are in another order": {
    rule: "heads returns the state of each requested log",
    message: /The store returns/,
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

for (const [title, { rule, message, spoil }] of Object.entries(mistakes)) {
  Deno.test(`testStore rejects an engine: ${title}`, async () => {
    const engine = await memoryStore()[INTERNALS].connect();
    const spoiled = spoil(engine);
    const found = listStoreCases(() => customStore(() => spoiled)).find(({ name }) => name === rule);
    if (!found) throw new Error(`there is no rule "${rule}"`);
    const { error } = await found.run().then(() => ({ error: "it passes" }), (error) => ({ error }));
    assertMatch(String(error), message);
  });
}

Deno.test("each rule of testStore has a unique name", () => {
  const names = listStoreCases(() => memoryStore()).map(({ name }) => name);
  const twice = names.filter((name, index) => names.indexOf(name) !== index);
  assertMatch(String(twice.length), /^0$/, twice.join(", "));
});
