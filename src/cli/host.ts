/**
 * The runtime under the command line: arguments, exit, signals, the terminal, files and a port. Every other file goes
 * through here.
 *
 * @module
 */

/** What the command line needs of a runtime. */
export interface Host {
  /** What the user wrote after the program. */
  readonly args: readonly string[];
  /** The words that run a file on this machine, such as `deno run -A`, with or without permissions. */
  toRunner(permissions: "all" | "none"): readonly string[];
  /** Ends the process. */
  exit(code: number): never;
  /** Calls back for every SIGINT and SIGTERM, with the exit code that a shell expects of a process that they ended. */
  onSignal(listener: (code: number) => void): void;
  /** Whether a person sits at standard input. */
  isTerminal(): Promise<boolean>;
  /** A path, seen from the working directory, as a URL. */
  toFileUrl(path: string): string;
  /** Whether there is a file; also yes where it must not be looked for. */
  hasFile(url: string): Promise<boolean>;
  /** Serves HTTP. Throws if it cannot. */
  serve(options: ServeOptions): Served;
}

/** A port that is served. */
export interface Served {
  readonly port: number;
  /** Takes no more connections, and settles when what was answered has been sent. */
  stop(): Promise<void>;
}

/** Where to serve, and what. Port 0 takes one that is free. */
export interface ServeOptions {
  readonly hostname: string;
  readonly port: number;
  /** `info` is what the runtime knows of the connection. */
  readonly fetch: (request: Request, info: object) => Promise<Response>;
}

interface DenoGlobal {
  readonly args: readonly string[];
  readonly build: { readonly os: string };
  readonly stdin: { isTerminal(): boolean };
  exit(code: number): never;
  execPath(): string;
  cwd(): string;
  stat(url: URL): Promise<{ readonly isFile: boolean }>;
  addSignalListener(signal: string, listener: () => void): void;
  serve(
    options: { readonly hostname: string; readonly port: number; readonly onListen: () => void },
    handler: ServeOptions["fetch"],
  ): { readonly addr: { readonly port: number }; shutdown(): Promise<void> };
}

interface BunGlobal {
  readonly argv: readonly string[];
  readonly stdin: { stat(): Promise<{ isCharacterDevice(): boolean }> };
  file(url: URL): { exists(): Promise<boolean> };
  pathToFileURL(path: string): URL;
  serve(options: ServeOptions & { readonly idleTimeout: number }): Served;
}

interface ProcessGlobal {
  exit(code: number): never;
  on(signal: string, listener: () => void): void;
}

interface Globals {
  readonly Deno?: DenoGlobal;
  readonly Bun?: BunGlobal;
  readonly process?: ProcessGlobal;
}

const signals = [["SIGINT", 130], ["SIGTERM", 143]] as const;

/** The runtime that this is. */
export const host: Host = findHost();

function findHost(): Host {
  // Looked up, because neither runtime has types for the other's globals.
  const { Deno: deno, Bun: bun, process } = globalThis as unknown as Globals;
  if (deno) return denoHost(deno);
  if (bun && process) return bunHost(bun, process);
  throw new Error("Cannot run the command line: this is neither Deno nor Bun; start it with one of them");
}

function denoHost(deno: DenoGlobal): Host {
  return {
    args: deno.args,
    toRunner(permissions) {
      const program = isFetched(deno.execPath()) ? ["npx", "-y", "deno@2"] : ["deno"];
      return [...program, "run", ...(permissions === "all" ? ["-A"] : [])];
    },
    exit: (code) => deno.exit(code),
    onSignal(listener) {
      for (const [name, code] of signals) deno.addSignalListener(name, () => listener(code));
    },
    isTerminal: () => Promise.resolve(deno.stdin.isTerminal()),
    toFileUrl: (path) => toFileUrl(path, deno.cwd(), deno.build.os === "windows"),
    hasFile: (url) =>
      deno.stat(new URL(url)).then(({ isFile }) => isFile, (error) => !(isCoded(error) && error.code === "ENOENT")),
    serve({ fetch, ...place }) {
      const server = deno.serve({ ...place, onListen: () => {} }, fetch);
      return { port: server.addr.port, stop: () => server.shutdown() };
    },
  };
}

function bunHost(bun: BunGlobal, process: ProcessGlobal): Host {
  return {
    args: bun.argv.slice(2),
    toRunner: () => isFetched(bun.argv[0]) ? ["npx", "-y", "bun@1"] : ["bun"],
    exit: (code) => process.exit(code),
    onSignal(listener) {
      for (const [name, code] of signals) process.on(name, () => listener(code));
    },
    // `process.stdin` would tell more exactly, but to look at it is to begin reading, and the lines are the server's.
    isTerminal: () => bun.stdin.stat().then((facts) => facts.isCharacterDevice(), () => false),
    toFileUrl: (path) => bun.pathToFileURL(path).href,
    hasFile: (url) => bun.file(new URL(url)).exists(),
    // Bun's own 10 s would cut off a client that takes no streams from a call that is longer.
    serve: (options) => bun.serve({ ...options, idleTimeout: 255 }),
  };
}

/** Whether an error has a code such as `ENOENT`. */
export function isCoded(error: unknown): error is Error & { readonly code: string } {
  return error instanceof Error && "code" in error && typeof error.code === "string";
}

// Where npx keeps a program that it fetched for one run: the shell does not know its name.
function isFetched(program: string): boolean {
  return /[\\/]_npx[\\/]/.test(program);
}

function toFileUrl(path: string, folder: string, isWindows: boolean): string {
  const clean = (text: string) =>
    (isWindows ? text.replaceAll("\\", "/") : text).replace(/[%#?\\]/g, encodeURIComponent);
  const absolute = /^([a-z]:)?\//i.test(clean(path)) ? clean(path) : `${clean(folder)}/${clean(path)}`;
  return new URL(`file://${absolute.startsWith("/") ? "" : "/"}${absolute}`).href;
}
