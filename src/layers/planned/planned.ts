/**
 * Makes two tools of one: the first shows what a call would change, and the second changes it.
 */
import { INTERNALS, LISTED } from "../../core/internals.ts";
import { checkOptions, type KnownOptions, show } from "../../core/known_options.ts";
import { LazyModule } from "../../core/protocol/lazy_module.ts";
import { quote } from "../../core/protocol/errors.ts";
import type { ToolAnnotations } from "../../core/protocol/types.ts";
import type { Context } from "../../server/call/context.ts";
import { type HandlerInfo, type Layer, withoutExtensions } from "../../server/engine/layers.ts";
import { argument } from "../../server/handlers/added_parts.ts";
import { layer } from "../../server/handlers/layer.ts";
import type { Pair } from "../../server/handlers/planned_call.ts";
import type { Tool } from "../../server/handlers/tool.ts";

/** Options of {@linkcode planned}. */
export interface PlannedOptions<Input, Services, Changes> {
  /**
   * Returns what a call with this input would change, as a value that a tool can return, of at most 65,536 characters of
   * JSON. Must not have effects, and cannot send requests to the client. It must return the same value for as long as the
   * tool would change the same, so leave out times, random values and counters.
   */
  readonly plan: (input: Input, ctx: Context<Services>) => Changes;
}

/** The result of a tool that plans the calls of another tool. */
export interface Plan<Changes = unknown> {
  /** The id of the plan, of 12 characters: the argument `plan` of the other tool. */
  readonly plan: string;
  /** What `plan` has returned, as JSON. */
  readonly changes: Changes;
  /** How the model applies the plan. */
  readonly how: string;
}

/** The type of the arguments that clients send to a tool with plans. */
export type WithPlan<Sent> =
  & (string extends keyof Sent ? unknown : Sent)
  & { readonly plan: string };

const OPTIONS: KnownOptions<keyof PlannedOptions<unknown, unknown, unknown>> = {
  names: { plan: "function" },
  hints: { preview: "plan", dryRun: "plan", run: "plan" },
};

const OUTPUT = {
  type: "object",
  properties: {
    plan: { type: "string", description: "The argument plan of the tool that makes the changes" },
    changes: { description: "What the tool would change" },
    how: { type: "string", description: "How to make the changes" },
  },
  required: ["plan", "changes", "how"],
} as const;

/** The code that plans calls, and applies plans. It is loaded when a client first calls a tool with plans. */
const lazyCall = /* @__PURE__ */ new LazyModule(() => import("../../server/handlers/planned_call.ts"));

/**
 * Makes two tools of a tool. `plan_NAME` shows what a call would change, and returns a plan. `NAME` has the additional
 * argument `plan`, and runs only with a plan: once, for the same caller and the same arguments, within ten minutes, and
 * only if `plan` still returns the same. Otherwise the model reads what is different. With a store, this holds for all
 * instances.
 *
 * A plan is no consent, because the model can plan and apply without the user. Add `confirm()` to the tool for consent:
 * its question then contains the plan.
 *
 * The planning tool has the input, services, guards, middleware and rights of the tool, but no layers of extensions, and
 * no layers that ask for consent.
 *
 * ```ts
 * import { createServer, tool } from "@x/mcp";
 * import { confirm, planned } from "@x/mcp/layers";
 * import { z } from "zod";
 *
 * const files = new Set(["a.txt", "b.txt", "c.md"]);
 * const find = (ending: string) => [...files].filter((name) => name.endsWith(ending));
 * const remove = tool({
 *   name: "remove",
 *   input: z.object({ ending: z.string() }),
 *   use: [confirm("Delete these files?")],
 *   run: ({ ending }) => find(ending).filter((name) => files.delete(name)),
 * });
 *
 * export default createServer({
 *   name: "files",
 *   version: "1.0.0",
 *   handlers: [...planned(remove, { plan: ({ ending }) => find(ending) })],
 * });
 * ```
 *
 * @throws {TypeError} if an option is unknown or invalid, or if the tool is read-only or has idempotency keys.
 */
