/**
 * Tools that differ between callers. Loaded when such a tool is first called or listed.
 */
import type { Call } from "../call/call.ts";
import type { Binding } from "../call/container.ts";
import type { Allow, Context } from "../call/context.ts";
import type { HandlerLayers } from "../visibility/feature.ts";
import type { FeatureParts } from "../visibility/feature_parts.ts";
import { checkOptions, type KnownOptions } from "../../core/known_options.ts";
import type { ToolAnnotations } from "../../core/protocol/types.ts";
import type { Schema } from "../../core/schema/schema.ts";

/** The parts of a tool that differ for one caller. Omitted parts remain as in the options of the tool. */
export interface ToolVariant<Input = unknown> {
  /** Display name. */
  readonly title?: string;
  /** Description for the model. */
  readonly description?: string;
  /** Schema of the arguments. Its output must have the type that `run` takes. */
  readonly input?: Schema<Input>;
  /** Hints about the tool's behavior. */
  readonly annotations?: ToolAnnotations;
}

const OPTIONS: KnownOptions<keyof ToolVariant> = {
  names: { title: "text", description: "text", input: true, annotations: true },
};

interface Varying {
  readonly name: string;
  readonly layers?: HandlerLayers;
  readonly forCaller?: (ctx: Context<never>) => ToolVariant | undefined | Promise<ToolVariant | undefined>;
}

export interface VariantCall<Options, Definition> {
  readonly call: Call;
  readonly core: FeatureParts;
  readonly services: Binding | undefined;
  readonly define: (options: Options, services: Binding | undefined) => Definition;
}

/** Returns `undefined` if `forCaller` fails, after reporting its error. */
export async function toVariant<Options extends Varying, Definition extends { readonly allow?: Allow }>(
  { forCaller, ...options }: Options,
  { call, core, services, define }: VariantCall<Omit<Options, "forCaller">, Definition>,
): Promise<Definition | undefined> {
  const ask = async (_call: Call, ctx: Context<never> = call) => await forCaller?.(ctx);
  try {
    const variant = await (services?.share(ask) ?? ask)(call);
    if (variant === undefined) return toRestricted(define(options, services));
    checkOptions(`use the result of forCaller of tool ${JSON.stringify(options.name)}`, variant, OPTIONS);
    const given = Object.entries(variant).filter(([, value]) => value !== undefined && value !== null);
    const { addArguments } = options.layers ?? {};
    const input = addArguments && variant.input ? { input: addArguments(variant.input) } : undefined;
    return toRestricted(define({ ...options, ...Object.fromEntries(given), ...input }, services));
  } catch (error) {
    core.report(error, { method: call.method, subject: options.name });
  }
}

/** Marks a variant as a handler that not every caller may use, because `forCaller` decides too. */
function toRestricted<Definition extends { readonly allow?: Allow }>(definition: Definition): Definition {
  const { allow = () => true } = definition;
  return { ...definition, allow };
}
