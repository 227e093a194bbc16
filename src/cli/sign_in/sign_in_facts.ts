/**
 * Formats the facts about a sign-in for several commands, and reads the server URL from their operands.
 */
import type { SignInInfo } from "../../client/oauth/oauth.ts";
import { rejectSecond } from "../args.ts";
import { UsageError } from "../cli_error.ts";
import { terminalWidth } from "../client/terminal_output.ts";
import { toLine, toTable } from "../client/terminal_text.ts";

/** @throws {UsageError} unless the only operand is a URL. */
export function readServerUrl(operands: readonly string[], verb: string): string {
  const [url] = operands;
  if (url === undefined) {
    throw new UsageError(
      `Cannot ${verb} a server: no URL is given; write the server's URL, such as https://mcp.example.com/mcp`,
    );
  }
  rejectSecond(operands, { verb, limit: "the command takes one URL" });
  if (/^https?:/i.test(url) && URL.canParse(url)) return url;
  throw new UsageError(
    `Cannot ${verb} ${url}: it is not a URL; name the URL of a server, because only servers over HTTP have tokens`,
  );
}

/** Describes a sign-in in several lines. The lines do not contain the token. */
export function toFactLines(
  { server, issuer, clientId, scopes, expiresAt, canRefresh }: SignInInfo,
): readonly string[] {
  const lines = [
    ["Server", server],
    ["Authorization server", issuer],
    ["Client", clientId],
    ["Scopes", scopes.join(" ") || "chosen by the authorization server"],
    ["Expires", expiresAt === undefined ? "unknown" : toTime(expiresAt)],
    ["Renewed without you", canRefresh ? "yes" : "no"],
  ];
  const rows = lines.map((line) => line.map((text) => toLine(text, 500)));
  return toTable(rows, { indent: 0, width: terminalWidth() });
}

function toTime(at: number): string {
  const seconds = Math.round((at - Date.now()) / 1000);
  const [count, unit] = Math.abs(seconds) < 120 ? [seconds, "s"] : [Math.round(seconds / 60), "min"];
  return `${new Date(at).toISOString()} (${count < 0 ? `${-count} ${unit} ago` : `in ${count} ${unit}`})`;
}
