/**
 * The globals of Deno, Bun, Node and web pages, and their types. All other files import these globals from this file.
 *
 * The types cover only what the library uses. This file imports nothing from a runtime, because it must also load on
 * other platforms, such as workerd. Node's modules come from `process.getBuiltinModule`, so that bundles for other
 * platforms do not import these modules.
 */

type Bytes = ReadableStream<Uint8Array>;

export type RuntimeFetch = (request: Request, info: RuntimeInfo) => Response | Promise<Response>;

/** The second argument that Deno or Bun passes to `fetch`. */
export interface RuntimeInfo {
  /** The client's address. Set by Deno. */
  readonly remoteAddr?: unknown;
  /** Returns the client's address. Set by Bun, which passes its server object as `info`. */
  readonly requestIP?: unknown;
}

export interface DenoGlobal {
  readonly args: readonly string[];
  readonly build: { readonly os: string; readonly standalone?: boolean };
  readonly version: { readonly deno: string };
  readonly noColor: boolean;
  readonly env: { get(name: string): string | undefined };
  /** `undefined` on some platforms that imitate Deno. */
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
  /** `undefined` on some platforms that imitate Deno. */
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
  /** `undefined` on some platforms that imitate Deno. */
  createHttpClient?(options: { readonly allowHost: boolean }): DenoHttpClient;
  watchFs(path: string): AsyncIterable<{ readonly kind: string; readonly paths: readonly string[] }> & {
    close(): void;
  };
}

/** A client for the `client` option of Deno's `fetch`. */
export type DenoHttpClient = object;

export type DenoPermission =
  | { readonly name: "read"; readonly path: string }
  | { readonly name: "net"; readonly host: string }
  | { readonly name: "env"; readonly variable: string }
  | { readonly name: "run"; readonly command: string };

/** Standard output or standard error. The members are not readonly, because the stdout guard replaces them. */
export interface DenoOutput {
  write(bytes: Uint8Array): Promise<number>;
  writeSync(bytes: Uint8Array): number;
  isTerminal(): boolean;
  readonly writable: WritableStream<Uint8Array>;
}

export interface DenoCommandOptions {
  readonly args: readonly string[];
  readonly cwd?: string;
  readonly clearEnv?: boolean;
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin: "piped" | "null";
  readonly stdout: "piped";
  readonly stderr: "piped" | "inherit";
}

/** A child process. The getter of a stream that is not piped throws. */
export interface DenoChild {
  readonly stdin: WritableStream<Uint8Array>;
  readonly stdout: Bytes;
  readonly stderr: Bytes;
  readonly status: Promise<{ readonly code: number }>;
  /** Throws if the process has exited or runs as another user. */
  kill(signal: string): void;
  unref(): void;
}

export interface DenoServeOptions {
  readonly hostname: string;
  readonly port: number;
  readonly signal?: AbortSignal;
  readonly onListen: () => void;
}

export interface DenoServer {
  readonly addr: { readonly port: number };
  readonly finished: Promise<void>;
  shutdown(): Promise<void>;
  /** Allows the process to end while the server is running. */
  unref(): void;
}

export interface DenoFileKinds {
  readonly isFile: boolean;
  readonly isDirectory: boolean;
  readonly isSymlink: boolean;
}

/** A field is `null` if the operating system does not support the field. */
export interface DenoFileInfo extends DenoFileKinds {
  readonly size: number;
  readonly mtime: Date | null;
  /** Time at which the contents or metadata last changed. Unlike `mtime`, programs cannot set this time. */
  readonly ctime?: Date | null;
  readonly dev: number;
  readonly ino: number | null;
  readonly mode: number | null;
  readonly uid: number | null;
  readonly gid: number | null;
}

export interface DenoOpenOptions {
  readonly read?: boolean;
  readonly write?: boolean;
  readonly createNew?: boolean;
  readonly mode?: number;
}

export interface DenoFile {
  read(into: Uint8Array): Promise<number | null>;
  write(bytes: Uint8Array): Promise<number>;
  stat(): Promise<DenoFileInfo>;
  sync(): Promise<void>;
  close(): void;
}