export function planned<N extends string, Input, Output, Services, Sent, Changes>(
  tool: Tool<N, Input, Output, Services, Sent>,
  options: PlannedOptions<Input, Services, Changes>,
): readonly [
  planner: Tool<`plan_${N}`, Input, Plan<Awaited<Changes>>, Services, Sent>,
  tool: Tool<N, Input, Output, Services, WithPlan<Sent>>,
] {
  const internals = Object.hasOwn(Object(tool), INTERNALS) ? tool[INTERNALS] : undefined;
  const remake = internals?.remake;
  if (!remake || !["tools", "skipped"].includes(internals.feature.name)) {
    throw new TypeError(`Cannot plan ${show(tool)}: it is not a tool; pass a handler of tool()`);
  }
  const { name } = tool;
  checkOptions(`plan the calls of tool ${quote(name)}`, options, OPTIONS);
  const { plan } = options;
  if (!plan) {
    throw new TypeError(
      `Cannot plan the calls of tool ${quote(name)}: plan is missing; pass a function that returns what would change`,
    );
  }
  if (internals.layers?.steps.some((each) => each.layer === LAYER)) {
    throw new TypeError(`Cannot plan the calls of tool ${quote(name)}: it is a tool of planned(); pass the original`);
  }
  const planning = toPlanning(name);
  const applying = toApplying(name, plan);
  const made = [
    remake((own) => ({ ...own, ...toPlanner(own, plan), use: [...withoutConsent(own.use, name), planning] })),
    remake((own) => ({ ...own, use: [...own.use ?? [], applying] })),
  ] as const;
  // The cast is safe, because both were created from the tool.
  return made as unknown as ReturnType<typeof planned<N, Input, Output, Services, Sent, Changes>>;
}

/** The options of a tool that the planning tool changes. */
interface Own {
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly annotations?: ToolAnnotations;
  readonly forCaller?: (ctx: Context<never>) => unknown;
}

const ABOUT =
  "Shows what the tool described here would change, and returns the plan that the tool needs. Changes nothing.";

function toPlanner(own: Own, run: unknown) {
  const { name, title = own.annotations?.title, description, annotations, forCaller } = own;
  return {
    name: PREFIX + name,
    title: title && `Plan: ${title}`,
    description: description ? `${ABOUT} The tool: ${description}` : ABOUT,
    annotations: toHints(annotations),
    output: OUTPUT,
    text: undefined,
    _meta: undefined,
    [LISTED]: undefined,
    // A variant describes the tool itself, and only its arguments are those of the planning tool.
    forCaller: forCaller && (async (ctx: Context<never>) => {
      const variant = await forCaller(ctx);
      return variant && { input: Object(variant).input };
    }),
    run,
  };
}

function toHints(own: ToolAnnotations = {}): ToolAnnotations {
  return { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: own.openWorldHint };
}

const PREFIX = "plan_";
const LAYER = "planned";

type Use = readonly ((...given: never[]) => unknown)[];

/** Removes the layers that ask for consent, because a plan has no effects. */
function withoutConsent(use: Use = [], name: string): Use {
  const planner = PREFIX + name;
  const key = `tool ${quote(planner)}`;
  const info: HandlerInfo = { kind: "tool", name: planner, key, annotations: toHints(), hasOutput: true };
  return withoutExtensions(use).filter((item) =>
    // The cast is safe, because only layers have internal state.
    !(INTERNALS in item) || (item as unknown as Layer)(info).rank !== "ask"
  );
}

/** Returns the names of both tools, of which groups have changed the beginning. */
function toPair({ name, key }: HandlerInfo, own: string, part: string): Pair {
  if (!name.endsWith(part)) {
    throw new TypeError(
      `Cannot make ${key}: planned() has made it of tool ${
        quote(own)
      }; rename the tool before you pass it to planned()`,
    );
  }
  const prefix = name.slice(0, -part.length);
  return { tool: prefix + own, planner: prefix + PREFIX + own };
}

function toPlanning(own: string) {
  return layer<unknown, unknown>((handler) => {
    const pair = toPair(handler, own, PREFIX + own);
    return {
      name: LAYER,
      run: async ({ input, ctx }, next) => (await lazyCall.load()).makePlan({ pair, input, ctx }, next),
    };
  });
}

function toApplying<Input, Services>(own: string, plan: PlannedOptions<Input, Services, unknown>["plan"]) {
  const made = layer<Input, Services>((handler) => {
    const pair = toPair(handler, own, own);
    if (handler.annotations?.readOnlyHint) {
      throw new TypeError(`Cannot plan the calls of ${handler.key}: it has readOnlyHint, so a call changes nothing`);
    }
    const description =
      `The plan that ${pair.planner} has returned for the same arguments. Call ${pair.planner} first.`;
    const token = argument({ name: "plan", schema: { type: "string", description }, required: "listed" });
    return {
      name: LAYER,
      argument: token,
      key: async (input, ctx) => (await lazyCall.load()).findPlan({ pair, input, ctx, token }),
      run: async ({ input, ctx }, next) =>
        (await lazyCall.load()).applyPlan({ pair, input, ctx, token }, () => plan(input, ctx), next),
    };
  });
  return Object.assign(made, { [INTERNALS]: { ...made[INTERNALS], isPlanned: true } });
}
