/**
 * `mcp login`: signs the user in to a server, and stores the tokens for later commands.
 */
import type { Args } from "./args.ts";
import { rejectRest } from "./args.ts";
import { UsageError } from "./cli_error.ts";
import { withServerSession } from "./client/server_session.ts";
import { SERVER_OPTIONS } from "./client/server_options.ts";
import { reportLine, writeJson } from "./client/terminal_output.ts";
import type { Command } from "./command.ts";
import { loadSignIn, SIGN_IN_OPTIONS } from "./sign_in/sign_in_options.ts";
import { CLIENT_NAME, readSettings } from "./sign_in/sign_in_settings.ts";
import { readServerUrl, toFactLines } from "./sign_in/sign_in_facts.ts";

export const login: Command = {
  name: "login",
  summary: "Sign in to a server over HTTP",
  usage: ["login [OPTIONS] URL", "login --print-client-metadata [--client-metadata URL] [--redirect-port PORT]"],
  description: [
    "The command opens the browser, or prints a link. Without a browser on this machine, open the link on another " +
    "machine, and paste the address of the last page. Later commands use and renew the tokens. Other commands also " +
    "sign in when necessary.",
    "With --print-client-metadata, the command prints the metadata document of this client. Host the document at " +
    "the URL of --client-metadata.",
  ],
  options: {
    ...SIGN_IN_OPTIONS,
    scope: {
      value: "SCOPE",
      isRepeatable: true,
      text: "Scope to request in addition to the scopes that the server names; may be repeated",
    },
    "print-client-metadata": { text: "Print the metadata document of this client" },
    timeout: SERVER_OPTIONS.timeout,
  },
  examples: [
    "login https://mcp.example.com/mcp",
    "login https://mcp.example.com/mcp --client-id 7f3a --redirect-port 8765",
    "login --print-client-metadata --client-metadata https://example.com/mcp-client.json",
  ],
  exitCodes: { 1: "The server or its authorization server rejected the sign-in", 130: "Stopped with Ctrl-C" },
  run: signInUser,
};

async function signInUser(args: Args): Promise<number> {
  rejectRest(args, "login");
  const settings = readSettings(args);
  if ("print-client-metadata" in args.flags) {
    if (args.operands.length) {
      throw new UsageError(
        `Cannot print client metadata for ${args.operands[0]}: the metadata is for all servers; remove the URL`,
      );
    }
    await writeJson(toClientMetadata(settings.clientMetadataUrl, settings.port));
    return 0;
  }
  const url = readServerUrl(args.operands, "sign in to");
  const auth = await loadSignIn(settings, { isForced: true });
  await auth.signOut(url);
  return await withServerSession(args, { verb: "sign in to", isForced: true }, async () => {
    const info = await auth.info(url);
    if (!info) reportLine(`${url} requires no sign-in.`);
    for (const line of info ? toFactLines(info) : []) reportLine(line);
    return 0;
  });
}

/** Returns the client metadata document. Authorization servers load the document from the URL that is the client id. */
function toClientMetadata(url = "https://example.com/mcp-client.json", port?: number): Record<string, unknown> {
  return {
    client_id: url,
    client_name: CLIENT_NAME,
    redirect_uris: [`http://127.0.0.1${port === undefined ? "" : `:${port}`}/callback`],
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    token_endpoint_auth_method: "none",
    application_type: "native",
  };
}
