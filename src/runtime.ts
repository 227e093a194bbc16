/**
 * Types and access for the globals of Deno, Bun and Node. All other files import them from here.
 *
 * The types cover only what the library uses. Nothing is imported from a runtime, because this file must also load on
 * other platforms, such as workerd. The modules of Node come from `process.getBuiltinModule`, so that bundles for other
 * platforms contain no imports of them.
 *
 * @module
 */
import type { HttpModule } from "./kit/node_server.ts";

/** A readable stream of bytes. */
type Bytes = ReadableStream<Uint8Array>;

/** Handles HTTP requests. `info` describes the connection. */
export type RuntimeFetch = (request: Request, info: RuntimeInfo) => Response | Promise<Response>;

/** The second argument of `fetch`. */
export interface RuntimeInfo {
  /** Set by Deno. */
  readonly remoteAddr?: unknown;
  /** Set by Bun, which passes its server. */
  readonly requestIP?: unknown;
}

/** The parts of `Deno` that the library uses. */
export interface DenoGlobal {
  readonly args: readonly string[];
  readonly build: { readonly os: string; readonly standalone?: boolean };
  readonly version: { readonly deno: string };
  readonly noColor: boolean;
  readonly env: { get(name: string): string | undefined };
  /** Not available on some platforms. */
  readonly permissions?: { querySync(wanted: DenoPermission): { readonly state: string } };
  readonly stdin: { isTerminal(): boolean; readonly readable: Bytes };
  readonly stdout: DenoOutput;
  readonly stderr: DenoOutput;
  readonly Command: new (program: string, options: DenoCommandOptions) => { spawn(): DenoChild };
  consoleSize(): { readonly columns: number };
  cwd(): string;
  execPath(): string;
  exit(code: number): never;
  addSignalListener(signal: string, listener: () => void): void;
  removeSignalListener(signal: string, listener: () => void): void;
  unrefTimer?(timer: unknown): void;
  serve(options: DenoServeOptions, handler: RuntimeFetch): DenoServer;
  /** Not available on some platforms. */
  upgradeWebSocket?(
    request: Request,
    options: { readonly protocol?: string },
  ): { readonly socket: WebSocket; readonly response: Response };
  stat(path: string): Promise<DenoFileInfo>;
  realPath(path: string): Promise<string>;
  readDir(path: string): AsyncIterable<DenoFileKinds & { readonly name: string }>;
  lstat(path: string): Promise<DenoFileInfo>;
  open(path: string, options?: DenoOpenOptions): Promise<DenoFile>;
  rename(from: string, to: string): Promise<void>;
  remove(path: string): Promise<void>;
  chmod(path: string, mode: number): Promise<void>;
  chown(path: string, uid: number, gid: number): Promise<void>;
  writeFile(path: string, bytes: Uint8Array, options: { readonly createNew: boolean }): Promise<void>;
  mkdir(path: string, options: { readonly recursive: boolean }): Promise<void>;
  connect(
    options: { readonly hostname: string; readonly port: number },
  ): Promise<{ readonly remoteAddr: { readonly hostname: string }; close(): void }>;
  watchFs(path: string): AsyncIterable<{ readonly kind: string; readonly paths: readonly string[] }> & {
    close(): void;
  };
}

/** A permission to query. */
export type DenoPermission =
  | { readonly name: "read"; readonly path: string }
  | { readonly name: "env"; readonly variable: string };

/** Standard output or standard error. Its members can be replaced. */
export interface DenoOutput {
  write(bytes: Uint8Array): Promise<number>;
  writeSync(bytes: Uint8Array): number;
  isTerminal(): boolean;
  readonly writable: WritableStream<Uint8Array>;
}

/** Options of a child process. */
export interface DenoCommandOptions {
  readonly args: readonly string[];
  readonly cwd?: string;
  readonly clearEnv?: boolean;
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin: "piped" | "null";
  readonly stdout: "piped";
  readonly stderr: "piped" | "inherit";
}

/** A child process. Reading a stream that is not piped throws. */
export interface DenoChild {
  readonly stdin: WritableStream<Uint8Array>;
  readonly stdout: Bytes;
  readonly stderr: Bytes;
  readonly status: Promise<{ readonly code: number }>;
  /** Throws if the process has exited. */
  kill(signal: string): void;
}

/** Options of an HTTP server. */
export interface DenoServeOptions {
  readonly hostname: string;
  readonly port: number;
  readonly signal?: AbortSignal;
  readonly onListen: () => void;
}

