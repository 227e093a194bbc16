/**
 * Entries of Codex, which has no references to variables within values. It names variables in keys of their own.
 *
 * @module
 */
import { CliError } from "../cli_error.ts";
import type { HttpServer, StdioServer } from "./installed_server.ts";

const REFERENCE = /^\$\{(\w+)\}$/;

/** The entry of a server that Codex starts. */
export function toCodexStdioEntry({ command, args, env = {} }: StdioServer): object {
  const entries = Object.entries(env);
  const inherited = entries.filter(([name, value]) => findVariable(value) === name).map(([name]) => name);
  const literal = entries.filter(([name]) => !inherited.includes(name));
  return {
    ...{ command, args },
    ...inherited.length && { env_vars: inherited },
    ...literal.length && { env: Object.fromEntries(literal) },
  };
}

/** The entry of a server at a URL. */
export function toCodexHttpEntry({ url, headers = {} }: HttpServer): object {
  const entries = Object.entries(headers);
  const authorization = entries.find(([name]) => name === "authorization")?.[1];
  const token = /^Bearer \$\{(\w+)\}$/i.exec(authorization ?? "")?.[1];
  const others = entries.filter(([name]) => token === undefined || name !== "authorization");
  const references = others.flatMap(([name, value]) => {
    const variable = findVariable(value);
    return variable === undefined ? [] : [[name, variable]];
  });
  const literal = others.filter(([, value]) => findVariable(value) === undefined);
  const mixed = literal.find(([, value]) => /\$\{\w+\}/.test(value));
  if (mixed) {
    throw new CliError(
      `Cannot install ${url}: in Codex a variable is the whole value of a header, or follows "Bearer "; ` +
        `write the header ${mixed[0]} that way`,
    );
  }
  return {
    url,
    ...token !== undefined && { bearer_token_env_var: token },
    ...references.length && { env_http_headers: Object.fromEntries(references) },
    ...literal.length && { http_headers: Object.fromEntries(literal) },
  };
}

/** The variable that a value consists of. Returns `undefined` for any other value. */
function findVariable(value: string): string | undefined {
  return REFERENCE.exec(value)?.[1];
}