export interface BunGlobal {
  readonly main: string;
  readonly version: string;
  readonly isMainThread: boolean;
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly stdin: { stream(): Bytes };
  /** Not readonly, because the stdout guard replaces this property. */
  stdout: unknown;
  readonly stderr: unknown;
  write(to: unknown, bytes: Uint8Array): Promise<number>;
  /** Adds a plugin to the module loader of this process. */
  plugin(plugin: { readonly name: string; setup(build: BunPluginBuild): void }): void;
  /** Resolves a specifier against a folder. Throws if the module is not found. */
  resolveSync(specifier: string, folder: string): string;
  spawn(words: readonly string[], options: BunPipedOptions): BunPipedChild;
  spawn(words: readonly string[], options: BunSpawnOptions): BunChild;
  serve(options: BunServeOptions): BunServer;
}

/** Options of a child process whose input is `stdin`, or empty. */
export interface BunSpawnOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin: Uint8Array | "ignore";
  readonly stdout: "pipe";
  readonly stderr: "pipe";
}

export interface BunPipedOptions extends Omit<BunSpawnOptions, "stdin" | "stderr"> {
  readonly stdin: "pipe";
  readonly stderr: "pipe" | "inherit";
}

export interface BunChild {
  readonly stdout: Bytes;
  readonly stderr: Bytes;
  readonly exited: Promise<number>;
  kill(signal: string): void;
}

export interface BunPipedChild extends Omit<BunChild, "stderr"> {
  /** `undefined` if the child process inherits standard error. */
  readonly stderr?: Bytes;
  readonly stdin: { write(bytes: Uint8Array): unknown; flush(): unknown; end(): unknown };
  unref(): void;
}

export interface BunServeOptions {
  readonly hostname: string;
  readonly port: number;
  readonly fetch: RuntimeFetch;
  /** Idle timeout of a connection in seconds. */
  readonly idleTimeout?: number;
}

/** The object with which a Bun plugin registers callbacks for imports. */
export interface BunPluginBuild {
  onResolve(
    options: { readonly filter: RegExp },
    resolve: (args: { readonly path: string; readonly importer: string }) => { readonly path: string } | undefined,
  ): void;
}

export interface BunServer {
  readonly port: number;
  /** Stops the server. If `now` is `true`, closes all connections; otherwise waits for pending responses. */
  stop(now?: boolean): Promise<void>;
}

/** The parts of `process` that the library uses on every runtime. */
export interface ProcessGlobal {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly platform: string;
  readonly execPath: string;
  readonly execArgv: readonly string[];
  /** Not readonly, because the stdout guard replaces this property on Bun. */
  stdout: { readonly columns?: number };
  readonly stderr: { readonly columns?: number; write(text: string): unknown };
  exit(code: number): never;
  cwd(): string;
  /** Returns the CPU time of this process in microseconds. */
  cpuUsage(): { readonly user: number; readonly system: number };
  on(event: string, listener: () => void): void;
  on(event: "unhandledRejection", listener: (reason: unknown) => void): void;
  off(event: string, listener: () => void): void;
  off(event: "unhandledRejection", listener: (reason: unknown) => void): void;
  listeners(event: string): readonly object[];
  getBuiltinModule(name: "async_hooks"): AsyncHooksModule;
  getBuiltinModule(name: "fs"): FsModule;
  getBuiltinModule(name: "dns"): DnsModule;
  getBuiltinModule(name: "net"): NetModule;
}

export interface AsyncHooksModule {
  readonly AsyncLocalStorage: new <T>() => { run<R>(value: T, run: () => R): R; getStore(): T | undefined };
}

export interface DnsModule {
  readonly promises: {
    lookup(hostname: string, options: { readonly all: true }): Promise<readonly { readonly address: string }[]>;
  };
}

export interface NetModule {
  readonly BlockList: new () => AddressList;
  /** Returns the version of an IP address, 4 or 6, or 0 for any other text. */
  isIP(text: string): number;
}

export interface AddressList {
  addSubnet(address: string, bits: number, family: "ipv4" | "ipv6"): void;
  check(address: string, family: "ipv4" | "ipv6"): boolean;
}

