/**
 * The steps of a layer around one handler, the state of the layer, and the calls that its steps get.
 */
import { isPromiseLike } from "../../core/protocol/promises.ts";
import type { Call } from "../call/call.ts";
import { toClientKey } from "../call/client_key.ts";
import type { Context } from "../call/context.ts";
import { toCall } from "../call/find_call.ts";
import { addNote, readGiven } from "../call/given.ts";
import { INTERNALS } from "../../core/internals.ts";
import { quote } from "../../core/protocol/errors.ts";
import type { Life } from "../engine/extension.ts";
import type { Layer, LayerCall, LayerRun, LayerStarter, Steps } from "../engine/layers.ts";
import type { Handler, ShownEntry } from "../visibility/feature.ts";
import type { FeatureParts } from "../visibility/feature_parts.ts";
import { createLife, toWatcher } from "./watcher.ts";

export type AnySteps = Steps<never, never, never, never>;

export interface Bound {
  readonly layer: Layer<never, never, never>;
  readonly steps: AnySteps;
  /** Kind and name of the handler, for the observer. For a completion, of its prompt or template. */
  readonly place: string;
  /** The entry of the handler in lists. */
  readonly shown?: ShownEntry;
}

export type With<Name extends keyof AnySteps> = Bound & { readonly steps: Required<Pick<AnySteps, Name>> };

/** Calls a step with the state of its layer. Waits until the layer has started. */
export function withState<T>(
  bound: Bound,
  ctx: Context<unknown>,
  run: (state: never) => T,
): T | Promise<Awaited<T>> {
  const state = openState(bound, toCall(ctx, "run a layer"));
  // The cast is safe, because a promise of a step's value resolves to that value.
  return isPromiseLike(state) ? Promise.resolve(state).then(run) as Promise<Awaited<T>> : run(state);
}

export function toStarter(
  start: NonNullable<AnySteps["start"]>,
  { id, part }: Pick<Life, "id" | "part">,
): LayerStarter {
  const states = new WeakMap<object, unknown>();
  const life = createLife({
    id,
    name: id,
    part,
    keys: new Map(),
    async start(server) {
      const value: unknown = await start(server);
      // Keep the value by the handle, because each path of a server has its own.
      states.set(server, value);
      return async () => {
        const { [Symbol.asyncDispose]: endLater, [Symbol.dispose]: end } = Object(value);
        await (endLater ?? end)?.call(value);
      };
    },
  });
  return { id, states, register: (place) => toWatcher(`${id} at ${place}`, life) };
}

/** Returns no handler if the layer has no step `start`, or if the server itself starts the layer. */
export function toStarters({ [INTERNALS]: layer }: Layer<never, never, never>, key: string): readonly Handler[] {
  return layer.starter && !layer.ofServer?.start ? [layer.starter.register(key)] : [];
}

/** Returns the state of a layer on a server. Starts the layer if it has not started. */
function openState({ layer, steps: { start } }: Bound, { host: { lives } }: Call): never | Promise<never> {
  const { starter } = layer[INTERNALS];
  if (!start || !starter) return undefined as never; // The cast is safe, because the layer has no state.
  const { id, states } = starter;
  const read = () => {
    const handle = lives?.find(id);
    if (!handle) throw new TypeError(`Cannot use ${id}: it is not registered on the server; add its handler`);
    return states.get(handle) as never; // The cast is safe, because only the steps of the layer get the state.
  };
  const starting = lives?.until(id);
  return starting ? starting.then(read) : read();
}

export interface CallParts {
  readonly call: Call;
  readonly bound: Bound;
  readonly state: never;
}

export class StepCall implements LayerCall<never> {
  readonly #parts: CallParts;

  constructor(parts: CallParts) {
    this.#parts = parts;
  }

  get ctx(): Context<never> {
    return this.#parts.call;
  }

  get state(): never {
    return this.#parts.state;
  }

  get server(): LayerCall["server"] {
    return toServer(toCore(this.#parts.call));
  }

  get client(): LayerCall["client"] {
    return toClientKey(this.#parts.call);
  }

  get hasAllScopes(): boolean {
    const { host, link, principal } = this.#parts.call;
    return !principal && host.isGranted(link, []);
  }

  get path(): string | undefined {
    return this.#parts.call.host.endpoint;
  }

  get entry(): LayerCall["entry"] {
    const { call, bound: { shown } } = this.#parts;
    return shown?.wire?.(toCore(call)) as LayerCall["entry"]; // The cast is safe, because lists contain the same object.
  }

  get outer(): LayerCall["outer"] {
    return this.#parts.call.outer;
  }

  get isInternal(): boolean {
    return this.#parts.call.internal !== undefined && !this.outer;
  }

  get hasEnded(): boolean {
    return this.#parts.call.ended;
  }

  get reachLimit(): LayerCall["reachLimit"] {
    const { call, bound: { place } } = this.#parts;
    return (name) => toCore(call).observing?.reach(name, call.link.account.key, place);
  }

  get note(): LayerCall["note"] {
    const { call, bound } = this.#parts;
    return (name, text) => {
      if (typeof text !== "string" || !/^[\w.-]{1,64}$/.test(name)) {
        const remedy = "name it with 1 to 64 letters, digits, _, - and ., and pass a text";
        throw new TypeError(`Cannot note ${quote(name)} in the layer ${quote(bound.steps.name)}: ${remedy}`);
      }
      const noted = addNote(call, name, text.slice(0, MAX_NOTE).toWellFormed());
      const { report } = call;
      if (report) report.notes = noted;
    };
  }

  get given(): LayerCall["given"] {
    const { call, bound: { steps, shown } } = this.#parts;
    return (token) => {
      if (token !== steps.argument && !shown?.added?.has(token)) {
        const state = `no layer of the handler adds it; set argument in the steps of layer ${quote(steps.name)}`;
        throw new TypeError(`Cannot read the argument ${quote(Object(token).name)}: ${state}`);
      }
      // The cast is safe, because the schema of the token has returned the value.
      return readGiven(call)?.values.get(token) as never;
    };
  }
}

/** Maximum length of a note in characters. */
const MAX_NOTE = 1024;

const SERVER = {};

function toServer(core: FeatureParts): LayerRun["server"] {
  return core.state.slot(SERVER, () => ({
    clock: core.ticker.clock,
    report: (error) => void core.report(error),
    slot: (key, make) => core.state.slot(key, make),
  }));
}

export function toCore({ host }: Call): FeatureParts {
  // The cast is safe, because the host of a server's call always has the parts of the server's core.
  return host.parts as FeatureParts;
}
