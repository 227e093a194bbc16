/**
 * `mcp logout`: deletes the tokens for a server, or for all servers.
 */
import { type Args, rejectRest } from "./args.ts";
import { readTokenKey } from "../core/kit/token_key.ts";
import { UsageError } from "./cli_error.ts";
import { reportLine } from "./client/terminal_output.ts";
import { toLine } from "./client/terminal_text.ts";
import type { Command } from "./command.ts";
import { readServerUrl } from "./sign_in/sign_in_facts.ts";
import { loadSignIn } from "./sign_in/sign_in_options.ts";
import { readSettings } from "./sign_in/sign_in_settings.ts";
import { tokenFolder, toTokenPath } from "./sign_in/token_folder.ts";

export const logout: Command = {
  name: "logout",
  summary: "Delete the tokens for a server, and revoke the tokens if possible",
  usage: ["logout URL", "logout --all"],
  options: {
    all: { text: "Delete the tokens for all servers, and this client's registrations at authorization servers" },
  },
  examples: ["logout https://mcp.example.com/mcp", "logout --all"],
  run: signOutUser,
};

async function signOutUser(args: Args): Promise<number> {
  rejectRest(args, "logout");
  const folder = tokenFolder(toTokenPath());
  const auth = await loadSignIn(readSettings(args), {});
  if (!("all" in args.flags)) {
    const url = readServerUrl(args.operands, "sign out of");
    reportLine(await auth.signOut(url) ? `You are signed out of ${url}.` : `There were no tokens for ${url}.`);
    return 0;
  }
  if (args.operands.length) {
    throw new UsageError(
      `Cannot sign out of ${args.operands[0]} only: --all deletes the tokens for all servers; remove the URL or --all`,
    );
  }
  const keys = await folder.keys();
  for (const key of keys) {
    const url = readTokenKey(key);
    if (url !== undefined && await auth.signOut(url)) reportLine(`You are signed out of ${toLine(url, 500)}.`);
    await folder.update(key, () => Promise.resolve(undefined));
  }
  if (!keys.length) reportLine("There were no tokens.");
  return 0;
}
