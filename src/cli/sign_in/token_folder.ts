/**
 * Stores tokens in files in the user's configuration folder. Several processes may use the folder at the same time.
 */
import { delay } from "../../core/kit/deadline.ts";
import type { TokenStore } from "../../client/oauth/oauth.ts";
import { ignoreNotFound } from "../../ready/files/local_files.ts";
import { toFolder } from "../../ready/files/path.ts";
import { CliError } from "../cli_error.ts";
import { toShell } from "../command.ts";
import { isObject } from "../../core/kit/json.ts";
import { platform } from "../platform.ts";
import { isCreated } from "../platform_files.ts";
import { reportLine } from "../client/terminal_output.ts";

const { files } = platform;

const MAX_BYTES = 1024 * 1024;
/** Number of times that a process renews a lock within `DEAD_MS`. */
const BEATS = 5;
/** Milliseconds after which a lock expires unless it was renewed. */
const DEAD_MS = 10_000;
/** Milliseconds between two attempts to take a lock. */
const RETRY_MS = 50;
/** Milliseconds to wait for a lock, because its holder may be waiting for an authorization server. */
const WAIT_MS = 180_000;
/** The permission bits for all users except the owner. */
const OTHERS = 0o077;
/** The permission bits with which other users can add, replace and remove the files of a folder. */
const OTHERS_WRITE = 0o022;
/** The permission bit of a folder in which users can replace and remove only their own files, such as `/tmp`. */
const STICKY = 0o1000;

export interface TokenFolder extends TokenStore {
  /** Whether the folder contains a file for a key. Does not read the file. */
  readonly has: (key: string) => Promise<boolean>;
  readonly keys: () => Promise<readonly string[]>;
}

/** @throws {CliError} if the environment does not contain the user's home folder. */
export function toTokenPath(): string {
  const { os, env } = platform;
  const home = () => env("HOME") || fail("HOME");
  if (os === "windows") return platform.toPath(`${env("APPDATA") || fail("APPDATA")}/mcp/tokens`);
  if (os === "darwin") return platform.toPath(`${home()}/Library/Application Support/mcp/tokens`);
  return platform.toPath(`${env("XDG_CONFIG_HOME") || `${home()}/.config`}/mcp/tokens`);
}

function fail(variable: string): never {
  throw new CliError(
    `Cannot find the folder for tokens: the environment variable ${variable} is not set; set ${variable}`,
  );
}

/** Opens a folder for tokens. The first write creates the folder, which only its owner can read. */
export function tokenFolder(path: string, { deadMs = DEAD_MS } = {}): TokenFolder {
  const toFile = async (key: string) => `${path}/${await toName(key)}.json`;
  return {
    async get(key) {
      await checkFolder(path);
      return await readValue(await toFile(key), key);
    },
    async update(key, change) {
      await checkFolder(path);
      await files.makeFolder(path, 0o700);
      const file = await toFile(key);
      const unlock = await lock(`${file}.lock`, deadMs);
      try {
        const current = await readValue(file, key);
        const next = await change(current);
        if (next === undefined) await removeFile(file);
        else if (next !== current) await files.replace(file, JSON.stringify({ key, value: next }));
        return next;
      } finally {
        await unlock();
      }
    },
    has: async (key) => await files.lstat(await toFile(key)) !== undefined,
    async keys() {
      await checkFolder(path);
      const found = await Promise.all((await listFiles(path)).map((name) => readFile(`${path}/${name}`)));
      return found.flatMap((entry) => entry?.key ?? []);
    },
  };
}

