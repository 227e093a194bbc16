/**
 * The runtime under the command line: arguments, exit, signals, the terminal, files, programs and a port. Every other
 * file goes through here.
 *
 * @module
 */
import {
  bun,
  type BunGlobal,
  deno,
  type DenoGlobal,
  findProcess,
  type FsModule,
  type ProcessGlobal,
} from "../runtime.ts";
import { bunFiles, denoFiles, type Files, isCoded } from "./platform_files.ts";
import { bunSpawn, denoSpawn, type Spawn } from "./platform_process.ts";
import { bunTerminal, denoTerminal, type Terminal } from "./platform_terminal.ts";

/** What the command line needs of a runtime. */
export interface Platform {
  /** What the user wrote after the program. */
  readonly args: readonly string[];
  /** The words that run a file on this machine, such as `deno run -A`, with or without permissions. */
  toRunner(permissions: "all" | "none"): readonly string[];
  /** Ends the process. */
  exit(code: number): never;
  /** Calls back for every SIGINT and SIGTERM, with the exit code that a shell expects of a process that they ended. */
  onSignal(listener: (code: number) => void): void;
  /** Calls back when nothing is left to be done and nobody has ended the process; Deno says by itself what waits. */
  onIdle(listener: () => void): void;
  /** Whether a person sits at standard input. */
  isTerminal(): Promise<boolean>;
  readonly terminal: Terminal;
  /** Which of the two it is. */
  readonly runtime: "deno" | "bun";
  /** Such as `linux`, `darwin` and `windows`. */
  readonly os: string;
  /** The path of the runtime's own program. */
  execPath(): string;
  /** A path, seen from the working directory, as an absolute one with forward slashes. */
  toPath(path: string): string;
  /** A path, seen from the working directory, as a URL. */
  toFileUrl(path: string): string;
  readonly files: Files;
  /** Whether a path may be read without asking a person. */
  mayRead(path: string): boolean;
  /** A variable of the environment. Throws if it may not be read. */
  env(name: string): string | undefined;
  /** Runs code that looks up variables for its own debugging, which Deno would have to permit, as if there were none. */
  withoutEnv<Value>(run: () => Value): Value;
  readonly spawn: Spawn;
  /** The addresses of a host's name that is asked at a port. Throws if it has none. */
  lookUp(name: string, port: number): Promise<readonly string[]>;
  /**
   * Posts over plain HTTP with just these headers, a Host of any name among them, which `fetch` does not send
   * everywhere; the status. Throws if there is no answer.
   */
  sendAs(url: string, sent: SentAs): Promise<number>;
  /** What `import()` takes to load a file again after `version` changed, and with it none of the files it imports. */
  toImport(url: string, version: number): string;
  /** Whether there is a file; also yes where it must not be looked for. */
  hasFile(url: string): Promise<boolean>;
  /** Serves HTTP. Throws if it cannot. */
  serve(options: ServeOptions): Served;
}

