/**
 * Serves the inspector for another server, or for a command that starts a server.
 */
import { deadline } from "../../core/kit/deadline.ts";
import { toState } from "../../core/kit/error_state.ts";
import type { Args } from "../args.ts";
import { toShell } from "../command.ts";
import { readHeaders } from "../header_flags.ts";
import { platform } from "../platform.ts";
import { CliError } from "../cli_error.ts";
import { readHttpAddress } from "../serve_http.ts";
import { createInspector, PAGE_PATH, startSandbox } from "./inspector.ts";
import type { NamedServer } from "./relay.ts";

/**
 * Serves the inspector until the user stops it.
 *
 * @throws {CliError} if no server is named, or if the port cannot be used.
 */
export async function servePage(args: Args): Promise<void> {
  const { operands, flags, all, rest } = args;
  const extra = ["stdio", "watch", "path", "json", "timeout", "revision"].find((name) => name in flags);
  if (extra) {
    throw new CliError(
      `Cannot use --${extra} with the inspector page: the page does not support this option; remove --${extra}`,
    );
  }
  const server = { ...readServer(operands, rest, readHeaders(all.header)), args };
  const { hostname, port } = readHttpAddress({ ...flags, port: flags.port ?? "0", inspect: "" });
  const inspector = await createInspector({ server, sandbox: await startSandbox() });
  const fetch = async (request: Request, info: object) =>
    await inspector.respond(request, info) ?? new Response("Not found\n", { status: 404 });
  let served;
  try {
    served = await platform.serve({ hostname, port, fetch });
  } catch (error) {
    await inspector.close();
    throw new CliError(
      `Cannot serve the inspector on port ${port}: ${toState(error)}; choose another port with --port`,
    );
  }
  console.error(`Inspecting ${server.name}. Try the server in a browser:
  http://127.0.0.1:${served.port}${PAGE_PATH}#key=${inspector.key}

Keep the key in the address secret: with the key, the page connects to servers from this machine.
Ctrl-C stops the inspector.`);
  const ended = Promise.withResolvers<void>();
  platform.onSignal(() => ended.resolve());
  await ended.promise;
  await inspector.close();
  await deadline(served.stop(), { ms: 1000, onTimeout: () => {} });
}

function readServer(
  [named, extra]: readonly string[],
  rest: readonly string[] | undefined,
  headers: Readonly<Record<string, string>>,
): NamedServer {
  if (rest) {
    const [command, ...args] = rest;
    if (command === undefined) {
      throw new CliError(
        "Cannot inspect a server: no command follows --; write the command that starts the server",
      );
    }
    if (named !== undefined) {
      throw new CliError(
        `Cannot inspect ${named} too: name one server, or one command after --`,
      );
    }
    if (Object.keys(headers).length) {
      throw new CliError(`Cannot send headers to ${toShell(rest)}: headers are only for a URL; remove --header`);
    }
    return { name: toShell(rest), target: { command, args, exitMs: 500 } };
  }
  if (extra !== undefined) throw new CliError(`Cannot inspect ${extra} too: name one server, or one command after --`);
  if (named === undefined || !/^https?:/i.test(named) || !URL.canParse(named)) {
    const state = "--page requires a URL, or a command after --; for a file, use serve FILE --http --inspect";
    throw new CliError(`Cannot open the page for ${named ?? "no server"}: ${state}`);
  }
  return { name: named, target: named, headers };
}
