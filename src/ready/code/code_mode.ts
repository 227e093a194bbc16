/**
 * Serves many tools with a short list: a search, and tools that run programs which call the tools.
 */
import { type Context, type Handler, type JsonSchema, service, tool, type ToolResult } from "../../library.ts";
import { toBusy } from "../../core/protocol/errors.ts";
import { checkOptions, type KnownOptions, type OptionRule } from "../../core/known_options.ts";
import { bun, deno, isCompiled, node, workers } from "../../core/runtime.ts";
import type { ToolAnnotations } from "../../core/protocol/types.ts";
import { toCall } from "../../server/call/find_call.ts";
import { markProgram } from "../../server/call/relays.ts";
import { SEARCH_INPUT, type SearchInput, ShortList, type ShortListForm } from "../search/short_list.ts";
import { removeFence } from "./program_error.ts";
import type { Sandbox, SandboxLimits } from "./sandbox.ts";

/** What programs may use. All limits are optional. */
export interface ProgramLimits
  extends Partial<Pick<SandboxLimits, "cpuMs" | "memoryBytes" | "outputCharacters" | "calls">> {
  /** Maximum number of programs that run or wait at the same time. Each uses about 60 MB. Defaults to 16. */
  readonly programs?: number;
  /** Maximum number of these programs that belong to one client. Defaults to 4. */
  readonly programsPerClient?: number;
}

/** Options of code mode. All options are optional. */
export interface CodeModeOptions {
  /** Names of tools that stay in the list, as with `toolSearch()`. Defaults to no tools. */
  readonly always?: readonly string[];
  /**
   * Limits of programs. Defaults to 1000 ms of `cpuMs`, 32 MiB of `memoryBytes`, 65,536 characters of `outputCharacters`, 100
   * `calls`, 16 `programs` and 4 `programsPerClient`.
   */
  readonly limits?: ProgramLimits;
  /** Runs the programs. Defaults to QuickJS in a process of its own for each program. */
  readonly sandbox?: Sandbox;
}

const upTo = (most: number): OptionRule => ({
  test: (value) => Number.isSafeInteger(value) && Number(value) >= 1 && Number(value) <= most,
  remedy: `it must be a whole number from 1 to ${most}`,
});

const LIMITS: KnownOptions<keyof ProgramLimits> = {
  names: {
    cpuMs: upTo(600_000),
    memoryBytes: upTo(1024 * 1024 * 1024),
    outputCharacters: upTo(1024 * 1024),
    calls: upTo(256),
    programs: upTo(10_000),
    programsPerClient: upTo(10_000),
  },
  hints: { timeoutMs: "cpuMs", memory: "memoryBytes", output: "outputCharacters" },
};

const OPTIONS: KnownOptions<keyof CodeModeOptions> = {
  names: {
    always: "texts",
    limits: LIMITS,
    sandbox: {
      test: (sandbox) => typeof Object(sandbox).run === "function",
      remedy: "it must be an object with a function run",
    },
  },
};

const DEFAULTS: Required<ProgramLimits> = {
  cpuMs: 1000,
  memoryBytes: 32 * 1024 * 1024,
  outputCharacters: 65_536,
  calls: 100,
  programs: 16,
  programsPerClient: 4,
};

/**
 * Returns a handler that replaces the list of tools by three tools: `search_api` returns typed declarations of tools that
 * match a sentence, `run_code` runs a JavaScript program that calls read-only tools, and `run_code_with_effects` a program
 * that calls any tools. Each call of a program is a call of its caller, with the same `allow`, scopes, layers and limits.
 *
 * Each program runs in QuickJS in a process of its own, without access to the network, files or the environment. This
 * needs the package `quickjs-wasi`, and on Deno the permission `--allow-run=deno`.
 *
 * A client gets the whole list with `?search=off`, as with `toolSearch()`, which code mode contains.
 *
 * ```ts
 * import { createServer, tool } from "@x/mcp";
 * import { codeMode } from "@x/mcp/code";
 * import { z } from "zod";
 *
 * const price = tool({
 *   name: "get_price",
 *   description: "Returns the price of an item",
 *   annotations: { readOnlyHint: true },
 *   input: z.object({ item: z.string() }),
 *   output: z.object({ price: z.number() }),
 *   run: ({ item }) => ({ price: item.length }),
 * });
 *
 * export default createServer({ name: "shop", version: "1.0.0", handlers: [price, codeMode()] });
 * ```
 *
 * @throws {TypeError} if an option is unknown or invalid. The server throws if the platform cannot start processes and
 * there is no `sandbox`.
 */
