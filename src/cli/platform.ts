/**
 * The runtime as the command line uses it: arguments, exit, signals, the terminal, files and HTTP. Only the files whose
 * names begin with `platform` use globals of Deno or Bun.
 *
 * @module
 */
import {
  bun,
  type BunGlobal,
  deno,
  type DenoGlobal,
  findProcess,
  type FsKinds,
  type ProcessGlobal,
} from "../runtime.ts";
import { createFiles, type Files, hasErrorCode } from "./platform_files.ts";
import { createBunFileSystem } from "./platform_files_bun.ts";
import { createDenoFileSystem } from "./platform_files_deno.ts";
import { bunTerminal, denoTerminal, type Terminal } from "./platform_terminal.ts";

/** The features of a runtime that the command line needs. */
export interface Platform {
  /** The arguments of the program. */
  readonly args: readonly string[];
  /** The command that runs a file on this machine, such as `deno run -A`, with all permissions or none. */
  toRunner(permissions: "all" | "none"): readonly string[];
  /** Exits the process. */
  exit(code: number): never;
  /** Calls `listener` for every SIGINT and SIGTERM, with the exit code that shells expect after the signal. */
  onSignal(listener: (code: number) => void): void;
  /** Calls `listener` when the process would exit without a call to `exit`. Never on Deno, which reports this itself. */
  onIdle(listener: () => void): void;
  /** Whether standard input is a terminal. */
  isTerminal(): Promise<boolean>;
  readonly terminal: Terminal;
  /** The name of the runtime. */
  readonly runtime: "deno" | "bun";
  /** The operating system, such as `linux`, `darwin` or `windows`. */
  readonly os: string;
  /** The path of the runtime's executable. */
  execPath(): string;
  /** Resolves a path against the working directory. The result has forward slashes. */
  toPath(path: string): string;
  /** Resolves a path against the working directory. The result is a URL. */
  toFileUrl(path: string): string;
  readonly files: Files;
  /** Whether a path may be read without a permission prompt. */
  mayRead(path: string): boolean;
  /** Reads an environment variable. Throws if it may not be read. */
  env(name: string): string | undefined;
  /** Runs code with an empty environment, so that packages that read variables for debugging need no permission. */
  withoutEnv<Value>(run: () => Value): Value;
  /** Looks up the addresses of a host name. `port` is the one to connect to. Throws if there are none. */
  lookUp(name: string, port: number): Promise<readonly string[]>;
  /**
   * Sends a POST request over plain HTTP with exactly these headers, and returns the status. Unlike `fetch`, it can send
   * any Host header. Throws if there is no response.
   */
  sendAs(url: string, sent: SentAs): Promise<number>;
  /** Whether a file exists. Also `true` if it may not be read. */
  hasFile(url: string): Promise<boolean>;
  /** Serves HTTP. Throws if the address cannot be used. */
  serve(options: ServeOptions): Served;
}

/** A request of `sendAs`. */
export interface SentAs {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly timeoutMs: number;
}

/** A running HTTP server. */
export interface Served {
  readonly port: number;
  /** Stops accepting connections. Resolves when all responses have been sent. */
  stop(): Promise<void>;
}

/** The address and the handler of an HTTP server. Port 0 picks a free port. */
export interface ServeOptions {
  readonly hostname: string;
  readonly port: number;
  /** Handles a request. `info` is the runtime's information about the connection. */
  readonly fetch: (request: Request, info: object) => Promise<Response>;
}

const signals = [["SIGINT", 130], ["SIGTERM", 143]] as const;

/** The current runtime. */
export const platform: Platform = findPlatform();

function findPlatform(): Platform {
  if (deno) return denoPlatform(deno);
  if (bun) return bunPlatform(bun, findProcess());
  throw new Error("Cannot run the command line: this is neither Deno nor Bun; start it with one of them");
}

