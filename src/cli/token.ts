/**
 * `mcp token`: shows the facts about a sign-in.
 */
import { type Args, rejectRest } from "./args.ts";
import { CliError } from "./cli_error.ts";
import { writeJson, writeLine } from "./client/terminal_output.ts";
import type { Command } from "./command.ts";
import { readServerUrl, toFactLines } from "./sign_in/sign_in_facts.ts";
import { loadSignIn } from "./sign_in/sign_in_options.ts";
import { readSettings } from "./sign_in/sign_in_settings.ts";

export const token: Command = {
  name: "token",
  summary: "Show the issuer, the scopes and the expiry of your token for a server",
  usage: ["token [OPTIONS] URL"],
  description: [
    "Without --show, the command does not print the token itself. It renews a token that is about to expire.",
  ],
  options: {
    show: { text: "Print only the token" },
    json: { text: "Print one JSON document" },
  },
  examples: ["token https://mcp.example.com/mcp", "token https://mcp.example.com/mcp --show"],
  exitCodes: { 1: "The authorization server did not renew the token" },
  run: showToken,
};

async function showToken(args: Args): Promise<number> {
  rejectRest(args, "token");
  const url = readServerUrl(args.operands, "show the token of");
  const auth = await loadSignIn(readSettings(args), {});
  const info = await auth.info(url);
  if (!info) throw new CliError(`Cannot show the token of ${url}: there is no token; sign in with mcp login ${url}`);
  if ("show" in args.flags) {
    const held = await auth.token({ url, method: "POST" });
    await writeLine(typeof held === "object" ? held.token : held ?? "");
    return 0;
  }
  if ("json" in args.flags) await writeJson(info);
  else for (const line of toFactLines(info)) await writeLine(line);
  return 0;
}
