/**
 * Deno's and Bun's globals: their types, and where they are looked up. Every other file imports them from here.
 *
 * Only what the library uses is typed, and nothing of either runtime is imported, because this file must also load
 * where there is neither, such as in workerd.
 *
 * @module
 */

/** A readable stream of bytes. */
type Bytes = ReadableStream<Uint8Array>;

/** Answers HTTP requests. `info` is what the runtime knows of the connection. */
export type RuntimeFetch = (request: Request, info: RuntimeInfo) => Response | Promise<Response>;

/** What a runtime hands to `fetch` beside the request. */
export interface RuntimeInfo {
  /** Set by Deno. */
  readonly remoteAddr?: unknown;
  /** Set by Bun, whose second argument is its server. */
  readonly requestIP?: unknown;
}

/** The parts of `Deno` that the library uses. */
export interface DenoGlobal {
  readonly args: readonly string[];
  readonly build: { readonly os: string };
  readonly version: { readonly deno: string };
  readonly noColor: boolean;
  readonly env: { get(name: string): string | undefined };
  /** Absent on some hosts. */
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
  unrefTimer?(timer: unknown): void;
  serve(options: DenoServeOptions, handler: RuntimeFetch): DenoServer;
  /** Absent on some hosts. */
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

/** A permission to ask for. */
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

/** How to start a program. */
export interface DenoCommandOptions {
  readonly args: readonly string[];
  readonly cwd?: string;
  readonly clearEnv?: boolean;
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin: "piped" | "null";
  readonly stdout: "piped";
  readonly stderr: "piped" | "inherit";
}

/** A started program. Reading a stream that is not piped throws. */
export interface DenoChild {
  readonly stdin: WritableStream<Uint8Array>;
  readonly stdout: Bytes;
  readonly stderr: Bytes;
  readonly status: Promise<{ readonly code: number }>;
  /** Throws if the program has exited. */
  kill(signal: string): void;
}

/** Where to serve. */
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
}

/** What a path names. */
export interface DenoFileKinds {
  readonly isFile: boolean;
  readonly isDirectory: boolean;
  readonly isSymlink: boolean;
}

/** What is known of a file. What the system does not have is `null`. */
export interface DenoFileInfo extends DenoFileKinds {
  readonly size: number;
  readonly mtime: Date | null;
  /** When its content, its facts or, for a folder, its entries were last changed; nobody can set it. */
  readonly ctime?: Date | null;
  readonly dev: number;
  readonly ino: number | null;
  readonly mode: number | null;
  readonly uid: number | null;
  readonly gid: number | null;
}

/** How to open a file. */
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
  readonly version: string;
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly stdin: { stream(): Bytes };
  /** Can be replaced. */
  stdout: unknown;
  readonly stderr: unknown;
  write(to: unknown, bytes: Uint8Array): Promise<number>;
  spawn(words: readonly string[], options: BunPipedOptions): BunPipedChild;
  spawn(words: readonly string[], options: BunSpawnOptions): BunChild;
  serve(options: BunServeOptions): BunServer;
}

/** How to start a program that reads given bytes, or nothing. */
export interface BunSpawnOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin: Uint8Array | "ignore";
  readonly stdout: "pipe";
  readonly stderr: "pipe";
}

/** How to start a program whose input is piped. */
export interface BunPipedOptions extends Omit<BunSpawnOptions, "stdin" | "stderr"> {
  readonly stdin: "pipe";
  readonly stderr: "pipe" | "inherit";
}

/** A started program. */
export interface BunChild {
  readonly stdout: Bytes;
  readonly stderr: Bytes;
  readonly exited: Promise<number>;
  kill(signal: string): void;
}

/** A started program whose input is piped. */
export interface BunPipedChild extends Omit<BunChild, "stderr"> {
  /** Absent when it is inherited. */
  readonly stderr?: Bytes;
  readonly stdin: { write(bytes: Uint8Array): unknown; flush(): unknown; end(): unknown };
}

/** Where to serve, and what. */
export interface BunServeOptions {
  readonly hostname: string;
  readonly port: number;
  readonly fetch: RuntimeFetch;
  /** In seconds. */
  readonly idleTimeout?: number;
}

/** A running HTTP server. */
export interface BunServer {
  readonly port: number;
  /** With `now`, closes all connections; without it, waits for the responses in flight. */
  stop(now?: boolean): Promise<void>;
}

