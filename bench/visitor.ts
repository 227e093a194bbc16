// Runs programs/visitor.ts, which simulates many clients of one server, on the clients' core.
import { LOAD_CORE, toWords } from "./machine.ts";
import { startPiped } from "./stdio.ts";

/** The simulated clients of one server. Each method sends a command that programs/visitor.ts describes. */
export interface Visitor {
  /** Opens streams that wait for notifications. */
  open(kind: "listen" | "get", count: number): Promise<void>;
  /**
   * Makes the server notify all streams `rounds` times, and waits until all streams have received each notification.
   */
  touch(rounds: number): Promise<void>;
  /** Sends requests. */
  send(what: "initialize" | "handshake" | "call", count: number): Promise<void>;
  stop(): Promise<void>;
}

/** Starts the simulated clients of the server that listens on `port`. */
export function startVisitor(port: number): Visitor {
  const piped = startPiped(toWords("deno", "programs/visitor.ts", [`${port}`]), LOAD_CORE);

  async function command(...words: readonly (string | number)[]): Promise<void> {
    await piped.send(new TextEncoder().encode(JSON.stringify(words) + "\n"));
    await piped.receive(1);
  }

  return {
    open: (kind, count) => command("open", kind, count),
    touch: (rounds) => command("touch", rounds),
    send: (what, count) => command("send", what, count),
    stop: () => piped.stop(),
  };
}
