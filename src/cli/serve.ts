/**
 * `mcp [target]`: serves a file, a config file, a folder, or a demonstration.
 *
 * @module
 */
import { INTERNALS } from "../core/internals.ts";
import { guardConsole } from "../transports/stdio/stdout_guard.ts";
import { serveStdio } from "../transports/stdio/stdio.ts";
import type { Args } from "./args.ts";
import type { Command } from "./command.ts";
import { platform } from "./platform.ts";
import { findTarget, load, type Loaded } from "./load.ts";
import { importPart } from "./parts.ts";
import { UsageProblem } from "./problem.ts";

/** The command that runs when none is named. */
export const serve: Command = {
  name: "serve",
  summary: "Serve a file that exports a server, a config file, or a folder, over standard input and output or HTTP",
  usage:
    `[serve] [target] [--stdio | --http [--port N] [--host H] [--path P] [--inspect]] [--watch] [-- words for the file]

Without a target ./mcp.jsonc is served, or else ./server.ts, or else a demonstration.

--stdio      serve over standard input and output, as is done if these are no terminal
--http       serve over HTTP, as is done if they are
--watch      load the file or the config file again when it changes; clients stay connected and are told
--port N     the port; 3000 if nothing is said, 0 for any that is free
--host H     the address to listen on; 127.0.0.1 if nothing is said, 0.0.0.0 for all networks
--path P     the path of the endpoint; the server's own (/mcp) if nothing is said
--inspect    serve a page at / too, in which you see the server and try it; on this machine only.
             Without a target, what follows -- is the command of the server that the page shows
--help, --version

For example:
  serve
  server.ts --http --inspect
  --inspect -- npx -y some-server
  mcp.jsonc --watch --http --port 8080`,
  flags: { stdio: false, watch: false, http: false, port: true, host: true, path: true, inspect: false },
  offers: { operands: "files" },
  run: serveTarget,
};

async function serveTarget(args: Args): Promise<void> {
  const { operands, flags, rest } = args;
  const [named, extra] = operands;
  if ("inspect" in flags && named === undefined && rest) {
    return await (await importPart("./inspector/serve.ts")).servePage(args);
  }
  if (extra !== undefined) throw new UsageProblem(`Cannot serve ${extra} beside ${named}: name one file`);
  const isTerminal = await platform.isTerminal();
  const isHttp = !("stdio" in flags) && ("http" in flags || isTerminal);
  const alone = ["port", "host", "path", "inspect", "http"].find((name) => name in flags && !isHttp);
  if (alone) {
    const remedy = "stdio" in flags ? "leave out --stdio" : "add --http";
    throw new UsageProblem(`Cannot use --${alone}: it is about HTTP; ${remedy}`);
  }
  // Clients start a server over standard input and output, and wait for it: load only what that takes.
  const http = isHttp ? await importPart("./serve_http.ts") : undefined;
  const place = http?.readPlace(flags);
  // What the file prints while it is loaded must not come between the messages either.
  if (!isHttp) guardConsole();
  const target = named ?? await findTarget();
  const loaded: Loaded = target === undefined ? await loadDemo() : await load(target);
  const { server } = loaded;
  // Both flags are for people who write a server.
  if ("watch" in flags || "inspect" in flags) await server[INTERNALS].develop();
  if ("watch" in flags) (await importPart("./watch_target.ts")).watchTarget(target, loaded);
  loaded.watch?.();
  const ended = new AbortController();
  let closing = false;
  platform.onSignal((code) => {
    if (closing) platform.exit(code);
    closing = true;
    // A client that ends its server knows that it does.
    if (isHttp || isTerminal) console.error("Ending; calls that run may finish, and another Ctrl-C ends them at once.");
    server.close().then(() => ended.abort());
  });
  if (http && place) {
    const served = await http.serveHttp(server, target, place);
    await new Promise<void>((resolve) => ended.signal.addEventListener("abort", () => resolve()));
    // The last answers are written by now, but not sent. A client that does not read them is not waited for.
    return await Promise.race([served.stop(), new Promise<void>((resolve) => setTimeout(resolve, 1000))]);
  }
  if (isTerminal) console.error((await importPart("./serve_notice.ts")).explainSilence(target));
  await serveStdio(server, { signal: ended.signal });
  await server.close();
}

async function loadDemo(): Promise<Loaded> {
  const { demo } = await importPart("./demo.ts");
  return { server: demo(), files: [] };
}
