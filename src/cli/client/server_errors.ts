/**
 * Converts client errors to messages that name the server and a remedy.
 */
import { toMessage, toState } from "../../core/kit/error_state.ts";
import { McpError } from "../../client/client.ts";
import { INSUFFICIENT_SCOPE, INVALID_REQUEST, UNAUTHENTICATED } from "../protocol.ts";
import { readFailure } from "../../core/kit/failure.ts";
import { isObject } from "../../core/kit/json.ts";
import { CliError, ServerError } from "../cli_error.ts";
import { type ConnectionProblem, explainConnectionError } from "../connection_errors.ts";
import { explainPermission } from "../permissions.ts";
import { toLine, toPlain } from "./terminal_text.ts";

/** Converts a client error to an error about the server `name`. Returns any other value unchanged. */
export function toServerError(error: unknown, name: string): unknown {
  if (error instanceof CliError || !(error instanceof Error)) return error;
  const message = toState(toPlain(error.message).slice(0, 2000));
  if (error instanceof McpError) {
    const code = error.code ? ` (${error.code})` : "";
    return new ServerError(`Cannot use ${name}: ${message}${code}${toRemedy(error, name)}${toErrorIdHint(error)}`);
  }
  if (error.name === "SignInError") return new ServerError(message);
  const problem = findConnectionProblem(error);
  if (problem) return new CliError(toPlain(`Cannot reach ${problem.url}: ${problem.state}; ${problem.remedy}`));
  const failure = readFailure(error);
  if (failure?.kind === "not-started") {
    const reason = toMessage(error.cause);
    const state = explainPermission(reason) ?? `${toState(reason)}; check the command`;
    return new CliError(toPlain(`Cannot start ${failure.command}: ${state}`).slice(0, 2000));
  }
  if (error.name === "TimeoutError") {
    return new ServerError(`Cannot use ${name}: ${message}; allow more time with --timeout`);
  }
  return new ServerError(`Cannot use ${name}: ${message}${toGeneralRemedy(error, name)}`);
}

function toGeneralRemedy(error: Error, name: string): string {
  if (readFailure(error)?.kind === "exited") return "; check that the command starts an MCP server on stdio";
  // The messages of these errors contain remedies.
  if (error.name === "RedirectError" || error instanceof TypeError) return "";
  return /^https?:/i.test(name) ? "; run mcp doctor to examine the server" : "";
}

/** Explains why a URL cannot be reached. Returns `undefined` if the error has another cause. */
export function findConnectionProblem(error: Error): ConnectionProblem & { readonly url: string } | undefined {
  const failure = readFailure(error);
  if (failure?.kind !== "unreachable") return;
  return { url: failure.url, ...explainConnectionError(error.cause ?? error, failure.url) };
}

/** The operator can find an unexpected error in the server's log by its id. */
function toErrorIdHint({ data }: McpError): string {
  const id = isObject(data) && typeof data.errorId === "string" ? toLine(data.errorId, 100) : "";
  return id && `; the server's log has the details under the error id ${id}`;
}

/** Servers built with this library name their endpoint in the error for a wrong path. */
export function findEndpoint({ status, data }: McpError, url: string): string | undefined {
  const path = (status === 404 || status === 405) && isObject(data) ? data.endpoint : undefined;
  const isPath = typeof path === "string" && /^\/[\w./-]*$/.test(path);
  return isPath && URL.canParse(url) ? new URL(url).origin + path : undefined;
}

function toRemedy(error: McpError, name: string): string {
  const { code, status } = error;
  const endpoint = findEndpoint(error, name);
  if (endpoint !== undefined) return `; use ${endpoint}`;
  if (code === UNAUTHENTICATED && !/^https?:/i.test(name)) {
    return "; serve the file over HTTP, and use the server's URL with --header";
  }
  if (code === INSUFFICIENT_SCOPE) return "; use credentials with these scopes";
  if (status === 401) return `; authenticate with --header authorization="Bearer …"`;
  // Servers of this library name the remedy, which may be another host instead of credentials.
  if (status === 403) return code === INVALID_REQUEST ? "" : "; use credentials that allow this request";
  if (status === 429) return "; retry later, or raise the server's limit";
  if (status !== undefined && status >= 500) return toErrorIdHint(error) ? "" : "; check the server's log";
  const hasRemedy = readFailure(error)?.kind === "not-mcp";
  return code === 0 && status !== undefined && !hasRemedy ? "; check the path" : "";
}
