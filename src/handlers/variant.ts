/**
 * Tools that differ between callers. Loaded with the first call or list of one.
 *
 * @module
 */
import type { Call } from "../core/call.ts";
import type { Binding } from "../core/container.ts";
import type { Context } from "../core/context.ts";
import type { Core } from "../core/core.ts";
import { checkOptions, type KnownOptions } from "../core/known_options.ts";
import type { Schema } from "../schema/schema.ts";
import type { Services } from "../core/service.ts";
import type { Definition, ToolOptions, ToolVariant } from "./tool.ts";

const OPTIONS: KnownOptions<keyof ToolVariant> = {
  names: { title: true, description: true, input: true, annotations: true },
};

/** The call for which a tool varies. */
export interface VariantCall<I extends Schema, O extends Schema, S extends Services> {
  readonly call: Call;
  readonly core: Core;
  readonly services: Binding | undefined;
  readonly define: (options: ToolOptions<I, O, S>, services: Binding | undefined) => Definition;
}

/** Returns the definition of a tool for one caller. Returns `undefined` if it fails, which is reported. */
export async function toVariant<I extends Schema, O extends Schema, S extends Services>(
  { forCaller, ...options }: ToolOptions<I, O, S>,
  { call, core, services, define }: VariantCall<I, O, S>,
): Promise<Definition | undefined> {
  const ask = async (_call: Call, ctx: Context<never> = call) => await forCaller?.(ctx);
  try {
    const variant = await (services?.share(ask) ?? ask)(call);
    if (variant === undefined) return define(options, services);
    checkOptions(`use what forCaller of tool ${JSON.stringify(options.name)} returned`, variant, OPTIONS);
    const given = Object.entries(variant).filter(([, value]) => value !== undefined);
    // The types of a variant say that its input has values of the same type.
    return define({ ...options, ...Object.fromEntries(given) } as ToolOptions<I, O, S>, services);
  } catch (error) {
    core.report(error, { method: call.method, subject: options.name });
  }
}