/** The name is a hash, so that it does not reveal the server's URL, and cannot lead out of the folder. */
async function toName(key: string): Promise<string> {
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(key)));
  return [...hash.subarray(0, 16)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * Checks that no other user can replace a file in the folder, or the folder itself. Another user could otherwise make
 * this program use the tokens and the client registrations of an attacker.
 *
 * @throws {CliError} if another user owns the folder or its parent folder, or can write to one of them.
 */
async function checkFolder(path: string): Promise<void> {
  const info = await files.stat(path);
  if (info && info.kind !== "folder") {
    throw new CliError(`Cannot use the tokens in ${path}: it is not a folder; move or remove the file`);
  }
  if (platform.os === "windows") return;
  const parent = toFolder(path);
  const user = platform.findUserId();
  for (const [folder, found] of [[path, info], [parent, await files.stat(parent)]] as const) {
    if (!found) continue;
    const state = `Cannot use the tokens in ${path}`;
    // A folder of root is safe, because root can read and write all files anyway.
    if (user !== undefined && found.owner !== user && found.owner !== 0) {
      throw new CliError(`${state}: another user owns ${folder}; run ${toShell(["chown", `${user}`, folder])} as root`);
    }
    if (found.mode & OTHERS_WRITE && (folder === path || !(found.mode & STICKY))) {
      throw new CliError(`${state}: other users may write to ${folder}; run ${toShell(["chmod", "go-w", folder])}`);
    }
  }
}

async function listFiles(path: string): Promise<readonly string[]> {
  if (!await files.stat(path)) return [];
  return (await files.list(path)).map(({ name }) => name).filter((name) => /^[0-9a-f]{32}\.json$/.test(name));
}

interface Entry {
  readonly key: string;
  readonly value: string;
}

async function readValue(file: string, key: string): Promise<string | undefined> {
  const entry = await readFile(file);
  return entry?.key === key ? entry.value : undefined;
}

/** Returns `undefined` if there is no file, or if the file contains no value. The user then has to sign in again. */
async function readFile(file: string): Promise<Entry | undefined> {
  const info = await files.lstat(file);
  if (!info) return;
  if (info.kind !== "file") throw new CliError(`Cannot read tokens: ${file} is not a regular file; remove ${file}`);
  if (platform.os !== "windows" && info.mode & OTHERS) {
    throw new CliError(`Cannot use the tokens in ${file}: other users may read the file; run chmod 600 for the file`);
  }
  try {
    const json: unknown = JSON.parse(new TextDecoder().decode(await files.read(file, MAX_BYTES)));
    if (isObject(json) && typeof json.key === "string" && typeof json.value === "string") {
      return { key: json.key, value: json.value };
    }
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  reportLine(`The file ${file} contains no tokens, so you have to sign in again.`);
}

async function removeFile(file: string): Promise<void> {
  if (await files.lstat(file)) await files.remove(file);
}

/** Takes a lock, and renews the lock while the process is running. Returns a function that releases the lock. */
async function lock(file: string, deadMs: number): Promise<() => Promise<void>> {
  const end = Date.now() + WAIT_MS;
  const owner = crypto.randomUUID();
  while (!await create(file, owner)) {
    await removeDead(file, deadMs);
    if (Date.now() > end) {
      throw new CliError(
        `Cannot use the tokens: another process holds the lock ${file}; end the process, or remove the lock file`,
      );
    }
    await delay(RETRY_MS);
  }
  const stop = startBeat(file, deadMs / BEATS);
  return async () => {
    stop();
    // Another process has taken the lock if this process was suspended for longer than `deadMs`.
    if (await readOwner(file) === owner) await files.remove(file).catch(() => {});
  };
}

async function create(file: string, content: string): Promise<boolean> {
  // A lock need not survive a power failure, and would expire while a busy disk writes it.
  return await isCreated(files.write(file, content, { isNew: true }));
}

function startBeat(file: string, ms: number): () => void {
  let stop = () => {};
  const beat = () => {
    files.touch(file).catch(() => {});
    stop = platform.startBackgroundTimer(beat, ms);
  };
  stop = platform.startBackgroundTimer(beat, ms);
  return () => stop();
}

/** Removes an expired lock, whose process has ended without releasing the lock. */
async function removeDead(file: string, deadMs: number): Promise<void> {
  const owner = await findDeadOwner(file, deadMs);
  if (owner === undefined) return;
  // Only the process that creates this file may remove the owner's lock. A process that found the lock at the same time
  // could otherwise remove the lock that its successor holds.
  const claim = `${file}.${await toName(owner)}`;
  if (!await create(claim, "")) return;
  try {
    if (await findDeadOwner(file, deadMs) === owner) await files.remove(file).catch(() => {});
  } finally {
    await files.remove(claim);
  }
}

async function findDeadOwner(file: string, deadMs: number): Promise<string | undefined> {
  const info = await files.lstat(file);
  if (info && Date.now() - info.modified >= deadMs) return await readOwner(file);
}

/** Resolves to `undefined` if nobody holds the lock. */
async function readOwner(file: string): Promise<string | undefined> {
  try {
    return new TextDecoder().decode(await files.read(file, MAX_BYTES));
  } catch (error) {
    return ignoreNotFound(error);
  }
}
