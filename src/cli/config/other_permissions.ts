/**
 * Finds the permissions that the connections to other servers require.
 */
import { listInherited } from "../../core/kit/inherited_variables.ts";
import { joinPermissions, type Permissions, toNetAddress } from "../permissions.ts";
import { platform } from "../platform.ts";
import { findSignInInfo } from "../sign_in/sign_in_options.ts";
import { toFolder } from "../../ready/files/path.ts";
import { toTokenPath } from "../sign_in/token_folder.ts";
import { type EntryTexts, toProgram } from "./other_servers.ts";
import type { OtherServer } from "./schema.ts";
import { listVariables } from "./variables.ts";

/** The variables that tell where the user's tokens are. */
const TOKEN_VARIABLES = platform.os === "windows" ? ["APPDATA"] : ["HOME", "XDG_CONFIG_HOME"];

export async function findOtherPermissions(entry: OtherServer, given: EntryTexts): Promise<Permissions> {
  const texts = [entry].flatMap(Object.values).flatMap((value) =>
    typeof value === "object" ? Object.values(value) : value
  );
  const env = texts.flatMap((text) => typeof text === "string" ? listVariables(text) : []);
  if ("command" in entry) {
    return { env: [...env, ...listInherited(platform.os === "windows")], run: [toProgram(entry, given).command] };
  }
  const url = new URL(given.expand(entry.url));
  const headers = Object.keys(entry.headers ?? {}).map((name) => name.toLowerCase());
  const tokens = headers.includes("authorization") ? {} : await findTokenPermissions(url);
  return joinPermissions({ env, net: [toNetAddress(url)] }, tokens);
}

/** Returns the permissions to use and renew the tokens of a server, if the user has signed in. */
async function findTokenPermissions(server: URL): Promise<Permissions> {
  const folder = toTokenPath();
  // The owners of the folder and of its parent are checked.
  const read = { env: TOKEN_VARIABLES, read: [toFolder(folder)], sys: ["uid"] };
  const info = await findSignInInfo({ operands: [], flags: {}, all: {} }, server.href);
  if (!info) return read;
  const { issuer, tokenEndpoint = issuer } = info;
  return { ...read, write: [folder], net: [issuer, tokenEndpoint].map((url) => toNetAddress(new URL(url))) };
}
