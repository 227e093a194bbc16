/**
 * A two-way channel of whole messages: standard streams, a socket, or two ends in one process.
 *
 * @see specification/2026-07-28/basic/transports/stdio
 * @module
 */
import { INVALID_REQUEST, PARSE_ERROR } from "../protocol/errors.ts";
import { type Broken, type Incoming, parseMessage, toFailure } from "../protocol/jsonrpc.ts";
import { type Link, Scope } from "../core/call.ts";
import type { Principal } from "../core/context.ts";
import type { Core, Era } from "../core/core.ts";

/** Writes one text; a promise if the writer should wait for room. */
export type Write = (text: string) => Promise<void> | undefined;

/** The server's end of a channel. */
export interface Pipe {
  /** Takes one text; a promise if the reader should wait before it reads on. */
  receive(text: string): Promise<void> | undefined;
  /** Answers a text that cannot be a message. */
  reject(problem: "long" | "encoding"): Promise<void> | undefined;
  /** Bytes of the longest text. */
  readonly lineBytes: number;
  /** Whether anything runs. */
  readonly isBusy: boolean;
  /** Ends what waits for news, and settles when nothing runs any more. */
  idle(): Promise<void>;
  /** Cancels what runs; nothing is written from now on. */
  close(): void;
}

/** Opens a server's end of a channel. */
export type OpenPipe = (write: Write, principal?: Principal) => Pipe;

/**
 * Where a server keeps its `OpenPipe`. It is found by name, so that a command line and a server file that use
 * different copies of this library still fit.
 */
export const PIPE: unique symbol = Symbol.for("mcp.pipe");

/** What can be served over a channel: a server made by `createServer`. */
export interface PipeServer {
  /**
   * Opens a channel to the server.
   *
   * @internal
   */
  readonly [PIPE]: OpenPipe;
}

/** Makes the function that opens pipes. */
export function pipeOpener(core: Core, era: Era): OpenPipe {
  return (write, principal) => {
    const scope = new Scope();
    const idlers: (() => void)[] = [];
    let open = true;
    let busy = 0;
    let room: Promise<void> | undefined;

    const link: Link = {
      scope,
      principal,
      streams: true,
      send: (text) => open ? write(text) : undefined,
      open: () => {},
      release: () => {},
    };

    function accept(message: Incoming): void {
      const reply = era.accept(message, link);
      if (!(reply instanceof Promise)) return answer(reply.text);
      busy++;
      const fail = (error: unknown) =>
        answer(toFailure(message.kind === "request" ? message.id : undefined, core.report(error)));
      reply.then((reply) => answer(reply.text), fail).finally(() => {
        if (!--busy) idlers.splice(0).forEach((idle) => idle());
      });
    }

    function answer(text: string | undefined): void {
      if (text === undefined || !open) return;
      const wait = write(text);
      if (wait && !room) {
        room = wait.finally(() => {
          room = undefined;
        });
      }
    }

    // Several may wait at once where every message is a request of its own.
    function waitForSlot(): Promise<void> {
      const { promise, resolve } = Promise.withResolvers<void>();
      const { onRoom } = scope;
      scope.onRoom = () => {
        scope.onRoom = undefined;
        onRoom?.();
        resolve();
      };
      return promise;
    }

    return {
      receive(text) {
        if (!open) return;
        accept(parseMessage(text, core.limits));
        // Who does not read its answers, or has a full queue of calls, is not read from either.
        return (scope.waiting?.size ?? 0) >= core.limits.callsPerClient ? waitForSlot() : room;
      },
      reject(problem) {
        accept(problem === "long" ? tooLong(core.limits.lineBytes) : NOT_UTF8);
        return room;
      },
      lineBytes: core.limits.lineBytes,
      get isBusy() {
        return busy > 0;
      },
      idle() {
        scope.cancelLasting();
        return busy ? new Promise((resolve) => idlers.push(resolve)) : Promise.resolve();
      },
      close() {
        open = false;
        scope.cancelAll();
        link.onClose?.();
      },
    };
  };
}

const NOT_UTF8: Broken = { kind: "broken", code: PARSE_ERROR, message: "Cannot read the message: it is not UTF-8" };

function tooLong(limit: number): Broken {
  return {
    kind: "broken",
    code: INVALID_REQUEST,
    message: `Cannot read the message: the line is longer than ${limit} bytes (lineBytes)`,
  };
}
