// Lets `bun test` run the tests that are written for `deno test`: the names of deno.json's import map lead to real
// files, and `Deno.test` (renamed by bunfig.toml) registers with Bun's runner.
import config from "../deno.json" with { type: "json" };

type Run = (t: Step) => void | Promise<void>;
interface Definition {
  readonly name?: string;
  readonly fn?: Run;
  readonly ignore?: boolean;
  readonly only?: boolean;
}
interface Step {
  readonly name: string;
  step(first: string | Run | (Definition & { fn: Run }), run?: Run): Promise<boolean>;
}

type Register = (name: string, run: () => Promise<void>, options?: { timeout: number }) => void;
interface BunHost {
  plugin(plugin: { name: string; setup(build: Build): void }): void | Promise<void>;
  jest(path: string): { test: Register & { skip: Register; only: Register } };
}
interface Build {
  module(name: string, load: () => Promise<{ exports: unknown; loader: "object" }>): void;
}

const { Bun } = globalThis as unknown as { Bun: BunHost }; // Deno, which checks this file, has no types for Bun
const root = new URL("../", import.meta.url).pathname;

/** The file or package that a value of the import map stands for, or undefined where Bun finds it by the key alone. */
function toTarget(key: string, value: string): string | undefined {
  if (value.startsWith("./")) return root + value.slice(2);
  const parts = /^npm:\/?((?:@[^/]+\/)?[^@/]+)(?:@[^/]+)?(\/.*)?$/.exec(value);
  if (!parts) throw new Error(`Cannot map "${key}" for Bun: "${value}" is neither a file nor an npm package`);
  const target = parts[1] + (parts[2] ?? "");
  return target === key ? undefined : target;
}

const targets = new Map<string, string>();
for (const [key, value] of Object.entries(config.imports)) {
  const target = toTarget(key, value);
  if (target !== undefined && !key.endsWith("/")) targets.set(key, target);
}
for (const [path, file] of Object.entries(config.exports)) {
  const name = config.name + path.slice(1);
  for (const key of [name, "jsr:" + name]) targets.set(key, root + file.slice(2));
}
for (const key of ["npm:zod", "npm:zod@4", "npm:zod@^4"]) targets.set(key, "zod");

// Bun asks `onResolve` for nothing that a running file imports, so each name becomes a module of its own.
await Bun.plugin({
  name: "import-map",
  setup(build) {
    for (const [key, target] of targets) {
      build.module(key, async () => ({ exports: await import(target), loader: "object" }));
    }
  },
});

const { test } = Bun.jest(root + "tests/bun_preload.ts");
const timeout = 60_000; // Deno has no limit per test; Bun's own of 5 s would fail tests that spawn a process

function toDefinition(args: readonly unknown[]): Required<Definition> {
  let found: Definition = {};
  for (const arg of args) {
    if (typeof arg === "string") found = { ...found, name: arg };
    else if (typeof arg === "function") found = { name: arg.name, ...found, fn: arg as Run };
    else found = { ...found, ...(arg as Definition) };
  }
  const { fn, name = fn?.name, ignore = false, only = false } = found;
  if (!fn || !name) throw new TypeError("Cannot register a test: it has no function or no name");
  return { name, fn, ignore, only };
}

/** A step runs at once, inside its test, as in Deno; a failed step fails the test when all steps have run. */
async function runSteps(name: string, fn: Run): Promise<void> {
  const failures: unknown[] = [];
  await fn({
    name,
    async step(...args) {
      const { name: title, fn, ignore } = toDefinition(args);
      if (ignore) return false;
      try {
        await runSteps(`${name} ... ${title}`, fn);
        return true;
      } catch (error) {
        failures.push(error instanceof Error ? Object.assign(error, { message: `${title}: ${error.message}` }) : error);
        return false;
      }
    },
  });
  if (failures.length === 1) throw failures[0];
  if (failures.length > 1) throw new AggregateError(failures, `${failures.length} steps of "${name}" failed`);
}

function register(kind: Definition, args: readonly unknown[]): void {
  const { name, fn, ignore, only } = { ...toDefinition(args), ...kind };
  const add = ignore ? test.skip : only ? test.only : test;
  add(name, () => runSteps(name, fn), { timeout });
}

Object.assign(globalThis, {
  __denoTest: Object.assign((...args: unknown[]) => register({}, args), {
    ignore: (...args: unknown[]) => register({ ignore: true }, args),
    only: (...args: unknown[]) => register({ only: true }, args),
  }),
});
