/**
 * `mcp lock`: records what servers list, after somebody has reviewed it. `mcp check --locked` compares servers with the
 * file.
 */
import { readLockFile, readServer } from "../client/lock_file.ts";
import { toPrintableJson } from "../core/kit/printable.ts";
import { type Args, toList } from "./args.ts";
import { LOCK_OPTIONS } from "./client/server_options.ts";
import { type ServerSession, withServerSession } from "./client/server_session.ts";
import { promptLine } from "./client/terminal_input.ts";
import { canPrompt, writeLine } from "./client/terminal_output.ts";
import { toCount } from "./listing.ts";
import { applyChanges, describeChange, listChanges } from "./lock_review.ts";
import { UsageError, withAction } from "./cli_error.ts";
import type { Command } from "./command.ts";
import { importModule } from "./lazy_modules.ts";
import { platform } from "./platform.ts";
import { toName } from "./target_url.ts";

export const lock: Command = {
  name: "lock",
  summary: "Record what servers list, so that later changes are noticed",
  usage: ["lock [OPTIONS] [NAME=]TARGET...", "lock [OPTIONS] [NAME] -- COMMAND...", "lock [OPTIONS] --servers FILE"],
  description: [
    "The command prints what is new or has changed, and records what you accept: without a terminal, only what --accept " +
    "names. TARGET is a URL, file, config file or folder. NAME is the server's key in the lock file, by default its host.",
  ],
  options: {
    ...LOCK_OPTIONS,
    accept: { value: "NAME", isRepeatable: true, text: "Change to record, or a server's key for all; may be repeated" },
  },
  operands: "files",
  examples: ["lock github=https://mcp.example.com/mcp", "lock notes --accept add_note -- npx -y notes-server"],
  exitCodes: { 1: "A change was not accepted", 130: "Stopped with Ctrl-C" },
  run: (args) => compareAll(args, "lock"),
};

/** Compares the servers that the arguments name with the lock file, one after another. Returns the highest exit code. */
export async function compareAll(args: Args, verb: "lock" | "check"): Promise<number> {
  const { operands: [first, ...others], rest, flags } = args;
  if (flags.servers !== undefined) return await compareListed(args, flags.servers, verb);
  if (others.length && (rest || "header" in flags || "client-id" in flags)) {
    throw new UsageError(`Cannot ${verb} several servers: a command, headers and a client belong to one; name one`);
  }
  const codes: number[] = [];
  for (const word of rest ? [`${first ?? toName(rest[0] ?? "")}=`] : [first ?? "", ...others]) {
    const [, name, target = word] = /^([\w.-]+)=(.*)$/s.exec(word) ?? [];
    const key = name ?? (URL.canParse(target) && new URL(target).host || toName(target));
    const own = { ...args, operands: target ? [target] : [] };
    codes.push(await withServerSession(own, { verb }, (session) => compare({ ...session, key, args, verb })));
  }
  return Math.max(...codes);
}

/** Compares the servers of a file of `mcp gateway`. Their names are their keys in the lock file. */
async function compareListed(args: Args, file: string, verb: "lock" | "check"): Promise<number> {
  const { operands: [named], rest, flags, all } = args;
  const extra = named ??
    (rest ? "--" : ["header", "client-id"].filter((name) => name in flags).map((name) => `--${name}`)[0]);
  if (extra !== undefined) {
    throw new UsageError(`Cannot use ${extra} with --servers: the file names the servers; remove ${extra}`);
  }
  const { readClientFile, toTexts } = await importModule<typeof import("./config/client_file.ts")>(
    "./config/client_file.ts",
  );
  const { toTarget } = await importModule<typeof import("./config/other_servers.ts")>("./config/other_servers.ts");
  const found = await readClientFile(file, platform.toPath(file));
  const codes: number[] = [];
  for (const server of found.servers) {
    const { entry, key: [, key] } = server;
    const listed = { ...toTarget(entry, toTexts(found, server, toList(all.env))), name: key, operands: [] };
    codes.push(await withServerSession(args, { verb, listed }, (session) => compare({ ...session, key, args, verb })));
  }
  return Math.max(...codes, 0);
}

type Compared = ServerSession & { readonly key: string; readonly args: Args; readonly verb: "lock" | "check" };

async function compare({ client, signal, key, args, verb }: Compared): Promise<number> {
  const path = platform.toPath(args.flags.lock ?? "mcp.lock.json");
  const isNew = verb === "lock" && await platform.findKind(path) === undefined;
  const file = await withAction(`Cannot ${verb} ${key}`, () => isNew ? undefined : readLockFile(path));
  const servers = new Map(Object.entries(file?.servers ?? {}));
  const before = servers.get(key);
  const after = await readServer(client.server, (method, params) => client.request(method, params, { signal }));
  const changes = listChanges(before, after);
  for (const line of changes.flatMap(describeChange)) await writeLine(line);
  await writeLine(`${key}: ${changes.length ? toCount(changes.length, "change") : "no changes"}`);
  if (verb === "check" || !changes.length) return Math.min(changes.length, 1);
  const names = args.all.accept ?? (canPrompt() ? await askNames(key, signal) : []);
  const accepted = changes.filter(([, name]) => names.includes(name) || names.includes(key));
  if (accepted.length) {
    servers.set(key, applyChanges(before, accepted));
    const json = JSON.stringify({ lockVersion: 1, servers: Object.fromEntries(servers) }, null, 2);
    // Escape invisible characters, so that a review of the file shows them.
    await platform.files.write(path, `${toPrintableJson(json)}\n`);
    await writeLine(`${key}: recorded ${toCount(accepted.length, "change")}`);
  }
  const left = changes.length - accepted.length;
  if (left) await writeLine(`${key}: ${toCount(left, "change")} not accepted; use --accept NAME, or --accept ${key}`);
  return Math.min(left, 1);
}

async function askNames(key: string, signal: AbortSignal): Promise<readonly string[]> {
  const answer = await promptLine("Accept these changes? Type y for all, or names separated by spaces: ", signal);
  return /^y(es)?$/i.test(answer ?? "") ? [key] : (answer ?? "").split(/\s+/).filter(Boolean);
}