export interface NodeGlobal extends Omit<ProcessGlobal, "getBuiltinModule"> {
  readonly version: string;
  readonly argv: readonly string[];
  readonly stdin: NodeReadable;
  readonly stdout: NodeOutput;
  readonly stderr: NodeOutput;
  getBuiltinModule(name: "child_process"): {
    spawn(command: string, args: readonly string[], options: NodeSpawnOptions): NodeChild;
  };
  getBuiltinModule(name: "fs"): FsModule;
  getBuiltinModule(name: "http"): NodeHttpModule;
  getBuiltinModule(name: "net"): NodeNetModule;
  getBuiltinModule(name: "worker_threads"): NodeThreads;
}

export interface NodeReadable {
  on(event: "data", listener: (bytes: Uint8Array) => void): unknown;
  on(event: "end" | "close", listener: () => void): unknown;
  on(event: "error", listener: (error: Error) => void): unknown;
  pause(): unknown;
  resume(): unknown;
  destroy(): unknown;
}

/** Standard output or standard error on Node. The members are not readonly, because the stdout guard replaces them. */
export interface NodeOutput {
  readonly columns?: number;
  write(data: string | Uint8Array, written?: (error?: Error | null) => void): boolean;
  on(event: "error", listener: (error: Error) => void): unknown;
}

export interface NodeSpawnOptions {
  readonly cwd?: string;
  readonly env: Readonly<Record<string, string>>;
  readonly stdio: readonly ["pipe", "pipe", "pipe" | "inherit"];
}

export interface NodeChild {
  /** `undefined` if the process could not be started. */
  readonly pid?: number;
  readonly stdin: NodeOutput & { end(done: () => void): unknown };
  readonly stdout: NodeReadable;
  /** `null` if the child process inherits standard error. */
  readonly stderr: NodeReadable | null;
  on(event: "exit", listener: (code: number | null) => void): unknown;
  on(event: "error", listener: (error: Error) => void): unknown;
  kill(signal: string): boolean;
  unref(): unknown;
}

export interface NodeHttpModule {
  createServer(options: { readonly requireHostHeader: boolean }, listener: NodeRequestListener): NodeHttpServer;
}

export type NodeRequestListener = (incoming: NodeIncoming, outgoing: NodeOutgoing) => void;

export interface NodeNetModule {
  readonly Server: { readonly prototype: { close(this: NodeHttpServer, done: () => void): unknown } };
}

export interface NodeHttpServer {
  /** Idle timeout of a connection after a response, in milliseconds. */
  keepAliveTimeout: number;
  /** Milliseconds by which Node exceeds the idle timeout that the client gets. Since Node 24. */
  keepAliveTimeoutBuffer?: number;
  listen(options: { readonly port: number; readonly host: string }, ready: () => void): unknown;
  once(event: "error", listener: (error: Error) => void): unknown;
  /** A request whose header `Expect` has another value than `100-continue`. */
  on(event: "checkExpectation", listener: NodeRequestListener): unknown;
  address(): unknown;
  /** Stops accepting connections, and closes idle connections. */
  close(done: () => void): unknown;
  closeAllConnections(): void;
}

export interface NodeConnection {
  readonly remoteAddress?: string;
  destroy(): unknown;
}

export interface NodeIncoming {
  readonly method?: string;
  readonly url?: string;
  readonly httpVersion: string;
  readonly headers: {
    readonly host?: string;
    readonly "content-length"?: string;
    readonly "transfer-encoding"?: string;
  };
  readonly socket: NodeConnection;
  readonly destroyed: boolean;
  readonly readableEnded: boolean;
  /** `null` until code begins to read the body. */
  readonly readableFlowing: boolean | null;
  on(event: "data", listener: (bytes: Uint8Array<ArrayBuffer>) => void): unknown;
  on(event: "end" | "close", listener: () => void): unknown;
  pause(): unknown;
  resume(): unknown;
}

