// The compiler's errors for the most frequent mistakes with stores. One line names the missing or incorrect part.
import { type Mistake, testTypeErrors } from "../support/type_errors.ts";

const library = new URL("../../mod.ts", import.meta.url).href;
const stores = new URL("../../src/stores/stores.ts", import.meta.url).href;

/** Programs with a mistake, each with a line of the compiler's error. */
const mistakes: readonly Mistake[] = [
  {
    name: "an engine instead of a store",
    code: `createServer({ name: "a", version: "1", store: {} });`,
    line: "Type '{}' is missing the following properties from type 'Store': get, set, delete, list,",
    most: 1,
  },
  {
    name: "a store that is not called",
    code: `createServer({ name: "a", version: "1", store: memoryStore });`,
    line: "Did you mean to call this expression?",
    most: 3,
  },
  {
    name: "a value without a time to live",
    code: `memoryStore().set("key", "value", {});`,
    line: "Property 'ttlMs' is missing in type '{}' but required in type 'SetOptions'.",
    most: 2,
  },
  {
    name: "a value that is not a text",
    code: `memoryStore().set("key", { a: 1 }, { ttlMs: 1 });`,
    line: "Argument of type '{ a: number; }' is not assignable to parameter of type 'string'.",
    most: 1,
  },
  {
    name: "a log without a maximum",
    code: `memoryStore().append("log", "value", { ttlMs: 1 });`,
    line: "Property 'max' is missing in type '{ ttlMs: number; }' but required in type 'AppendOptions'.",
    most: 2,
  },
  {
    name: "an engine without a method",
    code:
      `customStore({ get: () => undefined, set: () => true, delete: () => true, append: () => 1, read: () => ({ entries: [], first: 1, last: 0, epoch: '' }), list: () => [] });`,
    line: "Property 'trim' is missing in type",
    most: 2,
  },
  {
    name: "an unknown option",
    code: `customStore(() => { throw 0; }, { timeout: 5 });`,
    line: "'timeout' does not exist in type 'StoreOptions'.",
    most: 1,
  },
];

testTypeErrors(
  `import { createServer } from "${library}";
import { customStore, memoryStore } from "${stores}";
void [createServer, customStore, memoryStore];`,
  mistakes,
);
