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
import { toLine } from "./client/terminal_text.ts";
import { toCount } from "./listing.ts";
import { applyChanges, chooseChanges, createReview, listChanges, type Review, toReviewLines } from "./lock_review.ts";
import { ServerError, UsageError, withAction } from "./cli_error.ts";
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
    "names. Each printed change has its --accept, which does not accept anything else. TARGET is a URL, file, config " +
    "file or folder. NAME is the server's key in the lock file, by default its host.",
  ],
  options: {
    ...LOCK_OPTIONS,
    accept: {
      value: "NAME@DIGEST",
      isRepeatable: true,
      text: "Change to record, or all changes of a server, as the command printed it; may be repeated",
    },
  },
  operands: "files",
  examples: ["lock github=https://mcp.example.com/mcp", "lock notes -- npx -y notes-server"],
  exitCodes: { 1: "A change was not accepted", 130: "Stopped with Ctrl-C" },
  async run(args) {
    const accepted = new Set<string>();
    const code = await compareAll(args, { verb: "lock", accepted });
    const unknown = args.all.accept?.find((word) => !accepted.has(word));
    if (unknown === undefined) return code;
    throw new ServerError(
      `Cannot accept ${toLine(unknown)}: no change has this name and digest, or it has changed since it was printed; ` +
        "review the changes, and copy the --accept that is printed with them",
    );
  },
};

interface CompareOptions {
  readonly verb: "lock" | "check";
  /** The values of `--accept` that name a change, or all changes of a server. */
  readonly accepted?: Set<string>;
}

/** Compares the servers that the arguments name with the lock file, one after another. Returns the highest exit code. */
export async function compareAll(args: Args, options: CompareOptions): Promise<number> {
  const { operands: [first, ...others], rest, flags } = args;
  const { verb } = options;
  if (flags.servers !== undefined) return await compareListed(args, flags.servers, options);
  if (others.length && (rest || "header" in flags || "client-id" in flags)) {
    throw new UsageError(`Cannot ${verb} several servers: a command, headers and a client belong to one; name one`);
  }
  const codes: number[] = [];
  for (const word of rest ? [`${first ?? toName(rest[0] ?? "")}=`] : [first ?? "", ...others]) {
    const [, name, target = word] = /^([\w.-]+)=(.*)$/s.exec(word) ?? [];
    const key = name ?? (URL.canParse(target) && new URL(target).host || toName(target));
    const own = { ...args, operands: target ? [target] : [] };
    codes.push(await withServerSession(own, { verb }, (session) => compare({ ...session, key, args, ...options })));
  }
  return Math.max(...codes);
}

/** Compares the servers of a file of `mcp gateway`. Their names are their keys in the lock file. */
async function compareListed(args: Args, file: string, options: CompareOptions): Promise<number> {
  const { operands: [named], rest, flags, all } = args;
  const { verb } = options;
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
    codes.push(
      await withServerSession(args, { verb, listed }, (session) => compare({ ...session, key, args, ...options })),
    );
  }
  return Math.max(...codes, 0);
}

type Compared = ServerSession & CompareOptions & { readonly key: string; readonly args: Args };

async function compare({ client, signal, key, args, verb, accepted }: Compared): Promise<number> {
  const path = platform.toPath(args.flags.lock ?? "mcp.lock.json");
  const isNew = verb === "lock" && await platform.findKind(path) === undefined;
  const file = await withAction(`Cannot ${verb} ${key}`, () => isNew ? undefined : readLockFile(path));
  const servers = new Map(Object.entries(file?.servers ?? {}));
  const before = servers.get(key);
  const after = await readServer(client.server, (method, params) => client.request(method, params, { signal }));
  const review = await createReview(key, listChanges(before, after));
  const { changes } = review;
  for (const line of toReviewLines(review)) await writeLine(line);
  if (verb === "check" || !changes.length) return Math.min(changes.length, 1);
  const words = args.all.accept ?? (canPrompt() ? await askWords(review, signal) : []);
  const chosen = chooseChanges(review, words);
  [review, ...changes].filter(({ word }) => words.includes(word)).forEach(({ word }) => accepted?.add(word));
  if (chosen.length) {
    servers.set(key, applyChanges(before, chosen));
    const json = JSON.stringify({ lockVersion: 1, servers: Object.fromEntries(servers) }, null, 2);
    // Escape invisible characters, so that a review of the file shows them.
    await platform.files.write(path, `${toPrintableJson(json)}\n`);
    await writeLine(`${key}: recorded ${toCount(chosen.length, "change")}`);
  }
  const left = changes.length - chosen.length;
  if (left) await writeLine(`${key}: ${toCount(left, "change")} not accepted`);
  return Math.min(left, 1);
}

/** Returns the words of the changes that the user names. A name that several changes have names none of them. */
async function askWords({ word, changes }: Review, signal: AbortSignal): Promise<readonly string[]> {
  const answer = await promptLine("Accept these changes? Type y for all, or names separated by spaces: ", signal) ?? "";
  if (/^y(es)?$/i.test(answer)) return [word];
  return answer.split(/\s+/).flatMap((typed) => {
    const named = changes.filter(({ change: [, name] }) => name === typed);
    return named.length === 1 ? named[0].word : typed;
  });
}
