/**
 * Signs in the user of a terminal. Opens the browser, or prints a link and reads the redirect URL that the user pastes.
 */
import { loopback, type SignInPage, type UserAgent } from "../../client/oauth/oauth.ts";
import { toLine, toPlain } from "../client/terminal_text.ts";
import { canPrompt, reportLine } from "../client/terminal_output.ts";
import { promptLine } from "../client/terminal_input.ts";
import { CliError } from "../cli_error.ts";
import { toShell } from "../command.ts";
import { platform } from "../platform.ts";
import { openBrowser } from "./browser.ts";

export interface TerminalUserAgentOptions {
  /** The port on this machine to which the authorization server redirects the browser. */
  readonly port?: number;
  /** Whether to open a browser. */
  readonly opens: boolean;
  /** Whether to sign in even if standard error is not a terminal. */
  readonly isForced: boolean;
}

export function terminalUserAgent({ port, opens, isForced }: TerminalUserAgentOptions): UserAgent {
  return async (start) => {
    const shown = Promise.withResolvers<void>();
    const open = async (page: SignInPage) => {
      await showPage(page, opens);
      shown.resolve();
    };
    const attempt = await loopback({ port, open })(start);
    return {
      redirectUri: attempt.redirectUri,
      async visit(page, { signal }) {
        if (!isForced && !platform.terminal.isAt("errors")) {
          throw refuseSignIn(page);
        }
        const stop = new AbortController();
        const either = AbortSignal.any([signal, stop.signal]);
        const pasted = canPrompt() ? [shown.promise.then(() => readPasted(attempt.redirectUri, either))] : [];
        try {
          return await Promise.race([attempt.visit(page, { signal }), ...pasted]);
        } finally {
          stop.abort();
          if (pasted.length) reportLine("");
        }
      },
      async end(error) {
        if (error === undefined) reportLine("You are signed in.");
        await attempt.end(error);
      },
    };
  };
}

export function refuseSignIn({ server, scopes }: Pick<SignInPage, "server" | "scopes">): CliError {
  const words = scopes.filter((scope) => scope !== "offline_access").flatMap((scope) => ["--scope", scope]);
  const command = toShell(["mcp", "login", server, ...words]);
  return new CliError(`Cannot sign in to ${server}: there is no terminal; run ${command} in a terminal first`);
}

async function showPage({ url, server, issuer, pageHost, scopes }: SignInPage, opens: boolean): Promise<void> {
  const asked = scopes.length ? ` (${toLine(scopes.join(", "), 500)})` : "";
  reportLine(`${toLine(server, 500)} asks you to sign in at ${toLine(issuer, 500)}${asked}.`);
  if (pageHost !== undefined) {
    reportLine(
      `The sign-in page is at ${
        toLine(pageHost, 500)
      }, which is another host. Sign in only if you know that both belong ` +
        "together.",
    );
  }
  const isOpen = opens && await openBrowser(url);
  reportLine(`${isOpen ? "If no browser opens, open" : "Open"} this page:\n  ${toPlain(url)}`);
}

/** Reads the redirect URL from the terminal, for users whose browser runs on another machine. */
async function readPasted(redirectUri: string, signal: AbortSignal): Promise<string> {
  for (;;) {
    const prompt =
      "Waiting for the browser. If the browser cannot load the last page, paste the address of that page here: ";
    const line = await promptLine(prompt, signal).catch((error) => signal.aborted ? undefined : Promise.reject(error));
    // Wait forever at the end of the input, because the response can then arrive only through the browser.
    if (line === undefined) return await new Promise(() => {});
    if (line.startsWith(`${redirectUri}?`)) return line;
    if (line) reportLine(`This address is not correct; the correct address begins with ${redirectUri}?`);
  }
}
