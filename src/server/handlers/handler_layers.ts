/**
 * What layers add to a handler without a step around it: requirements, metadata, checks against other handlers, the
 * list of steps, and the layers of extensions.
 */
import { toFrozen } from "../../core/kit/frozen.ts";
import { LazyModule } from "../../core/protocol/lazy_module.ts";
import { quote } from "../../core/protocol/errors.ts";
import { isStrayPromise } from "../../core/protocol/promises.ts";
import type { Meta } from "../../core/protocol/types.ts";
import type { Result } from "../../core/protocol/jsonrpc.ts";
import type { Schema } from "../../core/schema/schema.ts";
import { compileSchema } from "../../core/schema/schema_compiler.ts";
import type { Call } from "../call/call.ts";
import { INTERNALS } from "../../core/internals.ts";
import { show } from "../../core/known_options.ts";
import type { Middleware } from "../call/middleware.ts";
import { readRequirements, type Requirement } from "../call/question.ts";
import type { WrappedHandler } from "../engine/extension.ts";
import type { HandlerInfo, Layer, LayeredHandler, Steps } from "../engine/layers.ts";
import { type Handler, type HandlerLayers, type LayerStep, toDefinitions } from "../visibility/feature.ts";
import type { WrappingLayer } from "./extension_call.ts";

/** The steps of a layer, without type parameters. */
export type AnySteps = Steps<never, never, never, never>;

/** The steps of one layer around one handler. */
export interface LayerSteps {
  readonly layer: Layer<never, never, never>;
  readonly steps: AnySteps;
}

/** The options that layers read or extend, without steps. */
export interface CompiledOptions {
  readonly name?: string;
  readonly uri?: string;
  readonly input?: Schema;
  readonly output?: Schema;
  readonly run?: unknown;
  readonly read?: unknown;
  readonly requires?: readonly Requirement[];
  readonly _meta?: Meta;
}

/** The items of `use` of one handler. */
export interface Compiling {
  readonly handler: HandlerInfo;
  readonly items: readonly (Middleware | LayerSteps)[];
  /** The layers with the step `run`, from the outermost. */
  readonly runs?: readonly LayerSteps[];
  readonly keyed?: HandlerLayers["keyed"];
}

/** Adds the key of a handler, which defaults to its kind and name. */
export function toHandlerInfo(about: LayeredHandler): HandlerInfo {
  return { key: `${about.kind} ${JSON.stringify(about.name)}`, ...about, annotations: toFrozen(about.annotations) };
}

/** Returns the options that layers extend without a step around the handler. */
export function toCompiled(
  options: CompiledOptions,
  { handler, items, runs = [], keyed }: Compiling,
): { readonly _meta: Meta | undefined; readonly layers: HandlerLayers } {
  const { requires = [], run, read = run } = options;
  const { key } = handler;
  const layers = items.filter((item) => typeof item !== "function");
  const needs = [...requires, ...layers.flatMap(({ steps }) => steps.requires ?? [])];
  return {
    _meta: toMeta(options, key, layers),
    layers: {
      steps: listSteps(items, runs),
      requires: [...readRequirements(needs, key) ?? [], ...listDeclared(layers)],
      also: toRegistered(layers, key),
      warnings: () => layers.flatMap(({ steps: { warn } }) => warn?.({ run: read }) ?? []),
      verify: (handlers, name) => verify(layers, { handler, handlers, name }),
      within: toWithin(layers, options, key),
      keyed,
    },
  };
}

function toMeta({ _meta }: CompiledOptions, key: string, layers: readonly LayerSteps[]): Meta | undefined {
  const owners = new Map<string, string>();
  const all: Record<string, unknown> = {};
  for (const { steps: { name, list = {} } } of layers) {
    for (const [member, value] of Object.entries(list)) {
      const other = owners.get(member);
      if (other !== undefined) {
        throw new TypeError(
          `Cannot make ${key}: the layers ${other} and ${name} both set _meta ${show(member)}; use only one of them`,
        );
      }
      owners.set(member, name);
      all[member] = value;
    }
  }
  return owners.size ? { ...all, ..._meta } : _meta;
}

/** The code for layers of extensions. It is loaded when a client first calls a handler with such a layer. */
const lazyExtensionCall = /* @__PURE__ */ new LazyModule(() => import("./extension_call.ts"));

