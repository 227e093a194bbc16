/**
 * The functions of the runtime that the command line uses: arguments, exit, signals, the terminal, files and HTTP. To
 * start quickly, `serve` does not use `node:` modules. On Deno, `serve` also does not use `process`, because loading
 * `process` takes 12 ms.
 */
import { listen, type Listener, type ListenOptions } from "../host.ts";
import { lookUp } from "../ready/look_up.ts";
import { toAbsolutePath, toFileHref } from "../ready/files/path.ts";
import { type FileKind, ignoreNotFound, toKind } from "../ready/files/local_files.ts";
import { files } from "./platform_files.ts";
import { bun, deno } from "./runtime_globals.ts";

export type Served = Pick<Listener, "port" | "stop">;

/** The address and the request handler of an HTTP server. Port 0 stands for any free port. */
export interface ServeOptions extends Omit<ListenOptions, "fetch"> {
  /** Handles a request. `info` contains the runtime's information about the connection. */
  readonly fetch: (request: Request, info: object) => Promise<Response>;
}

export type StandardStream = "input" | "output" | "errors";

const DESCRIPTORS = { input: 0, output: 1, errors: 2 } as const;
/** Milliseconds to wait before retrying a write to a full pipe. */
const RETRY_MS = 5;
const SIGNALS = [["SIGINT", 130], ["SIGTERM", 143]] as const;
/** Interval in milliseconds at which a program checks whether its parent has ended. */
const PARENT_MS = 500;
/** Matches a command that starts only this program, and waits for it: `mcp`, or `'mcp'` in npm 11, with arguments. */
const OWN_COMMAND = /^'?mcp'?(\s[^&;|\n]*)?$/;

const os = deno?.build.os ?? (process.platform === "win32" ? "windows" : process.platform);
const toPath = (path: string) => toAbsolutePath(path, deno ? deno.cwd : process.cwd, os === "windows");

/** Calls `onEnd` when the parent process has ended. */
function watchParent(onEnd: () => void): void {
  const { ppid } = process;
  const timer = setInterval(() => {
    if (process.ppid === ppid) return;
    clearInterval(timer);
    onEnd();
  }, PARENT_MS);
  timer.unref();
}