/** A running HTTP server. */
export interface DenoServer {
  readonly addr: { readonly port: number };
  readonly finished: Promise<void>;
  shutdown(): Promise<void>;
  /** Lets the process end although the server is running. */
  unref(): void;
}

/** The kind of a file system entry. */
export interface DenoFileKinds {
  readonly isFile: boolean;
  readonly isDirectory: boolean;
  readonly isSymlink: boolean;
}

/** Metadata of a file. Fields that the system does not support are `null`. */
export interface DenoFileInfo extends DenoFileKinds {
  readonly size: number;
  readonly mtime: Date | null;
  /** Time of the last change of the contents or metadata. Programs cannot set it. */
  readonly ctime?: Date | null;
  readonly dev: number;
  readonly ino: number | null;
  readonly mode: number | null;
  readonly uid: number | null;
  readonly gid: number | null;
}

/** Options for opening a file. */
export interface DenoOpenOptions {
  readonly read?: boolean;
  readonly write?: boolean;
  readonly createNew?: boolean;
  readonly mode?: number;
}

/** An open file. */
export interface DenoFile {
  read(into: Uint8Array): Promise<number | null>;
  write(bytes: Uint8Array): Promise<number>;
  stat(): Promise<DenoFileInfo>;
  sync(): Promise<void>;
  close(): void;
}

/** The parts of `Bun` that the library uses. */
export interface BunGlobal {
  /** The path of the main file. */
  readonly main: string;
  readonly version: string;
  readonly isMainThread: boolean;
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly stdin: { stream(): Bytes };
  /** Can be replaced. */
  stdout: unknown;
  readonly stderr: unknown;
  write(to: unknown, bytes: Uint8Array): Promise<number>;
  /** Adds a plugin to the module loader of this process. */
  plugin(plugin: { readonly name: string; setup(build: BunPluginBuild): void }): void;
  /** Resolves a specifier against a folder. Throws if nothing is found. */
  resolveSync(specifier: string, folder: string): string;
  spawn(words: readonly string[], options: BunPipedOptions): BunPipedChild;
  spawn(words: readonly string[], options: BunSpawnOptions): BunChild;
  serve(options: BunServeOptions): BunServer;
}

/** Options of a child process that reads the given bytes, or nothing. */
export interface BunSpawnOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin: Uint8Array | "ignore";
  readonly stdout: "pipe";
  readonly stderr: "pipe";
}

/** Options of a child process with piped input. */
export interface BunPipedOptions extends Omit<BunSpawnOptions, "stdin" | "stderr"> {
  readonly stdin: "pipe";
  readonly stderr: "pipe" | "inherit";
}

/** A child process. */
export interface BunChild {
  readonly stdout: Bytes;
  readonly stderr: Bytes;
  readonly exited: Promise<number>;
  kill(signal: string): void;
}

/** A child process with piped input. */
export interface BunPipedChild extends Omit<BunChild, "stderr"> {
  /** `undefined` if standard error is inherited. */
  readonly stderr?: Bytes;
  readonly stdin: { write(bytes: Uint8Array): unknown; flush(): unknown; end(): unknown };
}

/** Options of an HTTP server with its handlers. */
export interface BunServeOptions {
  readonly hostname: string;
  readonly port: number;
  readonly fetch: RuntimeFetch;
  /** Idle timeout in seconds. */
  readonly idleTimeout?: number;
}

/** The part of a Bun plugin that resolves imports. */
export interface BunPluginBuild {
  onResolve(
    options: { readonly filter: RegExp },
    resolve: (args: { readonly path: string; readonly importer: string }) => { readonly path: string } | undefined,
  ): void;
}

/** A running HTTP server. */
export interface BunServer {
  readonly port: number;
  /** With `now`, closes all connections. Otherwise waits for pending responses. */
  stop(now?: boolean): Promise<void>;
}

/** The parts of `process` that the library uses, which Deno supports too. */
export interface ProcessGlobal {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly platform: string;
  readonly execPath: string;
  /** Can be replaced on Bun. */
  stdout: { readonly columns?: number };
  readonly stderr: { readonly columns?: number; write(text: string): unknown };
  exit(code: number): never;
  cwd(): string;
  on(event: string, listener: () => void): void;
  off(event: string, listener: () => void): void;
  getBuiltinModule(name: "fs"): FsModule;
  getBuiltinModule(name: "dns"): DnsModule;
  getBuiltinModule(name: "net"): NetModule;
}

