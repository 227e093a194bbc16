/**
 * Collects what layers add to a handler, apart from code that runs around calls: requirements, metadata, checks against
 * other handlers, and the list of steps.
 */
import { toFrozen } from "../../core/kit/frozen.ts";
import { quote } from "../../core/protocol/errors.ts";
import { isStrayPromise } from "../../core/protocol/promises.ts";
import type { Meta } from "../../core/protocol/types.ts";
import type { Schema } from "../../core/schema/schema.ts";
import { INTERNALS } from "../../core/internals.ts";
import { show } from "../../core/known_options.ts";
import type { Middleware } from "../call/middleware.ts";
import { readRequirements, type Requirement } from "../call/question.ts";
import type { HandlerInfo, LayeredHandler } from "../engine/layers.ts";
import {
  type Handler,
  type HandlerLayers,
  type LayerStep,
  type ShownEntry,
  toDefinitions,
} from "../visibility/feature.ts";
import type { AnySteps, Bound, With } from "./bound_layer.ts";

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

/** Adds the key of a handler, which defaults to its kind and name. */
export function toHandlerInfo(about: LayeredHandler): HandlerInfo {
  return { key: `${about.kind} ${JSON.stringify(about.name)}`, ...about, annotations: toFrozen(about.annotations) };
}

export interface Layered {
  readonly handler: HandlerInfo;
  readonly items: readonly (Middleware | Bound)[];
  readonly layers: readonly Bound[];
  /** The layers with the step `run`, from the outermost. */
  readonly runs: readonly With<"run">[];
  readonly shown: ShownEntry;
}

export function describeLayers(
  { requires = [], run, read = run }: CompiledOptions,
  layered: Layered,
  problems: readonly string[] = [],
): Pick<HandlerLayers, "steps" | "requires" | "warnings" | "verify"> {
  const { handler, items, layers, runs } = layered;
  const needs = [...requires, ...layers.flatMap(({ steps }) => steps.requires ?? [])];
  const declared = layers.flatMap(({ layer: { [INTERNALS]: { extension } } }) =>
    extension?.required ? [`extensions.${extension.id}`] : []
  );
  return {
    steps: listSteps(items, runs),
    requires: [...readRequirements(needs, handler.key) ?? [], ...declared],
    warnings: () => [...problems, ...layers.flatMap(({ steps: { warn } }) => warn?.({ run: read }) ?? [])],
    verify: (handlers, name) => verify(layered, handlers, name),
  };
}

export function toMeta({ _meta }: CompiledOptions, key: string, layers: readonly Bound[]): Meta | undefined {
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

function verify({ handler, layers }: Layered, handlers: readonly Handler[], name: string): void {
  const refuse = (state: string) => new TypeError(`Cannot use ${name}: ${state}`);
  const listOf = (feature: string) =>
    handlers.filter(({ [INTERNALS]: internals }) => internals.feature.name === feature);
  const ids = toDefinitions<{ readonly id: string }>(listOf("extensions")).map(({ id }) => id);
  const has = (feature: string, key: string) =>
    listOf(feature).some(({ [INTERNALS]: internals }) => internals.key === key && !internals.rank);
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
  items: readonly (Middleware | Bound)[],
  runs: readonly Bound[],
): readonly LayerStep[] {
  const layers = items.filter((item) => typeof item !== "function");
  const list = (step: keyof AnySteps, all: readonly (Middleware | Bound)[] = layers) =>
    all.flatMap((item): LayerStep[] => {
      if (typeof item === "function") return [{ step, layer: item.name || "middleware" }];
      return item.steps[step] ? [{ step, layer: item.steps.name }] : [];
    });
  const outermost: LayerStep[] = [
    ...list("argument"),
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