/** What is posted, and how long it may take. */
export interface SentAs {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly timeoutMs: number;
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

const signals = [["SIGINT", 130], ["SIGTERM", 143]] as const;

/** The runtime that this is. */
export const platform: Platform = findPlatform();

function findPlatform(): Platform {
  if (deno) return denoPlatform(deno);
  if (bun) return bunPlatform(bun, findProcess());
  throw new Error("Cannot run the command line: this is neither Deno nor Bun; start it with one of them");
}

function denoPlatform(deno: DenoGlobal): Platform {
  const isWindows = deno.build.os === "windows";
  const toPath = (path: string) => toAbsolute(path, deno.cwd, isWindows);
  const files = denoFiles(deno);
  return {
    args: deno.args,
    runtime: "deno",
    os: deno.build.os,
    execPath: () => deno.execPath(),
    files,
    toPath,
    mayRead: (path) => deno.permissions?.querySync({ name: "read", path }).state === "granted",
    env: (name) => deno.env.get(name),
    withoutEnv: (run) => withoutEnv(findProcess(), run),
    spawn: denoSpawn(deno),
    async lookUp(hostname, port) {
      try {
        return await lookUp(findProcess(), hostname);
      } catch (error) {
        // With permission for one port only, names cannot be looked up. A connection tells its address all the same.
        const connection = await deno.connect({ hostname, port }).catch((reason) => {
          throw isCoded(reason) ? reason : error;
        });
        connection.close();
        return [connection.remoteAddr.hostname];
      }
    },
    sendAs: (url, sent) => sendAs(findProcess(), url, sent),
    toImport: (url, version) => `${url}?${version}`,
    toRunner(permissions) {
      const program = isFetched(deno.execPath()) ? ["npx", "-y", `deno@${deno.version.deno}`] : ["deno"];
      return [...program, "run", ...(permissions === "all" ? ["-A"] : [])];
    },
    exit: (code) => deno.exit(code),
    onIdle() {},
    onSignal(listener) {
      for (const [name, code] of signals) deno.addSignalListener(name, () => listener(code));
    },
    isTerminal: () => Promise.resolve(deno.stdin.isTerminal()),
    terminal: denoTerminal(deno),
    toFileUrl: (path) => toUrl(toPath(path)),
    hasFile: (url) => hasFile(files, url),
    serve({ fetch, ...place }) {
      const server = deno.serve({ ...place, onListen: () => {} }, fetch);
      return { port: server.addr.port, stop: () => server.shutdown() };
    },
  };
}

function bunPlatform(bun: BunGlobal, process: ProcessGlobal): Platform {
  const os = process.platform === "win32" ? "windows" : process.platform;
  const toPath = (path: string) => toAbsolute(path, process.cwd, os === "windows");
  // Bun has no names of its own for folders, links and watching.
  const fs = process.getBuiltinModule("fs");
  const files = bunFiles(fs);
  // The module `tty` takes 14 ms to load, so it is only asked about what may be a terminal: a pipe is none.
  const isTerminal = (file: number) => isDevice(fs, file) && process.getBuiltinModule("tty").isatty(file);
  return {
    args: bun.argv.slice(2),
    runtime: "bun",
    os,
    execPath: () => process.execPath,
    files,
    toPath,
    mayRead: () => true,
    env: (name) => bun.env[name],
    withoutEnv: (run) => run(),
    spawn: bunSpawn(bun),
    lookUp: (name) => lookUp(process, name),
    sendAs: (url, sent) => sendAs(process, url, sent),
    // Of a URL, Bun overlooks the query.
    toImport: (url, version) =>
      `${url.startsWith("file:") ? decodeURIComponent(new URL(url).pathname) : url}?${version}`,
    toRunner: () => isFetched(bun.argv[0]) ? ["npx", "-y", `bun@${bun.version}`] : ["bun"],
    exit: (code) => process.exit(code),
    onIdle: (listener) => process.on("beforeExit", listener),
    onSignal(listener) {
      for (const [name, code] of signals) process.on(name, () => listener(code));
    },
    // `process.stdin` would tell more exactly, but to look at it is to begin reading, and the lines are the server's.
    isTerminal: () => Promise.resolve(isTerminal(0)),
    terminal: bunTerminal(bun, { isTerminal, toStreams: () => process }),
    toFileUrl: (path) => toUrl(toPath(path)),
    hasFile: (url) => hasFile(files, url),
    // Bun's own 10 s would cut off a client that takes no streams from a call that is longer.
    serve: (options) => bun.serve({ ...options, idleTimeout: 255 }),
  };
}

function isDevice(fs: FsModule, file: number): boolean {
  try {
    return fs.fstatSync(file).isCharacterDevice();
  } catch {
    return false; // The descriptor is closed.
  }
}

// Where npx keeps a program that it fetched for one run: the shell does not know its name.
function isFetched(program: string): boolean {
  return /[\\/]_npx[\\/]/.test(program);
}

async function hasFile(files: Files, url: string): Promise<boolean> {
  try {
    return (await files.look(decodeURIComponent(new URL(url).pathname)))?.kind === "file";
  } catch {
    return true;
  }
}

function withoutEnv<Value>(process: ProcessGlobal, run: () => Value): Value {
  const { env } = process;
  process.env = {};
  try {
    return run();
  } finally {
    process.env = env;
  }
}

async function lookUp(process: ProcessGlobal, name: string): Promise<readonly string[]> {
  const found = await process.getBuiltinModule("dns").promises.lookup(name, { all: true });
  return found.map(({ address }) => address);
}

function sendAs(process: ProcessGlobal, url: string, { headers, body, timeoutMs }: SentAs): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const options = { method: "POST", headers, timeout: timeoutMs } as const;
  const request = process.getBuiltinModule("http").request(url, options, (response) => {
    resolve(response.statusCode);
    response.destroy();
  });
  request.on("error", reject);
  request.on("timeout", () => request.destroy(new Error(`no answer in ${timeoutMs} ms`)));
  request.end(body);
  return promise;
}

// `cwd` is asked only where it matters: it may not be there, or not be readable.
function toAbsolute(path: string, cwd: () => string, isWindows: boolean): string {
  const slash = (text: string) => isWindows ? text.replaceAll("\\", "/") : text;
  const given = slash(path);
  const whole = /^([a-z]:)?\//i.test(given) ? given : `${slash(cwd())}/${given}`;
  const parts: string[] = [];
  for (const part of whole.split("/")) {
    if (part === "..") parts.pop();
    else if (part && part !== ".") parts.push(part);
  }
  return (isWindows ? "" : "/") + parts.join("/");
}

function toUrl(path: string): string {
  return new URL(`file://${path.startsWith("/") ? "" : "/"}${path.replace(/[%#?\\]/g, encodeURIComponent)}`).href;
}
