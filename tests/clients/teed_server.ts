// A probe whose messages are recorded: over HTTP by a proxy, and over stdio by a program that the client starts.
import { root, toDenoDir } from "../support/processes.ts";
import { startHttpTee } from "./http_tee.ts";
import { type GatewayOption, prepareGateway } from "./own_gateway.ts";
import { toFile, toHttpCommand, toProgram } from "./probe/commands.ts";
import type { ProbeKind } from "./probe/commands.ts";
import { serveProbe } from "./probe/serve_probe.ts";
import type { Tools } from "./tools.ts";
import type { WireEntry } from "./wire.ts";

/** A server, and how a client reaches it. */
export interface Connection {
  readonly probe: ProbeKind;
  readonly transport: "http" | "stdio";
  /** The options of `mcp gateway`, which is in front of two probes. Defaults to no gateway. */
  readonly gateway?: readonly GatewayOption[];
}

/** Returns a name of a connection for folders and reports. */
export function toName({ probe, transport, gateway }: Connection): string {
  return [gateway ? "gateway" : probe, ...gateway ?? [], transport].join("-");
}

/** A server, and the messages so far. */
export interface TeedServer extends AsyncDisposable {
  /** The URL of a server over HTTP. */
  readonly url?: string;
  /** A program that starts the runtime of a server over stdio. It takes the arguments of the runtime. */
  readonly runtime?: string;
  /** Returns the messages, and writes them into the folder. */
  entries(): Promise<readonly WireEntry[]>;
  /** Forgets the messages so far, such as the messages of `mcp install`. */
  clear(): void;
  /** Starts the process of a server over HTTP again, at the same URL. */
  restart(): Promise<void>;
}

/** Options of {@linkcode openServer}. */
export interface TeeOptions {
  readonly tools: Tools;
  /** The folder for logs. */
  readonly folder: string;
  /** Environment variables of a server over HTTP. The function gets the URL of the server. */
  readonly toEnv?: (url: string) => Readonly<Record<string, string>>;
}

/** Starts the server of a connection. Over stdio, the client starts it. */
export async function openServer(connection: Connection, options: TeeOptions): Promise<TeedServer> {
  const { probe, transport, gateway } = connection;
  const { tools } = options;
  if (gateway) return await openGateway(transport, gateway, options);
  if (transport === "http") return await serveOverHttp(toHttpCommand(probe, tools), options);
  return await prepareStdio(probe, [...toProgram(probe, tools).slice(0, 1), ...PASSED_ON], options);
}

async function openGateway(
  transport: Connection["transport"],
  gateway: readonly GatewayOption[],
  options: TeeOptions,
): Promise<TeedServer> {
  await using stack = new AsyncDisposableStack();
  const { words } = stack.use(await prepareGateway(gateway, options));
  const server = stack.use(
    transport === "http"
      ? await serveOverHttp([...words, "--http", "--port", "PORT"], options)
      : await prepareStdio("deno", words, options),
  );
  const all = stack.move();
  return { ...server, [Symbol.asyncDispose]: () => all.disposeAsync() };
}

async function serveOverHttp(
  words: readonly string[],
  { folder, toEnv }: TeeOptions,
): Promise<TeedServer> {
  const stack = new AsyncDisposableStack();
  let origin = "";
  const tee = stack.use(await startHttpTee(() => origin));
  const url = `${tee.origin}/mcp`;
  const start = () => serveProbe(words, { env: toEnv?.(url), log: `${folder}/server.txt` });
  let served = await start();
  stack.defer(() => served[Symbol.asyncDispose]());
  origin = served.origin;
  return {
    url,
    async restart() {
      await served[Symbol.asyncDispose]();
      served = await start();
      origin = served.origin;
    },
    async entries() {
      await Deno.writeTextFile(`${folder}/wire.jsonl`, tee.entries.map((each) => JSON.stringify(each) + "\n").join(""));
      return tee.entries;
    },
    clear: () => void (tee.entries.length = 0),
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

/** Stands for the arguments with which a client starts the runtime. */
const PASSED_ON = ['"$@"'];

/** Writes a program named `name` that runs a command. */
async function prepareStdio(
  name: string,
  words: readonly string[],
  { tools, folder }: TeeOptions,
): Promise<TeedServer> {
  const log = `${folder}/wire.jsonl`;
  const runtime = `${folder}/bin/${name}`;
  const tee = `${root}tests/clients/stdio_tee.ts`;
  await Deno.mkdir(`${folder}/bin`, { recursive: true });
  const text = `#!/bin/sh\nexport DENO_DIR='${toDenoDir()}'\n` +
    `exec '${tools.deno}' run -A --no-check '${tee}' '${log}' ${words.map(toShellWord).join(" ")}\n`;
  await Deno.writeTextFile(runtime, text, { mode: 0o755 });
  return {
    runtime,
    entries: () => readLines(log),
    clear() {},
    restart: () => Promise.reject(new Error("Cannot restart a server that the client starts")),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}

function toShellWord(word: string): string {
  return PASSED_ON.includes(word) ? word : `'${word}'`;
}

/** Returns the command of a server over stdio, with the recording runtime. */
export function toStdioCommand(probe: ProbeKind, runtime: string, tools: Tools): readonly string[] {
  return [runtime, ...toProgram(probe, tools).slice(1), toFile(probe, tools)];
}

async function readLines(path: string): Promise<readonly WireEntry[]> {
  const text = await Deno.readTextFile(path).catch(() => "");
  return text.split("\n").flatMap((line) => line ? [JSON.parse(line)] : []);
}
