// Starts programs as a user does, in an empty home folder, and reads their output. Deno's cache is not empty.
import { until } from "./behaviour.ts";

/** Returns the folder in which Deno keeps packages and compiled modules. */
export function toDenoDir(): string {
  return Deno.env.get("DENO_DIR") ?? `${Deno.env.get("XDG_CACHE_HOME") ?? `${Deno.env.get("HOME")}/.cache`}/deno`;
}

/** Where and how to run a program. */
export interface RunOptions {
  readonly cwd?: string;
  /** The content of standard input, which is then closed. */
  readonly input?: string;
  /** Number of JSON-RPC responses on standard output until which standard input stays open. Defaults to 0. */
  readonly responses?: number;
  /** Environment variables in addition to the variables of an empty home folder. */
  readonly env?: Readonly<Record<string, string>>;
  /**
   * Time in milliseconds after which the program is killed. Defaults to 120,000, because a machine may be under load.
   */
  readonly timeoutMs?: number;
}

/** The exit code and the output of a program that has exited. Standard error lacks the messages of Deno about packages. */
export interface Finished {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** A running program. Disposing kills it. */
export interface Running extends AsyncDisposable {
  readonly pid: number;
  /** Waits until standard error contains a match, which is returned. */
  waitFor(pattern: RegExp): Promise<RegExpExecArray>;
  kill(signal: "SIGINT" | "SIGTERM"): void;
  readonly finished: Promise<Finished>;
}

/** The project's folder, with a trailing slash. */
export const root: string = new URL("../../", import.meta.url).pathname;

/**
 * Lines that Deno prints in an empty home folder: its downloads, and that another process, such as another test, installs
 * packages.
 */
const ABOUT_PACKAGES = /^(Download|Initialize|Blocking waiting for file lock) .*\n/gm;

/** Starts a program. Without `input`, the program's standard input stays open. */
export async function start(words: readonly string[], options: RunOptions = {}): Promise<Running> {
  const { cwd = root, input, responses = 0, env, timeoutMs = 120_000 } = options;
  const home = await Deno.makeTempDir({ prefix: "mcp-home-" });
  const [command, ...args] = words;
  const child = new Deno.Command(command, {
    args,
    cwd,
    // With an empty cache, Deno would compile all modules of each process, which takes most of its time.
    env: { HOME: home, XDG_CACHE_HOME: `${home}/.cache`, DENO_DIR: toDenoDir(), NO_COLOR: "1", ...env },
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const writer = child.stdin.getWriter();
  if (input !== undefined) {
    await writer.write(new TextEncoder().encode(input)).catch(() => {}); // The write fails if the program has already exited.
    if (!responses) await writer.close().catch(() => {});
  }
  const stdout = (async () => {
    let text = "";
    for await (const part of child.stdout.pipeThrough(new TextDecoderStream())) {
      text += part;
      if (responses && countIds(text) >= responses) await writer.close().catch(() => {});
    }
    return text;
  })();
  let stderr = "";
  let heard = Promise.withResolvers<void>();
  let hasEnded = false;
  const listened = (async () => {
    for await (const text of child.stderr.pipeThrough(new TextDecoderStream())) {
      stderr += text;
      heard.resolve();
      heard = Promise.withResolvers<void>();
    }
    hasEnded = true;
    heard.resolve();
  })();
  let isOver = false;
  let note = "";
  const late = setTimeout(() => { // A timeout, so that tests do not hang.
    note = `(killed by the test after ${timeoutMs} ms)`;
    child.kill("SIGKILL");
  }, timeoutMs);
  const finished = (async () => {
    const { code, signal } = await child.status;
    if (signal !== null && !note) note = `(ended by ${signal})`;
    isOver = true;
    clearTimeout(late);
    await listened;
    await writer.close().catch(() => {});
    const text = await stdout;
    await removeHome(home);
    return { code, stdout: text, stderr: stderr.replace(ABOUT_PACKAGES, "") + note };
  })();

  return {
    finished,
    pid: child.pid,
    kill(signal) {
      if (!isOver) child.kill(signal);
    },
    async waitFor(pattern) {
      while (true) {
        const found = pattern.exec(stderr);
        if (found) return found;
        if (hasEnded) throw new Error(`"${words.join(" ")}" ended before printing ${pattern}:\n${stderr}`);
        await heard.promise;
      }
    },
    async [Symbol.asyncDispose]() {
      if (!isOver) child.kill("SIGKILL");
      await finished;
    },
  };
}

/** Removes a home folder. Processes that the program has left may write into the folder until they have ended too. */
async function removeHome(home: string): Promise<void> {
  let problem: unknown;
  const remove = async () => {
    try {
      await Deno.remove(home, { recursive: true });
      return true;
    } catch (error) {
      problem = error;
      return false;
    }
  };
  await until(remove, `${home} is removed`, () => problem);
}

/** Runs a program, and waits until it has exited. */
export async function run(words: readonly string[], options: RunOptions = {}): Promise<Finished> {
  await using running = await start(words, { input: "", ...options });
  return await running.finished;
}

/** Sends requests to a server over stdio. Standard input stays open until each request has its response. */
export function ask(words: readonly string[], options: RunOptions & { readonly input: string }): Promise<Finished> {
  return run(words, { ...options, responses: countIds(options.input) });
}

/** Counts the complete lines that are JSON-RPC messages with an id. */
function countIds(text: string): number {
  return text.split("\n").slice(0, -1).filter((line) => /^\{.*"id":/.test(line)).length;
}

/**
 * Returns a random port below the ports that operating systems give to outgoing connections and to listeners without a
 * port, so that no other process gets the port while nothing listens on it.
 */
export function pickPort(): number {
  return 10_240 + Math.floor(Math.random() * 22_000);
}

/** Returns a port like {@linkcode pickPort}, on which nothing listens. Deno only. */
export function findFreePort(): number {
  for (;;) {
    const port = pickPort();
    try {
      using listener = Deno.listen({ hostname: "127.0.0.1", port });
      return listener.addr.port;
    } catch (error) {
      if (!(error instanceof Deno.errors.AddrInUse)) throw error;
    }
  }
}