/** Returns the function that runs a call through the layers of extensions, if such a layer has the step `around`. */
function toWithin(
  layers: readonly LayerSteps[],
  options: CompiledOptions,
  place: string,
): HandlerLayers["within"] {
  const handler = toWrappedHandler(options, place);
  const wrapping = layers.flatMap(({ layer: { [INTERNALS]: { extension } } }): WrappingLayer[] =>
    extension?.around ? [{ ...extension, around: extension.around, handler }] : []
  );
  if (!wrapping.length) return;
  return (call, runner, executor) =>
    wrapping.reduceRight<(call: Call) => Result | Promise<Result>>(
      (next, layer) => async (call) => await (await lazyExtensionCall.load()).runWrapped(call, layer, next, executor),
      (call) => executor.invoke ? executor.invoke(call, runner) : runner.run(call),
    )(call);
}

function toWrappedHandler({ name, uri, input, output }: CompiledOptions, place: string): WrappedHandler {
  const toJsonSchema = (schema: Schema | undefined, use: "input" | "output") =>
    schema === undefined ? undefined : compileSchema(schema, { use, place }).json();
  return {
    name: uri ?? name ?? place,
    get inputSchema() {
      return toJsonSchema(input, "input");
    },
    get outputSchema() {
      return toJsonSchema(output, "output");
    },
  };
}

/** Returns the extensions that the layers register together with the handler at `place`. */
function toRegistered(layers: readonly LayerSteps[], place: string): readonly Handler[] {
  const registered = new Map<string, Handler>();
  for (const { layer: { [INTERNALS]: { extension } } } of layers) {
    if (extension?.register) registered.set(extension.id, extension.register(place));
  }
  return [...registered.values()];
}

/** Returns the capabilities that the client must have declared for the layers of extensions. */
function listDeclared(layers: readonly LayerSteps[]): readonly string[] {
  return layers.flatMap(({ layer: { [INTERNALS]: { extension } } }) =>
    extension?.required ? [`extensions.${extension.id}`] : []
  );
}

/** The server against whose handlers layers are checked. `name` is the kind and name of the handler with the layers. */
interface Verifying {
  readonly handler: HandlerInfo;
  readonly handlers: readonly Handler[];
  readonly name: string;
}

/** See {@linkcode HandlerLayers.verify}. */
function verify(layers: readonly LayerSteps[], { handler, handlers, name }: Verifying): void {
  const refuse = (state: string) => new TypeError(`Cannot use ${name}: ${state}`);
  const listOf = (feature: string) =>
    handlers.filter(({ [INTERNALS]: internals }) => internals.feature.name === feature);
  const ids = toDefinitions<{ readonly id: string }>(listOf("extensions")).map(({ id }) => id);
  const has = (feature: string, key: string) =>
    listOf(feature).some(({ [INTERNALS]: internals }) => internals.key === key);
  for (const { layer: { [INTERNALS]: { extension } }, steps } of layers) {
    // Verify first, because the layer may know how its extension is added.
    const problem = steps.verify?.({ handler, has: (kind, key) => has(`${kind}s`, key) });
    if (isStrayPromise(problem)) throw refuse(`${steps.name}: verify returned a promise; return a text or undefined`);
    if (problem !== undefined) throw refuse(`${steps.name}: ${problem}`);
    if (extension && !ids.includes(extension.id)) {
      throw refuse(`the server has no extension ${quote(extension.id)}; add the extension to handlers of createServer`);
    }
  }
}

/** Lists the steps of a handler in the order in which they run. `runs` are the layers with `run`, from the outermost. */
function listSteps(
  items: readonly (Middleware | LayerSteps)[],
  runs: readonly LayerSteps[],
): readonly LayerStep[] {
  const layers = items.filter((item) => typeof item !== "function");
  const list = (step: keyof AnySteps, all: readonly (Middleware | LayerSteps)[] = layers) =>
    all.flatMap((item): LayerStep[] => {
      if (typeof item === "function") return [{ step, layer: item.name || "middleware" }];
      return item.steps[step] ? [{ step, layer: item.steps.name }] : [];
    });
  const outermost: LayerStep[] = [
    ...list("limit"),
    ...list("enter"),
    ...layers.flatMap(({ layer, steps: { name } }) =>
      layer[INTERNALS].extension?.around ? [{ step: "around", layer: name }] : []
    ),
  ];
  return [
    ...outermost.map((each) => ({ ...each, isOutermost: true })),
    ...list("around"),
    ...list("onInput"),
    ...list("inside", items),
    ...list("key"),
    ...list("run", runs),
    ...list("onOutput", layers.toReversed()),
    ...list("result", layers.toReversed()),
  ];
}