function denoPlatform(deno: DenoGlobal): Platform {
  const isWindows = deno.build.os === "windows";
  const toPath = (path: string) => toAbsolute(path, deno.cwd, isWindows);
  const files = createFiles(createDenoFileSystem(deno));
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
    async lookUp(hostname, port) {
      try {
        return await lookUp(findProcess(), hostname);
      } catch (error) {
        // A permission for one port does not allow lookups, but a connection has the address.
        const connection = await deno.connect({ hostname, port }).catch((reason) => {
          throw hasErrorCode(reason) ? reason : error;
        });
        connection.close();
        return [connection.remoteAddr.hostname];
      }
    },
    sendAs: (url, sent) => sendAs(findProcess(), url, sent),
    toRunner(permissions) {
      const program = isNpxCache(deno.execPath()) ? ["npx", "-y", `deno@${deno.version.deno}`] : ["deno"];
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
    serve({ fetch, ...address }) {
      const server = deno.serve({ ...address, onListen: () => {} }, fetch);
      return { port: server.addr.port, stop: () => server.shutdown() };
    },
  };
}

function bunPlatform(bun: BunGlobal, process: ProcessGlobal): Platform {
  const os = process.platform === "win32" ? "windows" : process.platform;
  const toPath = (path: string) => toAbsolute(path, process.cwd, os === "windows");
  // Bun has no API of its own for folders, links and watching.
  const loadFs = () => process.getBuiltinModule("fs");
  const files = createFiles(createBunFileSystem(bun, loadFs));
  // The module `tty` takes 14 ms to load. A pipe is not a device, so stdio servers do not load it.
  const isTerminalDevice = (facts: FsKinds, descriptor: number) =>
    facts.isCharacterDevice() && process.getBuiltinModule("tty").isatty(descriptor);
  const isTerminal = (descriptor: number) => {
    try {
      return isTerminalDevice(loadFs().fstatSync(descriptor), descriptor);
    } catch {
      return false; // The descriptor is closed.
    }
  };
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
    lookUp: (name) => lookUp(process, name),
    sendAs: (url, sent) => sendAs(process, url, sent),
    toRunner: () => isNpxCache(bun.argv[0]) ? ["npx", "-y", `bun@${bun.version}`] : ["bun"],
    exit: (code) => process.exit(code),
    onIdle: (listener) => process.on("beforeExit", listener),
    onSignal(listener) {
      for (const [name, code] of signals) process.on(name, () => listener(code));
    },
    // Not `process.stdin.isTTY`: the getter starts to read, and the stdio server needs the input.
    isTerminal: () => bun.stdin.stat().then((facts) => isTerminalDevice(facts, 0), () => false),
    terminal: bunTerminal(bun, { isTerminal, toStreams: () => process }),
    toFileUrl: (path) => toUrl(toPath(path)),
    hasFile: (url) => hasFile(files, url),
    // Bun's default of 10 seconds would disconnect clients without streams during longer calls.
    serve: (options) => bun.serve({ ...options, idleTimeout: 255 }),
  };
}

/** Whether a program is in the cache of npx, where shells do not find it by its name. */
function isNpxCache(program: string): boolean {
  return /[\\/]_npx[\\/]/.test(program);
}

async function hasFile(files: Files, url: string): Promise<boolean> {
  try {
    return (await files.stat(decodeURIComponent(new URL(url).pathname)))?.kind === "file";
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
  request.on("timeout", () => request.destroy(new Error(`no response within ${timeoutMs} ms`)));
  request.end(body);
  return promise;
}

// Calls `cwd` only for relative paths, because the working directory may be deleted or not be readable.
function toAbsolute(path: string, cwd: () => string, isWindows: boolean): string {
  const slash = (text: string) => isWindows ? text.replaceAll("\\", "/") : text;
  const slashed = slash(path);
  const whole = /^([a-z]:)?\//i.test(slashed) ? slashed : `${slash(cwd())}/${slashed}`;
  const segments: string[] = [];
  for (const segment of whole.split("/")) {
    if (segment === "..") segments.pop();
    else if (segment && segment !== ".") segments.push(segment);
  }
  return (isWindows ? "" : "/") + segments.join("/");
}

function toUrl(path: string): string {
  return new URL(`file://${path.startsWith("/") ? "" : "/"}${path.replace(/[%#?\\]/g, encodeURIComponent)}`).href;
}