/** The parts of `node:dns` that the library uses. */
export interface DnsModule {
  readonly promises: {
    lookup(hostname: string, options: { readonly all: true }): Promise<readonly { readonly address: string }[]>;
  };
}

/** The parts of `node:net` that the library uses. */
export interface NetModule {
  readonly BlockList: new () => AddressList;
  /** Returns 4 or 6 for an IP address, and 0 for any other text. */
  isIP(text: string): number;
}

/** A list of networks. */
export interface AddressList {
  addSubnet(address: string, bits: number, family: "ipv4" | "ipv6"): void;
  check(address: string, family: "ipv4" | "ipv6"): boolean;
}

/** The parts of the `process` of Node that the library uses. */
export interface NodeGlobal extends Omit<ProcessGlobal, "getBuiltinModule"> {
  readonly argv: readonly string[];
  readonly stdin: NodeReadable;
  readonly stdout: NodeOutput;
  readonly stderr: NodeOutput;
  getBuiltinModule(name: "child_process"): {
    spawn(command: string, args: readonly string[], options: NodeSpawnOptions): NodeChild;
  };
  getBuiltinModule(name: "fs"): FsModule;
  getBuiltinModule(name: "http"): HttpModule;
  getBuiltinModule(name: "worker_threads"): NodeThreads;
}

/** A readable stream of Node. */
export interface NodeReadable {
  on(event: "data", listener: (bytes: Uint8Array) => void): unknown;
  on(event: "end" | "close", listener: () => void): unknown;
  on(event: "error", listener: (error: Error) => void): unknown;
  pause(): unknown;
  resume(): unknown;
  destroy(): unknown;
}

/** Standard output or standard error on Node. Its members can be replaced. */
export interface NodeOutput {
  readonly columns?: number;
  write(data: string | Uint8Array, written?: (error?: Error | null) => void): boolean;
  on(event: "error", listener: (error: Error) => void): unknown;
}

/** Options of a child process of Node. */
export interface NodeSpawnOptions {
  readonly cwd?: string;
  readonly env: Readonly<Record<string, string>>;
  readonly stdio: readonly ["pipe", "pipe", "pipe" | "inherit"];
}

/** A child process of Node. */
export interface NodeChild {
  /** Not set if the process could not be started. */
  readonly pid?: number;
  readonly stdin: NodeOutput & { end(done: () => void): unknown };
  readonly stdout: NodeReadable;
  /** Not available if standard error is inherited. */
  readonly stderr: NodeReadable | null;
  on(event: "exit", listener: (code: number | null) => void): unknown;
  on(event: "error", listener: (error: Error) => void): unknown;
  kill(signal: string): boolean;
}

/** The module `worker_threads` of Node. */
export interface NodeThreads {
  readonly isMainThread: boolean;
  readonly parentPort: ThreadGlobal | null;
  readonly Worker: new (url: URL, options: { readonly name: string }) => NodeWorker;
}

/** A worker thread of Node. */
export interface NodeWorker {
  on(event: "message", listener: (message: unknown) => void): unknown;
  on(event: "error" | "messageerror", listener: (error: unknown) => void): unknown;
  on(event: "exit", listener: () => void): unknown;
  postMessage(message: unknown): void;
  terminate(): Promise<unknown>;
  ref(): void;
  unref(): void;
}

/** The built-in `fs` module. */
export interface FsModule {
  existsSync(path: URL): boolean;
  readFileSync(path: URL | string): Uint8Array;
  watch(
    path: string,
    options: { readonly recursive: boolean; readonly persistent: boolean },
    listener: (event: string, name: string | null) => void,
  ): { on(event: "error", listener: (error: unknown) => void): void; unref(): void; close(): void };
  readonly promises: {
    readdir(path: string, options: { readonly withFileTypes: true }): Promise<readonly FsEntry[]>;
    realpath(path: string): Promise<string>;
    stat(path: string): Promise<FsFacts>;
    lstat(path: string): Promise<FsFacts>;
    open(path: string, flags: "r"): Promise<FsFile>;
  };
}

/** An entry of a folder, as `node:fs` returns it. */
export interface FsEntry {
  readonly name: string;
  isFile(): boolean;
  isDirectory(): boolean;
  isSymbolicLink(): boolean;
}

