/**
 * What a command of the command line is.
 *
 * @module
 */
import type { Args, Flags } from "./args.ts";
import { platform } from "./platform.ts";
import { VERSION } from "./version.ts";

/** What a shell offers for a word: files and folders, or words of which one is meant. */
export type Offer = "files" | readonly string[];

/** One command. The files beside this one hold one each, and `main.ts` lists them. */
export interface Command {
  readonly name: string;
  /** What it does, in a few words. */
  readonly summary: string;
  /** How it is written, without the program, and what its flags mean. */
  readonly usage: string;
  readonly flags: Flags;
  /** What a shell offers for operands, and by name for the values of flags; nothing for what only the user knows. */
  readonly offers?: { readonly operands?: Offer; readonly flags?: Readonly<Record<string, Offer>> };
  /** When the exit code is 1, such as `if there are errors`; nothing if it never is. */
  readonly fails?: string;
  /** Does the work; the exit code, or nothing for 0. */
  run(args: Args): Promise<number | void>;
}

/** The words that start this program from any folder. */
export function toProgram(permissions: "all" | "none" = "all"): readonly string[] {
  const reads = permissions === "none" && platform.runtime === "deno" ? toOwnReads() : [];
  return [...platform.toRunner(permissions), ...reads.map((path) => `--allow-read=${path}`), toEntry()];
}

/** What Deno must be allowed to read so that this program loads its parts: nothing if it comes from a registry. */
export function toOwnReads(): readonly string[] {
  const folder = new URL("../", import.meta.url);
  return folder.protocol === "file:" ? [decodeURIComponent(folder.pathname).replace(/\/$/, "")] : [];
}

/** What a runtime runs as this program: a file, or this very version of the package. */
export function toEntry(): string {
  const entry = new URL(`../../mod${import.meta.url.slice(-3)}`, import.meta.url);
  return entry.protocol === "file:" ? decodeURIComponent(entry.pathname) : `jsr:@x/mcp@${VERSION}`;
}

/** Words as they are typed into a shell. */
export function toShell(words: readonly string[]): string {
  return words.map((word) => /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`).join(" ");
}

/** The command that puts a target into the configuration of a client. */
export function toInstall(target: string): string {
  return toShell([...toProgram(), "install", target, "--client", "claude-desktop"]);
}