export interface NodeOutgoing {
  readonly req: NodeIncoming;
  /** `null` until the earlier responses on the connection have been sent. */
  readonly socket: unknown;
  /** Whether the connection stays open after the response. */
  shouldKeepAlive: boolean;
  readonly destroyed: boolean;
  readonly headersSent: boolean;
  readonly writableFinished: boolean;
  /** Status of the response, unless `writeHead` is called. */
  statusCode: number;
  setHeader(name: string, value: string): unknown;
  writeHead(status: number, headers: readonly string[]): NodeOutgoing;
  flushHeaders(): void;
  write(bytes: Uint8Array): boolean;
  end(text?: string): unknown;
  destroy(): unknown;
  on(event: "close" | "drain", listener: () => void): unknown;
  once(event: "socket", listener: () => void): unknown;
}

export interface NodeThreads {
  readonly isMainThread: boolean;
  readonly parentPort: ThreadGlobal | null;
  readonly Worker: new (url: URL, options: { readonly name: string }) => NodeWorker;
}

export interface NodeWorker {
  on(event: "message", listener: (message: unknown) => void): unknown;
  on(event: "error" | "messageerror", listener: (error: unknown) => void): unknown;
  on(event: "exit", listener: () => void): unknown;
  postMessage(message: unknown): void;
  terminate(): Promise<unknown>;
  ref(): void;
  unref(): void;
}

export interface FsModule {
  existsSync(path: URL): boolean;
  readFileSync(path: URL | string): Uint8Array;
  writeSync(fd: number, bytes: Uint8Array): number;
  watch(
    path: string,
    options: { readonly recursive: boolean; readonly persistent: boolean },
    listener: (event: string, name: string | null) => void,
  ): { on(event: "error", listener: (error: unknown) => void): void; unref(): void; close(): void };
  readonly promises: {
    readdir(path: string, options: { readonly withFileTypes: true }): Promise<readonly FsEntry[]>;
    realpath(path: string): Promise<string>;
    stat(path: string): Promise<FsStats>;
    lstat(path: string): Promise<FsStats>;
    open(path: string, flags: "r"): Promise<FsFile>;
  };
}

export interface FsEntry {
  readonly name: string;
  isFile(): boolean;
  isDirectory(): boolean;
  isSymbolicLink(): boolean;
}

export interface FsStats extends Omit<FsEntry, "name"> {
  readonly dev: number;
  readonly ino: number;
  readonly size: number;
  readonly mode: number;
  readonly uid: number;
  readonly mtimeMs: number;
  readonly ctimeMs: number;
}

export interface FsFile {
  stat(): Promise<FsStats>;
  read(buffer: Uint8Array, offset: number, length: number): Promise<{ readonly bytesRead: number }>;
  readFile(): Promise<Uint8Array>;
  close(): Promise<void>;
}

export interface ThreadGlobal {
  /** The name that was passed to the constructor of the worker. */
  readonly name?: string;
  postMessage(message: unknown): void;
  addEventListener(type: "message", listener: (event: { readonly data: unknown }) => void): void;
  /** Ends the thread. `undefined` on Bun. */
  close?(): void;
}

interface Globals {
  readonly Deno?: DenoGlobal;
  readonly Bun?: BunGlobal;
  readonly process: ProcessGlobal;
}

// The cast is needed, because the types of each runtime declare only its own global.
const globals = globalThis as unknown as Globals;

export const deno: DenoGlobal | undefined = globals.Deno;

export const bun: BunGlobal | undefined = globals.Bun;

/** Use this function instead of `deno` where behavior depends on the platform, so that tests can replace the global. */
export function findDeno(): DenoGlobal | undefined {
  return globals.Deno;
}

/** Tests whether the program is an executable from `deno compile` or `bun build --compile`. */
export function isCompiled(): boolean {
  // In an executable from Bun, files have paths in a virtual folder, or on a virtual drive on Windows.
  return Boolean(deno?.build.standalone) || /^(\/\$bunfs\/|[A-Z]:[\\/]~BUN[\\/])/i.test(bun?.main ?? "");
}

/** Node's `process`, or `undefined` on other runtimes, even if they imitate `process`. */
export const node: NodeGlobal | undefined = !deno && globalThis.navigator?.userAgent?.startsWith("Node.js/")
  ? globals.process as unknown as NodeGlobal // The cast is safe, because the user agent identifies Node.
  : undefined;

