/**
 * The options of commands that sign in, and the token source that these commands use.
 */
import type { ClientAuth } from "../../client/client.ts";
import type { SignIn, SignInInfo } from "../../client/oauth/oauth.ts";
import { toTokenKey } from "../../core/kit/token_key.ts";
import type { Args } from "../args.ts";
import type { Options } from "../command.ts";
import type { AskPage } from "./page_user_agent.ts";
import { importModule } from "../lazy_modules.ts";
import { readSettings, SIGN_IN_MS, type SignInSettings } from "./sign_in_settings.ts";

export const SIGN_IN_DESCRIPTION =
  "If the server requires a sign-in, the command opens the browser or prints a link. It stores the tokens for later " +
  "commands; see the login, logout and token commands.";

export const SIGN_IN_OPTIONS: Options = {
  "client-id": { value: "ID", text: "ID of a client that you have registered with the authorization server" },
  "client-env": { value: "NAME", text: "Environment variable that contains the client's secret" },
  "issuer": {
    value: "URL",
    text: "Only authorization server at which to use the client; required with --client-env",
  },
  "client-metadata": { value: "URL", text: "URL of your client's metadata document" },
  "resource": {
    value: "URL",
    text: "Resource that contains the server, if the server's metadata names it and you trust all its servers",
  },
  "redirect-port": {
    value: "PORT",
    text: "Port on this machine to which the browser returns (default: any free port)",
  },
  "no-browser": { text: "Print the sign-in link instead of opening the browser" },
};

/** Options that a command sets in addition to the options on the command line. */
export interface CommandAuthOptions {
  /** Runs work that waits for the user. The time of the work does not count towards the timeout. */
  readonly pauseWhile?: <T>(work: () => Promise<T>) => Promise<T>;
  /** Whether to sign in even if standard error is not a terminal. */
  readonly isForced?: boolean;
  /** Asks the user of the inspector's page instead of the user of the terminal. */
  readonly askPage?: AskPage;
  /** The URL of the server, for a command that uses stored tokens only. The error names the command that signs in. */
  readonly storedFor?: string;
}

/**
 * Creates the token source for a command. Returns `undefined` with `--header authorization=…`. The code is loaded only
 * if a server requires a token, or if there are stored tokens for the server.
 */
export function createAuth(
  args: Args,
  headers: Readonly<Record<string, string>>,
  options: CommandAuthOptions = {},
): ClientAuth | undefined {
  if (Object.keys(headers).some((name) => name.toLowerCase() === "authorization")) return;
  const settings = readSettings(args);
  let loading: Promise<ClientAuth> | undefined;
  const load = () => loading ??= loadSignIn(settings, options);
  const { pauseWhile = (work) => work(), storedFor } = options;
  return {
    async token(request) {
      const isNeeded = loading !== undefined || await hasTokens(request.url);
      return isNeeded ? await (await load()).token(request) : undefined;
    },
    refresh: async (challenge, context) => {
      // Without tokens, a sign-in would need hosts that the command may not reach.
      if (storedFor !== undefined && !await hasTokens(storedFor)) throw await refuse(storedFor);
      const auth = await load();
      return await pauseWhile(async () => await auth.refresh?.(challenge, context) ?? false);
    },
    refreshMs: SIGN_IN_MS,
  };
}

async function refuse(server: string): Promise<Error> {
  const { refuseSignIn } = await importModule<typeof import("./terminal_user_agent.ts")>(
    "./sign_in/terminal_user_agent.ts",
  );
  return refuseSignIn({ server, scopes: [] });
}

/** Creates the token source of a command that never signs in, because nobody may be at the terminal. */
export function createStoredAuth(url: string, headers: Readonly<Record<string, string>>): ClientAuth | undefined {
  return createAuth({ operands: [], flags: {}, all: {} }, headers, { storedFor: url });
}

/** Returns the facts about the sign-in to a server. Returns `undefined` if there are no tokens for the server. */
export async function findSignInInfo(args: Args, server: string): Promise<SignInInfo | undefined> {
  return await hasTokens(server) ? await (await loadSignIn(readSettings(args), {})).info(server) : undefined;
}

async function hasTokens(server: string): Promise<boolean> {
  const { tokenFolder, toTokenPath } = await loadFolder();
  try {
    return await tokenFolder(toTokenPath()).has(toTokenKey(server));
  } catch {
    // Without a home folder, there are no tokens. A missing permission is reported when a server requires a token.
    return false;
  }
}

function loadFolder(): Promise<typeof import("./token_folder.ts")> {
  return importModule<typeof import("./token_folder.ts")>("./sign_in/token_folder.ts");
}

export async function loadSignIn(
  settings: SignInSettings,
  { isForced = false, askPage, storedFor }: CommandAuthOptions,
): Promise<SignIn> {
  const { createSignIn } = await importModule<typeof import("./command_sign_in.ts")>("./sign_in/command_sign_in.ts");
  return createSignIn(settings, { isForced, askPage, storedFor });
}
