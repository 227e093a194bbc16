// Simulates child processes that run as another user, to which this process may not send signals.
import { ChildProcess } from "node:child_process";

interface Killable {
  kill(signal: "SIGKILL"): unknown;
}

interface BunRuntime {
  spawn(...args: unknown[]): Killable;
}

const { Bun: bun } = globalThis as { readonly Bun?: BunRuntime }; // Only Bun has this global.

/** Runs `use` while this process may not send signals to its child processes. Kills these processes at the end. */
export async function withoutSignals(use: () => Promise<void>): Promise<void> {
  const kills: (() => unknown)[] = [];
  const fail = () => {
    throw new Error("operation not permitted");
  };
  const refuse = <T extends Killable>(child: T): T => {
    const kill = child.kill.bind(child);
    kills.push(() => kill("SIGKILL"));
    return Object.defineProperty(child, "kill", { value: fail });
  };
  const restore = isDeno() ? refuseOnDeno(refuse) : refuseByNode(refuse, fail, kills);
  try {
    await use();
  } finally {
    restore();
    for (const kill of kills) kill();
  }
}

type Refuse = <T extends Killable>(child: T) => T;

function isDeno(): boolean {
  return typeof Deno !== "undefined";
}

function refuseOnDeno(refuse: Refuse): () => void {
  const { Command } = Deno;
  Deno.Command = class extends Command {
    override spawn(): Deno.ChildProcess {
      return refuse(super.spawn());
    }
  };
  return () => void (Deno.Command = Command);
}

/** Replaces the functions of Bun and of `node:child_process`. */
function refuseByNode(refuse: Refuse, fail: () => never, kills: (() => unknown)[]): () => void {
  const { spawn } = bun ?? {};
  if (bun && spawn) bun.spawn = (...args) => refuse(spawn.apply(bun, args));
  const { prototype } = ChildProcess;
  const { kill } = prototype;
  prototype.kill = function (this: ChildProcess): boolean {
    kills.push(() => kill.call(this, "SIGKILL"));
    // Bun throws, but Node emits an event.
    if (bun) fail();
    this.emit("error", new Error("kill EPERM"));
    return false;
  };
  return () => {
    prototype.kill = kill;
    if (bun && spawn) bun.spawn = spawn;
  };
}
