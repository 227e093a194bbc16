/**
 * A call in the modern era, with its questions and answers.
 */
import { type Params, type Result, toNotification } from "../../../core/protocol/jsonrpc.ts";
import { Call, type CallHome } from "../../call/call.ts";
import type { OnceOptions } from "../../call/context.ts";
import type { ForwardedRounds } from "../../call/forward.ts";
import type { Link } from "../../call/link.ts";
import type { Question } from "../../call/question.ts";
import type { Engine } from "../../engine/era.ts";
import { InputRequests } from "./input_requests.ts";

export interface ModernHome extends CallHome {
  readonly engine: Engine;
}

export class ModernCall extends Call {
  static readonly #model: ModernCall = new ModernCall(
    { host: {} } as ModernHome, // The cast is safe, because the constructor reads only the host.
    {} as Link, // The cast is safe, because the constructor does not read the link.
    { kind: "request", id: 0, method: "", weight: 0 },
    { version: "", capabilities: {} },
  );
  declare readonly home: ModernHome;
  /** Declared without a value, because most calls ask no question. */
  declare inputs?: InputRequests;

  override get isAsking(): boolean {
    return !!this.inputs?.isOpen;
  }

  override toQuestions(): Promise<Result> | undefined {
    return this.inputs?.isOpen ? this.inputs.toResult() : undefined;
  }

  notify(method: string, params: Params): Promise<void> | undefined {
    return this.link.send(toNotification(method, params));
  }

  askClient(key: string, question: Question): Promise<unknown> {
    return this.#toInputs().ask(key, question);
  }

  makeOnce(key: string, make: () => unknown, options?: OnceOptions): Promise<unknown> {
    return this.#toInputs().once(key, make, options);
  }

  override get forwarded(): ForwardedRounds {
    return this.#toInputs().forwarded;
  }

  override restore(): Promise<void> | undefined {
    return isPlain(this) ? undefined : this.#restore();
  }

  async #restore(): Promise<void> {
    const inputs = this.#toInputs();
    await inputs.restore();
    // Mark the answer as used only after the call has a slot, so that the answer stays usable if a busy server rejects
    // the call.
    if (inputs.isSingleUse) await this.home.engine.scheduler.prepareWith(this, () => inputs.markUsed());
  }

  #toInputs(): InputRequests {
    return this.inputs ??= new InputRequests(this.home.engine, this);
  }
}

/** Tests whether a call contains no answers and no `requestState`. */
export function isPlain({ params }: Call): boolean {
  return params.requestState === undefined && params.inputResponses === undefined;
}
