// Lets `node --test` run tests written for `deno test`. Provides the import map of deno.json, `Deno.test`, and the APIs
// that `using` needs.
import { readFileSync } from "node:fs";
import { createRequire, registerHooks } from "node:module";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { transformSync } from "esbuild";
import { createDenoTest } from "./deno_test.ts";
import { targets } from "./import_map.ts";

const own = new URL("../../", import.meta.url).href;
const { resolve: toFile } = createRequire(import.meta.url);

registerHooks({
  resolve(specifier, context, next) {
    const target = targets.get(specifier);
    if (target === undefined) return next(specifier, context);
    // A path can name the folder of a package, which `import` cannot load.
    return next(target.startsWith("/") ? pathToFileURL(toFile(target)).href : target, context);
  },
  load(url, context, next) {
    if (!url.startsWith(`${own}tests/`) || !url.endsWith(".ts")) return next(url, context);
    // Replace only `Deno.test`. `Deno` itself stays undefined, because tests use it to detect the runtime.
    const source = readFileSync(new URL(url), "utf8").replaceAll(/\bDeno\.test\b/g, "__denoTest");
    const code = transformSync(source, { loader: "ts", target: "node22", sourcemap: "inline", sourcefile: url }).code;
    return { format: "module", source: code, shortCircuit: true };
  },
});

const timeout = 120_000;

/** APIs that Node 22 lacks. */
class Stack {
  readonly #disposers: (() => unknown)[] = [];
  #isDisposed = false;

  use<T extends AsyncDisposable | Disposable>(value: T): T {
    this.defer(() => Symbol.asyncDispose in value ? value[Symbol.asyncDispose]() : value[Symbol.dispose]());
    return value;
  }

  defer(dispose: () => unknown): void {
    if (this.#isDisposed) throw new ReferenceError("Cannot use the stack: it is disposed");
    this.#disposers.push(dispose);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isDisposed = true;
    const errors: unknown[] = [];
    for (const dispose of this.#disposers.splice(0).reverse()) {
      try {
        await dispose();
      } catch (error) {
        errors.push(error);
      }
    }
    if (errors.length) throw errors[0];
  }
}

globalThis.AsyncDisposableStack ??= Stack as unknown as typeof AsyncDisposableStack; // The class has only the members that the tests use.
Object.assign(globalThis, {
  __denoTest: createDenoTest((name, run, kind) => {
    test(name, { timeout, skip: kind === "skip", only: kind === "only" }, run);
  }),
});