/** Facts of a file, as `node:fs` returns them. */
export interface FsFacts extends Omit<FsEntry, "name"> {
  readonly dev: number;
  readonly ino: number;
  readonly size: number;
  readonly mode: number;
  readonly mtimeMs: number;
  readonly ctimeMs: number;
}

/** An open file of `node:fs`. */
export interface FsFile {
  stat(): Promise<FsFacts>;
  read(buffer: Uint8Array, offset: number, length: number): Promise<{ readonly bytesRead: number }>;
  readFile(): Promise<Uint8Array>;
  close(): Promise<void>;
}

/** The global scope of a worker thread. */
export interface ThreadGlobal {
  /** The name that its creator gave it. */
  readonly name?: string;
  postMessage(message: unknown): void;
  addEventListener(type: "message", listener: (event: { readonly data: unknown }) => void): void;
  /** Ends the thread. Bun has no such function. */
  close?(): void;
}

interface Globals {
  readonly Deno?: DenoGlobal;
  readonly Bun?: BunGlobal;
  readonly process: ProcessGlobal;
}

// Each runtime only has types for its own global, and other platforms have neither.
const globals = globalThis as unknown as Globals;

/** The global `Deno`, or `undefined` on other runtimes. */
export const deno: DenoGlobal | undefined = globals.Deno;

/** The global `Bun`, or `undefined` on other runtimes. */
export const bun: BunGlobal | undefined = globals.Bun;

/**
 * Returns the current global `Deno`. Use it where behavior depends on the platform, so that tests can replace the
 * global.
 */
export function findDeno(): DenoGlobal | undefined {
  return globals.Deno;
}

/** Whether the program is an executable that `deno compile` or `bun build --compile` created. */
export function isCompiled(): boolean {
  // Bun shows the files of an executable in a separate folder, and on Windows on a separate drive.
  return Boolean(deno?.build.standalone) || /^(\/\$bunfs\/|[A-Z]:[\\/]~BUN[\\/])/i.test(bun?.main ?? "");
}

/** The `process` of Node, or `undefined` on other runtimes, some of which imitate it. */
export const node: NodeGlobal | undefined = !deno && globalThis.navigator?.userAgent?.startsWith("Node.js/")
  ? globals.process as unknown as NodeGlobal // Safe, because this `process` is the `process` of Node.
  : undefined;

/** Returns the global scope if this code runs in a worker thread. */
export function findThread(): ThreadGlobal | undefined {
  if (node) {
    const { isMainThread, parentPort } = node.getBuiltinModule("worker_threads");
    return isMainThread ? undefined : parentPort ?? undefined;
  }
  const isThread = bun ? !bun.isMainThread : "WorkerGlobalScope" in globalThis;
  // The cast is safe, because this thread is a worker, whereas TypeScript assumes the global scope of the main thread.
  return isThread ? globalThis as unknown as ThreadGlobal : undefined;
}

/** Named locks that the threads of one process share. A lock is released when its thread has really ended. */
export interface ThreadLocks {
  request(name: string, hold: () => Promise<unknown>): Promise<unknown>;
  query(): Promise<{ readonly held?: readonly { readonly name?: string }[] }>;
}

/**
 * Returns the locks of Deno. Bun has no locks. It does not need them, because it ends a thread at once and reports the
 * end.
 */
export function findThreadLocks(): ThreadLocks | undefined {
  const locks: unknown = deno && Reflect.get(globalThis.navigator, "locks");
  return locks ? locks as ThreadLocks : undefined; // The Web Locks API.
}

/** Returns the global `process`. It is read only when needed, because on Deno that loads several modules. */
export function findProcess(): ProcessGlobal {
  return globals.process;
}

/**
 * Runs `job` once after `ms` milliseconds. Returns a function that cancels it.
 *
 * The timer does not keep the process alive. Use it for housekeeping only, because `job` may never run.
 */
export function startBackgroundTimer(job: () => void, ms: number): () => void {
  // In browsers and workerd the timer is a number, and timers do not keep the process alive. On other runtimes it is an
  // object.
  const timer: unknown = setTimeout(job, ms);
  if (deno?.unrefTimer) deno.unrefTimer(timer);
  else if (isUnrefable(timer)) timer.unref();
  return () => clearTimeout(timer as number); // `setTimeout` returned it, whatever its type is.
}

function isUnrefable(timer: unknown): timer is { unref(): void } {
  return typeof timer === "object" && timer !== null && "unref" in timer;
}