/** Whether the platform is Workers, where a timer ends with the request whose code has started it. */
export const workers: boolean = globalThis.navigator?.userAgent === "Cloudflare-Workers";

/** Tests whether this code runs while a Worker starts. Workers permit no random values and no I/O at this time. */
export function isStartingWorker(): boolean {
  if (!workers) return false;
  try {
    crypto.getRandomValues(new Uint8Array(1));
    return false;
  } catch {
    return true;
  }
}

/** Returns the global scope, or Node's parent port, if this code runs in a worker thread. */
export function findThread(): ThreadGlobal | undefined {
  if (node) {
    const { isMainThread, parentPort } = node.getBuiltinModule("worker_threads");
    return isMainThread ? undefined : parentPort ?? undefined;
  }
  const isThread = bun ? !bun.isMainThread : "WorkerGlobalScope" in globalThis;
  // The cast is safe, because this thread is a worker. TypeScript assumes the global scope of the main thread.
  return isThread ? globalThis as unknown as ThreadGlobal : undefined;
}

export interface WebPage {
  readonly location: { readonly href: string; readonly origin: string; assign(url: string): void };
  readonly history: { readonly state: unknown; replaceState(state: unknown, unused: string, url: string): void };
  readonly sessionStorage: {
    getItem(key: string): string | null;
    setItem(key: string, value: string): void;
    removeItem(key: string): void;
  };
  addEventListener(name: "pageshow", listener: (event: Event) => void, options: { readonly signal: AbortSignal }): void;
}

/** Returns the globals of the web page in which this program runs, or `undefined` if the program is not a web page. */
export function findWebPage(): WebPage | undefined {
  // The cast is safe, because only web pages have all three globals.
  const page = globalThis as unknown as WebPage;
  const { location, history, sessionStorage }: Partial<WebPage> = page;
  return location && history && sessionStorage ? page : undefined;
}

/** Named locks that all threads of a process share. A lock is released only when its thread has ended. */
export interface ThreadLocks {
  request(name: string, hold: () => Promise<unknown>): Promise<unknown>;
  query(): Promise<{ readonly held?: readonly { readonly name?: string }[] }>;
}

/** Returns `undefined` except on Deno. Bun needs no locks, because it ends a thread immediately and reports the end. */
export function findThreadLocks(): ThreadLocks | undefined {
  const locks: unknown = deno && Reflect.get(globalThis.navigator, "locks");
  return locks ? locks as ThreadLocks : undefined; // The cast is safe, because `navigator.locks` is the Web Locks API.
}

/** A constant would be slower at startup, because Deno loads several modules when `process` is first read. */
export function findProcess(): ProcessGlobal {
  return globals.process;
}

/** Whether the system is Windows, where paths can have drives and backslashes. */
export function isWindows(): boolean {
  return deno ? deno.build.os === "windows" : findProcess().platform === "win32";
}

/**
 * Returns an environment variable, or `undefined` if it is not set, or if the program has no permission to read it.
 */
export function readVariable(name: string): string | undefined {
  if (!deno) return (bun ?? findProcess()).env[name];
  // Check the permission first, because Deno would otherwise prompt or throw.
  const state = deno.permissions?.querySync({ name: "env", variable: name }).state ?? "granted";
  return state === "granted" ? deno.env.get(name) : undefined;
}

/**
 * Calls `job` once after `ms` milliseconds. Returns a function that cancels the timer.
 *
 * Use this timer only for housekeeping: `job` may never run, because the timer does not keep the process alive.
 */
export function startBackgroundTimer(job: () => void, ms: number): () => void {
  // The type of a timer depends on the runtime. In browsers and workerd it is a number, and there is no process to keep
  // alive.
  const timer: unknown = setTimeout(job, ms);
  if (deno?.unrefTimer) deno.unrefTimer(timer);
  else if (isUnrefable(timer)) timer.unref();
  return () => clearTimeout(timer as number); // The cast is safe, because `clearTimeout` accepts every value that `setTimeout` returns.
}

function isUnrefable(timer: unknown): timer is { unref(): void } {
  return typeof timer === "object" && timer !== null && "unref" in timer;
}