export const platform = {
  runtime: deno ? "deno" as const : bun ? "bun" as const : "node" as const,
  /** The operating system, such as `linux`, `darwin` or `windows`. */
  os: os as string, // The cast is safe, because the value is always a string.
  /** The arguments of the program, without the runtime and the script. */
  args: (deno ? deno.args : process.argv.slice(2)) as readonly string[], // The cast is safe, because no code changes the array.
  files,

  execPath: (): string => deno ? deno.execPath() : process.execPath,

  /** Returns the command that runs a file, such as `deno run -A` with all permissions. */
  toRunner(permissions: "all" | "none"): readonly string[] {
    // Use the full path of a program in npx's cache, because shells do not find the program by name.
    const isCached = /[\\/]_npx[\\/]/.test(platform.execPath());
    const version = deno?.version.deno ?? bun?.version ?? process.versions.node;
    const program = isCached ? ["npx", "-y", `${platform.runtime}@${version}`] : [platform.runtime];
    return deno ? [...program, "run", ...permissions === "all" ? ["-A"] : []] : program;
  },

  exit: (code: number): never => deno ? deno.exit(code) : process.exit(code),

  /**
   * Calls `listener` for the first SIGINT or SIGTERM, with the exit code that shells expect after the signal. A second
   * signal exits the process. If npm started the program, as `npx` and `npm start` do, the end of npm counts as
   * SIGTERM.
   */
  onSignal(listener: (code: number) => void): void {
    let hasSignal = false;
    const receive = (code: number) => {
      if (hasSignal) platform.exit(code);
      hasSignal = true;
      listener(code);
    };
    for (const [name, code] of SIGNALS) {
      if (deno) deno.addSignalListener(name, () => receive(code));
      else process.on(name, () => receive(code));
    }
    if (!deno && os !== "windows" && OWN_COMMAND.test(process.env.npm_lifecycle_script ?? "")) {
      // npm starts programs in a shell, and passes SIGTERM only to the shell. The program would continue without a parent,
      // and keep its port.
      // A signal to the process group ends npm and this program. The end of npm must then not count as a second signal.
      watchParent(() => hasSignal || receive(143));
    }
  },

  onParentEnd: watchParent,

  /**
   * Aborts the returned controller on the first SIGINT or SIGTERM, and sets the exit code for the signal. The second
   * signal exits the process.
   */
  abortOnSignal(): { readonly controller: AbortController; exitCode: number } {
    const stop = { controller: new AbortController(), exitCode: 0 };
    platform.onSignal((code) => {
      stop.exitCode = code;
      stop.controller.abort(new DOMException("The user stopped the command", "AbortError"));
    });
    return stop;
  },

  /** Calls `listener` when no work is left. Never called on Deno, because Deno reports this case itself. */
  onIdle(listener: () => void): void {
    if (!deno) process.on("beforeExit", listener);
  },

  /** Does not keep the process alive. Returns a function that cancels the timer. */
  startBackgroundTimer(job: () => void, ms: number): () => void {
    const timer = setTimeout(job, ms);
    if (deno) deno.unrefTimer(timer);
    else Object(timer).unref();
    return () => clearTimeout(timer);
  },

  /** Resolves a path against the working directory. The result has forward slashes. */
  toPath,
  /** Resolves a path against the working directory to a file URL. */
  toFileUrl: (path: string): string => toFileHref(toPath(path)),

  /** Returns the kind of a file, after following symbolic links. Returns `undefined` if there is no file. */
  async findKind(path: string): Promise<FileKind | undefined> {
    if (deno) {
      const facts = await deno.stat(path).catch(ignoreNotFound);
      return facts && (facts.isFile ? "file" : facts.isDirectory ? "folder" : "other");
    }
    const facts = await (bun ? bun.file(path).stat().catch(ignoreNotFound) : files.stat(path));
    return facts && ("kind" in facts ? facts.kind : toKind(facts));
  },

  /** Whether a path can be read without a permission prompt. */
  mayRead: (path: string): boolean => !deno || deno.permissions.querySync({ name: "read", path }).state === "granted",

  /** Returns `undefined` on Windows, or if reading the id would need a permission prompt. */
  findUserId(): number | undefined {
    if (!deno) return process.getuid?.();
    const isGranted = deno.permissions.querySync({ name: "sys", kind: "uid" }).state === "granted";
    return isGranted ? deno.uid() ?? undefined : undefined;
  },

  /** Reads an environment variable. Throws if reading it is not permitted. */
  env: (name: string): string | undefined => deno ? deno.env.get(name) : process.env[name],

  /**
   * Runs code with an environment variable of this process, and then restores its value. Returns `undefined` without
   * running the code if changing variables is not permitted.
   */
  async withVariable<Value>(name: string, value: string, run: () => Promise<Value>): Promise<Value | undefined> {
    const isPermitted = !deno || deno.permissions.querySync({ name: "env", variable: name }).state === "granted";
    if (!isPermitted) return;
    const before = process.env[name];
    process.env[name] = value;
    try {
      return await run();
    } finally {
      if (before === undefined) delete process.env[name];
      else process.env[name] = before;
    }
  },

  /** The environment is empty, so that packages that read variables for debugging need no permission. */
  withoutEnv<Value>(run: () => Value): Value {
    const { env } = process;
    process.env = {};
    try {
      return run();
    } finally {
      process.env = env;
    }
  },

  lookUp,

  /** Whether standard input is a terminal. */
  async isTerminal(): Promise<boolean> {
    if (deno) return deno.stdin.isTerminal();
    // Test for a character device first. On Bun, loading the module `tty` takes 14 ms, and using `process.stdin` would
    // start reading.
    const isDevice = await bun?.stdin.stat().then((facts) => facts.isCharacterDevice(), () => false) ?? true;
    return isDevice && platform.terminal.isAt("input");
  },

  /** The standard streams. Commands write results with `write`, and messages with `writeError`. */
  terminal: {
    /** Whether a stream is a terminal. */
    isAt: (stream: StandardStream): boolean => process.getBuiltinModule("tty").isatty(DESCRIPTORS[stream]),
    /** Width in columns. `undefined` if the stream is not a terminal, or if its size is unknown. */
    columns: (stream: "output" | "errors"): number | undefined =>
      platform.terminal.isAt(stream) ? process[stream === "output" ? "stdout" : "stderr"].columns : undefined,
    /** Whether the environment variable NO_COLOR is set. */
    hasNoColor: (): boolean => deno ? deno.noColor : Boolean(process.env.NO_COLOR),
    /** Returns standard input as a stream. Call this function only once. */
    input: (): ReadableStream<Uint8Array> => process.getBuiltinModule("stream").Readable.toWeb(process.stdin),
    /** Writes all bytes to standard output, even if the console is redirected. Throws if the reader closed the pipe. */
    async write(bytes: Uint8Array): Promise<void> {
      const { write } = await import("node:fs");
      for (let rest = bytes; rest.length;) {
        const { promise, resolve, reject } = Promise.withResolvers<number>();
        write(DESCRIPTORS.output, rest, (error, count) => {
          // The pipe is full, so try again after a pause.
          if (error?.code === "EAGAIN") setTimeout(resolve, RETRY_MS, 0);
          else if (error) reject(error);
          else resolve(count);
        });
        rest = rest.subarray(await promise);
      }
    },
    /** Writes to standard error synchronously, without a line break. */
    writeError(text: string): void {
      const { writeSync } = process.getBuiltinModule("fs");
      try {
        for (let rest = new TextEncoder().encode(text); rest.length;) {
          rest = rest.subarray(writeSync(DESCRIPTORS.errors, rest));
        }
      } catch {
        // Ignore the error: the reader has closed the pipe.
      }
    },
  },

  /** Serves HTTP. Throws if the address cannot be used. */
  serve: (options: ServeOptions): Promise<Served> => listen(options),
};
