// A probe whose messages are recorded: over HTTP by a proxy, and over stdio by a program that the client starts.
import { root, toDenoDir } from "../support/processes.ts";
import { startHttpTee } from "./http_tee.ts";
import { toFile, toHttpCommand, toProgram } from "./probe/commands.ts";
import type { ProbeKind } from "./probe/commands.ts";
import { serveProbe } from "./probe/serve_probe.ts";
import type { Tools } from "./tools.ts";
import type { WireEntry } from "./wire.ts";

/** A server, and how a client reaches it. */
export interface Connection {
  readonly probe: ProbeKind;
  readonly transport: "http" | "stdio";
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
export function openServer({ probe, transport }: Connection, options: TeeOptions): Promise<TeedServer> {
  return transport === "http" ? serveOverHttp(probe, options) : prepareStdio(probe, options);
}

async function serveOverHttp(probe: ProbeKind, { tools, folder, toEnv }: TeeOptions): Promise<TeedServer> {
  const stack = new AsyncDisposableStack();
  let origin = "";
  const tee = stack.use(await startHttpTee(() => origin));
  const url = `${tee.origin}/mcp`;
  const env = toEnv?.(url);
  const served = stack.use(await serveProbe(toHttpCommand(probe, tools), { env, log: `${folder}/server.txt` }));
  origin = served.origin;
  return {
    url,
    async entries() {
      await Deno.writeTextFile(`${folder}/wire.jsonl`, tee.entries.map((each) => JSON.stringify(each) + "\n").join(""));
      return tee.entries;
    },
    clear: () => void (tee.entries.length = 0),
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

async function prepareStdio(probe: ProbeKind, { tools, folder }: TeeOptions): Promise<TeedServer> {
  const log = `${folder}/wire.jsonl`;
  const runtime = `${folder}/bin/${probe}`;
  const [command] = toProgram(probe, tools);
  const tee = `${root}tests/clients/stdio_tee.ts`;
  await Deno.mkdir(`${folder}/bin`, { recursive: true });
  const text = `#!/bin/sh\nexport DENO_DIR='${toDenoDir()}'\n` +
    `exec '${tools.deno}' run -A --no-check '${tee}' '${log}' '${command}' "$@"\n`;
  await Deno.writeTextFile(runtime, text, { mode: 0o755 });
  return {
    runtime,
    entries: () => readLines(log),
    clear() {},
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}

/** Returns the command of a server over stdio, with the recording runtime. */
export function toStdioCommand(probe: ProbeKind, runtime: string, tools: Tools): readonly string[] {
  return [runtime, ...toProgram(probe, tools).slice(1), toFile(probe, tools)];
}

async function readLines(path: string): Promise<readonly WireEntry[]> {
  const text = await Deno.readTextFile(path).catch(() => "");
  return text.split("\n").flatMap((line) => line ? [JSON.parse(line)] : []);
}
