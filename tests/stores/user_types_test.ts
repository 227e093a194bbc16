// Code that does not say for whom it uses the store does not compile.
import { type Mistake, testTypeErrors } from "../support/type_errors.ts";

const toUrl = (path: string) => new URL(`../../${path}`, import.meta.url).href;

const mistakes: readonly Mistake[] = [
  {
    name: "an operation of a server without a user",
    code: `(core: Core) => core.shared?.get("key")`,
    line: "Property 'get' does not exist on type 'SharedState'.",
    most: 1,
  },
  {
    name: "an operation of a feature without a user",
    code: `(core: FeatureParts) => core.shared?.append("log", "", { ttlMs: 1, max: 1 })`,
    line: "Property 'append' does not exist on type 'SharedStore'.",
    most: 1,
  },
  {
    name: "the internal functions of a store, which have no operations",
    code: `(core: Core) => core.shared?.store.get("key")`,
    line: "Property 'get' does not exist on type 'StoreInternals'.",
    most: 1,
  },
  {
    name: "an operation of an extension without a user",
    code: `extension({ id: "a/b", start: (server) => void server.store?.get("key") })`,
    line: "Property 'get' does not exist on type 'ServerStores'.",
    most: 1,
  },
  {
    name: "an operation on an engine without a user",
    code: `(operations: Operations) => operations.read("log", { limit: 1 })`,
    line: "Expected 3 arguments, but got 2.",
    most: 1,
  },
  {
    name: "an operation of the process by a wrong name",
    code: `(operations: Operations) => operations.read(new User("client"), "log", { limit: 1 })`,
    line: `Argument of type '"client"' is not assignable to parameter of type 'Account | OwnUse'.`,
    most: 1,
  },
];

testTypeErrors(
  `import { extension } from "${toUrl("mod.ts")}";
import type { Core } from "${toUrl("src/server/engine/core.ts")}";
import type { FeatureParts } from "${toUrl("src/server/visibility/feature_parts.ts")}";
import { type Operations, User } from "${toUrl("src/stores/operations.ts")}";
export type Used = [Core, FeatureParts, Operations];
void [extension, User];`,
  mistakes,
);
