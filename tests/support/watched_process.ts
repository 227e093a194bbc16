// Server processes that end with the process of the tests.
import { spawn } from "node:child_process";

/** Kills the server when the shell's standard input is closed. */
const KILL = "kill -9 $server";

/**
 * Starts a server process. Returns a function that kills the process and waits for its end. The process is also killed
 * when this process ends, because the standard input of the shell that runs it is then closed. `kill` is the command that
 * kills it.
 */
export function startWatched(words: readonly string[], kill = KILL): () => Promise<void> {
  const script = `"$@" & server=$!; read -r _; ${kill}; wait $server`;
  const child = spawn("sh", ["-c", script, "sh", ...words], { stdio: ["pipe", "ignore", "ignore"] });
  child.unref();
  return async () => {
    const exited = new Promise((resolve) => child.once("exit", resolve));
    child.ref();
    child.stdin.end();
    await exited;
  };
}