export function codeMode(options: CodeModeOptions = {}): Handler {
  checkOptions("make a code mode", options, OPTIONS);
  const { always, sandbox } = options;
  const { programs, programsPerClient, ...limits } = { ...DEFAULTS, ...withoutUndefined(options.limits) };
  const places = { total: programs, share: Math.min(programs, programsPerClient) };
  // One value per server, which ends the processes of its programs when it closes.
  const walls = service("code", async () => new (await import("./process_sandbox.ts")).ProcessSandbox());
  const findWall = async (ctx: Context): Promise<Sandbox> =>
    sandbox ?? (await ctx.get(walls)).by(toCall(ctx, "run a program").link.account);
  const form: ShortListForm = {
    names: { search: "search_api", call: "run_code_with_effects", callReadOnly: "run_code" },
    pass: markProgram,
    verify: sandbox ? undefined : refuseWithoutProcesses,
    make(list, names) {
      const toRunner = (name: string, text: string, hints: ToolAnnotations, isReadOnly: boolean) =>
        tool({
          name,
          description: `${text} ${HOW}`,
          annotations: hints,
          input: CODE_INPUT,
          lenientArguments: false,
          run: async (input, ctx) => {
            const { runProgram } = await import("./program.ts");
            const { code } = input as unknown as { readonly code: string }; // The input schema has validated it.
            const source = removeFence(code);
            return await withPlace(ctx, places, () => runProgram(source, ctx, { list, limits, isReadOnly, findWall }));
          },
        });
      const { search, call, callReadOnly } = list.names;
      return [
        tool({
          name: names.search,
          description: "Finds tools by what they do, and returns their TypeScript declarations. This server has more " +
            `tools than this list shows: search before you write a program for ${callReadOnly} or ${call}.`,
          annotations: { title: "Search tools", ...READS, idempotentHint: true, openWorldHint: false },
          input: SEARCH_INPUT,
          run: async (input, ctx) => {
            const { writeDeclarations } = await import("./declarations.ts");
            const searched = input as unknown as SearchInput; // The input schema has validated it.
            return writeDeclarations(await list.search(searched, ctx), { names: list.names, query: searched.query });
          },
        }),
        toRunner(
          names.call,
          `Runs a JavaScript program that calls tools which ${search} has found, also tools that change something.`,
          { title: "Run a program with effects", ...WRITES },
          false,
        ),
        toRunner(
          names.callReadOnly,
          `Runs a JavaScript program that calls only tools which ${search} shows as read-only.`,
          { title: "Run a program that only reads", ...READS, idempotentHint: false, openWorldHint: true },
          true,
        ),
      ];
    },
  };
  return new ShortList(form, { always }).handler;
}

const READS = { readOnlyHint: true, destructiveHint: false };
const WRITES = { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true };

const HOW = "The program is the body of an async function: `const { items } = await tools.list_items({ limit: 5 }); " +
  "return items.map((item) => item.name);`. Return only what you need. console.log works. There are no imports, no types, no " +
  "network, no files and no timers. A call returns structured content, or else text, which is not parsed; images are " +
  "handles that you can return. A failed call throws.";

const CODE_INPUT: JsonSchema = {
  type: "object",
  properties: {
    code: { type: "string", minLength: 1, maxLength: 65_536, description: "The JavaScript program" },
  },
  required: ["code"],
  additionalProperties: false,
};

function refuseWithoutProcesses(): void {
  const state = workers || !deno && !bun && !node
    ? "this platform cannot start processes"
    : isCompiled()
    ? "an executable cannot start the process of a program"
    : undefined;
  if (state) throw new TypeError(`Cannot run programs with codeMode(): ${state}; pass a sandbox`);
}

function withoutUndefined(limits: ProgramLimits = {}): ProgramLimits {
  return Object.fromEntries(Object.entries(limits).filter(([, value]) => value !== undefined));
}

/** Runs a program if there is room for it: each program that runs or waits has a process. */
async function withPlace(
  ctx: Context,
  size: { readonly total: number; readonly share: number },
  run: () => Promise<ToolResult>,
): Promise<ToolResult> {
  // Keep the account, because the address of the client is unknown after the client has disconnected.
  const { account } = toCall(ctx, "run a program").link;
  const places = account.pot({ name: "code.programs", ...size });
  if (!places.charge(account)) {
    throw toBusy("run the program: too many programs are running", "code.programs, code.programsPerClient");
  }
  try {
    return await run();
  } finally {
    places.give(account);
    account.signalRoom();
  }
}