/** The parts of `process` that the library uses; Deno has it too. */
export interface ProcessGlobal {
  /** Can be replaced, so that a package that reads the environment as it loads asks for no permission. */
  env: object;
  readonly platform: string;
  readonly execPath: string;
  /** Can be replaced on Bun. */
  stdout: { readonly columns?: number };
  readonly stderr: { readonly columns?: number; write(text: string): unknown };
  exit(code: number): never;
  cwd(): string;
  on(event: string, listener: () => void): void;
  getBuiltinModule(name: "fs"): FsModule;
  getBuiltinModule(name: "tty"): { isatty(file: number): boolean };
  getBuiltinModule(name: "dns"): DnsModule;
  getBuiltinModule(name: "http"): HttpModule;
}

/** The built-in module for files. */
export interface FsModule {
  readonly promises: {
    stat(path: string): Promise<FsFacts>;
    lstat(path: string): Promise<FsFacts>;
    rename(from: string, to: string): Promise<void>;
    unlink(path: string): Promise<void>;
    chmod(path: string, mode: number): Promise<void>;
    chown(path: string, uid: number, gid: number): Promise<void>;
    realpath(path: string): Promise<string>;
    readdir(
      path: string,
      options: { readonly withFileTypes: true },
    ): Promise<readonly (FsKinds & { readonly name: string })[]>;
    open(path: string, flags?: "r" | "wx", mode?: number): Promise<FsFile>;
    writeFile(path: string, content: string | Uint8Array, options: { readonly flag: "wx" | "w" }): Promise<void>;
    mkdir(path: string, options: { readonly recursive: boolean }): Promise<unknown>;
  };
  watch(
    path: string,
    options: { readonly recursive: boolean; readonly persistent: boolean },
    listener: (kind: string, name: string | null) => void,
  ): { close(): void; on(event: "error", listener: (error: unknown) => void): void };
  fstatSync(file: number): { isCharacterDevice(): boolean };
}

/** What is known of a file. */
export interface FsFacts extends FsKinds {
  readonly size: number;
  readonly mtimeMs: number;
  readonly ctimeMs: number;
  readonly dev: number;
  readonly ino: number;
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
}

/** An open file. */
export interface FsFile {
  read(into: Uint8Array, at: number, length: number): Promise<{ readonly bytesRead: number }>;
  writeFile(bytes: Uint8Array): Promise<void>;
  stat(): Promise<FsFacts>;
  sync(): Promise<void>;
  close(): Promise<void>;
}

/** What a path names. */
export interface FsKinds {
  isFile(): boolean;
  isDirectory(): boolean;
  isSymbolicLink(): boolean;
}

/** The built-in module for host names. */
export interface DnsModule {
  readonly promises: {
    lookup(name: string, options: { readonly all: true }): Promise<readonly { readonly address: string }[]>;
  };
}

/** The built-in module for HTTP. */
export interface HttpModule {
  request(
    url: string,
    options: { readonly method: "POST"; readonly headers: Readonly<Record<string, string>>; readonly timeout: number },
    onResponse: (response: { readonly statusCode: number; destroy(): void }) => void,
  ): {
    on(event: "error" | "timeout", listener: (error: Error) => void): void;
    destroy(error?: Error): void;
    end(body: string): void;
  };
}

interface Globals {
  readonly Deno?: DenoGlobal;
  readonly Bun?: BunGlobal;
  readonly process: ProcessGlobal;
}

// Each runtime has types for its own global only, and other platforms have neither global.
const globals = globalThis as unknown as Globals;

/** `Deno`; `undefined` on other runtimes. */
export const deno: DenoGlobal | undefined = globals.Deno;

/** `Bun`; `undefined` on other runtimes. */
export const bun: BunGlobal | undefined = globals.Bun;

/** `Deno` at this moment. Use it where the answer depends on the platform, so that tests can stand in for one. */
export function findDeno(): DenoGlobal | undefined {
  return globals.Deno;
}

/** `process`. It is not looked up before it is needed, because on Deno that loads the modules behind it. */
export function findProcess(): ProcessGlobal {
  return globals.process;
}

/**
 * Runs `job` once after `ms` milliseconds, and returns a function that cancels it. The timer does not keep the process
 * alive, so use it for housekeeping only: if nothing else keeps the process alive, `job` never runs.
 */
export function startBackgroundTimer(job: () => void, ms: number): () => void {
  // A number in browsers and workerd, where no timer keeps anything alive; an object elsewhere.
  const timer: unknown = setTimeout(job, ms);
  if (deno?.unrefTimer) deno.unrefTimer(timer);
  else if (isUnrefable(timer)) timer.unref();
  return () => clearTimeout(timer as number); // It is what `setTimeout` returned, whatever its type is.
}

function isUnrefable(timer: unknown): timer is { unref(): void } {
  return typeof timer === "object" && timer !== null && "unref" in timer;
}
