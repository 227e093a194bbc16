/**
 * Shows tests why a handler failed. The server's responses do not contain the reason, so the kit finds the error in
 * this process by the error id in the response.
 */
import type { DevelopmentListener } from "../server/call/development.ts";
import type { FaultEvent } from "../server/call/observer.ts";
import { isObject, type Result } from "../core/protocol/jsonrpc.ts";
import type { Protocol } from "../client/protocol.ts";
import { readErrorId } from "../core/kit/error_id.ts";
import { explainFault } from "../ready/files/fault_text.ts";

export class FaultLog implements DevelopmentListener {
  readonly faults: FaultEvent[] = [];
  readonly warnings: string[] = [];

  fault(event: FaultEvent): void {
    this.faults.push(event);
  }

  warn(text: string): void {
    this.warnings.push(text);
  }

  /** Sets the error that the handler threw as the `cause` of `error`, an error from the server. Returns `error`. */
  explainError(error: unknown): unknown {
    if (!(error instanceof Error) || !("data" in error) || error.cause !== undefined) return error;
    const fault = isObject(error.data) && this.#find(error.data.errorId);
    // Like a native `cause`, the property is not enumerable, so that comparisons of errors ignore the property.
    if (fault) Object.defineProperty(error, "cause", { value: fault.error, writable: true, configurable: true });
    return error;
  }

  /** Appends the error that the handler threw to the text in the result of a failed tool. */
  explainResult(result: Result): Result {
    if (result.isError !== true || !Array.isArray(result.content)) return result;
    const content = result.content.map((block: unknown) => {
      const { text }: { readonly text?: unknown } = Object(block);
      const fault = typeof text === "string" ? this.#find(readErrorId(text)) : undefined;
      return fault ? { ...Object(block), text: `${text}\n${explainFault(fault.error)}` } : block;
    });
    return { ...result, content };
  }

  #find(id: unknown): FaultEvent | undefined {
    return id === undefined ? undefined : this.faults.find((fault) => fault.id === id);
  }
}

/** Wraps a protocol so that results and errors contain the reason why a handler failed. */
export function withFaults(protocol: Protocol, log: FaultLog, onClose: () => void): Protocol {
  const explained = async <T>(run: () => Promise<T>): Promise<T> => {
    try {
      return await run();
    } catch (error) {
      throw log.explainError(error);
    }
  };
  return {
    get server() {
      return protocol.server;
    },
    sessionId: protocol.sessionId,
    handshake: protocol.handshake,
    request: (method, params, options) =>
      explained(async () => {
        const outcome = await protocol.request(method, params, options);
        return { ...outcome, result: log.explainResult(outcome.result) };
      }),
    watch: (filter, onChange) => explained(() => protocol.watch(filter, onChange)),
    setLogLevel: (level) => explained(() => protocol.setLogLevel(level)),
    notify: (method, params) => explained(() => protocol.notify(method, params)),
    async close() {
      onClose();
      await protocol.close();
    },
  };
}
