/**
 * Makes the handlers of other servers, which a config file or the configuration of a client lists.
 */
import type { Handler } from "../../library.ts";
import { importModule } from "../lazy_modules.ts";
import { createStoredAuth } from "../sign_in/sign_in_options.ts";
import type { OtherServer } from "./schema.ts";

export interface OtherServerParts {
  /** Replaces the environment variables in a text. */
  readonly expand: (text: string) => string;
  /** Resolves the working directory of a program. */
  readonly resolveCwd: (path: string) => string;
  /** Whether the server is served over HTTP, where all clients belong to one user. */
  readonly isHttp: boolean;
}

/** @throws {TypeError} if an option is invalid. */
export async function toProxy(name: string, entry: OtherServer, parts: OtherServerParts): Promise<Handler> {
  const { proxy } = await importModule<typeof import("../../proxy/proxy.ts")>("../proxy/proxy.ts");
  const { prefix = `${name}_`, share = parts.isHttp ? "all" : undefined, tools, tags, timeoutMs, listMs } = entry;
  const { forward, instructions, required } = entry;
  const options = { name, prefix, share, tools, tags, timeoutMs, listMs, forward, instructions, required };
  if ("command" in entry) {
    const target = {
      command: parts.expand(entry.command),
      args: entry.args?.map(parts.expand),
      env: mapValues(entry.env, parts.expand),
      cwd: parts.resolveCwd(parts.expand(entry.cwd ?? "")),
    };
    return proxy(target, options);
  }
  const headers = mapValues(entry.headers, parts.expand);
  const url = parts.expand(entry.url);
  return proxy(url, { ...options, headers, auth: createStoredAuth(url, headers) });
}

function mapValues(values: Readonly<Record<string, string>> = {}, map: (text: string) => string) {
  return Object.fromEntries(Object.entries(values).map(([name, text]) => [name, map(text)]));
}
