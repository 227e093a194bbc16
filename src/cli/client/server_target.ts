/**
 * Finds the server that the operands of a command name: a URL, a file, or a command after `--`.
 *
 * @module
 */
import type { Target } from "../../client/client.ts";
import { guardConsole } from "../../host.ts";
import type { Args } from "../args.ts";
import { toShell } from "../command.ts";
import { chooseEndpoint, enterEndpoint, readParams } from "../endpoint_options.ts";
import { demo } from "../demo.ts";
import { findTarget, load } from "../load.ts";
import { platform } from "../platform.ts";
import { CliError, UsageError } from "../cli_error.ts";

/** A server to connect to. */
export interface ServerTarget {
  readonly target: Target;
  /** How the user named the server. */
  readonly name: string;
  /** The operands after the server. */
  readonly operands: readonly string[];
  /** Closes a server in this process. `undefined` for others. */
  close?(): Promise<void>;
}

/** The time a command has to exit after its standard input was closed, in milliseconds. */
const EXIT_MS = 500;

/**
 * Finds the server. With `isOptional`, the target in the working directory or the demo is the default.
 *
 * @throws {CliError} if no server is named, or it cannot be loaded.
 */
export async function findServer(args: Args, verb: string, isOptional: boolean): Promise<ServerTarget> {
  const { operands: [named, ...operands], rest, all } = args;
  if (rest) return findCommand(args, rest, verb);
  const isUrl = named !== undefined && /^https?:/i.test(named);
  const wrong = ["server", "param"].find((name) => name in args.flags && isUrl);
  if (wrong) throw new UsageError(`Cannot use --${wrong}: it is for a file; write the path of the endpoint in the URL`);
  if (all.env) {
    throw new UsageError(`Cannot use --env: it is for a command that starts a server; write the command after --`);
  }
  if (named === undefined && !isOptional) {
    throw new UsageError(
      `Cannot ${verb} a server: none is named; write its URL, such as http://127.0.0.1:3000/mcp, its file, or its command after --`,
    );
  }
  if (named !== undefined && isUrl) {
    if (!URL.canParse(named)) throw new UsageError(`Cannot ${verb} ${named}: it is not a URL; check its spelling`);
    return { target: named, name: named, operands };
  }
  if (named !== undefined && /^[\w.-]+:\d+(\/|$)/.test(named)) {
    throw new UsageError(`Cannot ${verb} ${named}: it has no scheme; write http:// before it`);
  }
  return await loadServer(named, operands, args, verb);
}

function findCommand({ operands, all }: Args, words: readonly string[], verb: string): ServerTarget {
  const [command, ...args] = words;
  if (!command) {
    const state = command === undefined ? "no command follows --" : "the command after -- is empty";
    throw new UsageError(`Cannot ${verb} a server: ${state}; write the command that starts it`);
  }
  return { target: { command, args, env: readVariables(all.env), exitMs: EXIT_MS }, name: toShell(words), operands };
}

async function loadServer(
  named: string | undefined,
  operands: readonly string[],
  args: Args,
  verb: string,
): Promise<ServerTarget> {
  // Output of the loaded file must not mix with the result on standard output.
  guardConsole();
  const path = named ?? await findTarget();
  const { server } = path === undefined ? { server: demo() } : await load(path);
  const name = path ?? "the demonstration";
  const choice = { target: name, verb };
  const endpoint = chooseEndpoint(server, args.flags.server, choice);
  const target = await enterEndpoint(endpoint, readParams(args), choice);
  return { target, name, operands, close: () => server.close() };
}

/** Reads `--env`: names of variables, or `NAME=VALUE`. */
function readVariables(words: readonly string[] = []): Readonly<Record<string, string>> {
  return Object.fromEntries(words.flatMap((word) => {
    const equals = word.indexOf("=");
    if (equals > 0) return [[word.slice(0, equals), word.slice(equals + 1)]];
    return word.split(",").filter(Boolean).map((name) => {
      const value = /^[A-Za-z_]\w*$/.test(name) ? platform.env(name) : undefined;
      if (value !== undefined) return [name, value];
      throw new CliError(
        `Cannot pass ${name}: the environment has no such variable; set it, or write --env ${name}=VALUE`,
      );
    });
  }));
}
