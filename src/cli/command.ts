/**
 * Describes the commands of the command line, and formats shell commands for messages.
 */
import type { Args, Flags } from "./args.ts";
import { findPackageFolder } from "./package_folder.ts";
import { platform } from "./platform.ts";
import { NAME, VERSION } from "./version.ts";

/** The suggestions that a shell offers for an argument: files and folders, or a list of words. */
export type Completion = "files" | readonly string[];

export interface Option {
  /** The placeholder for the value in the help, such as `PORT`. `undefined` if the option takes no value. */
  readonly value?: string;
  /** Whether the option may be given several times with different values. */
  readonly isRepeatable?: boolean;
  /**
   * A description for help, without a full stop. Shells show only the part before the first semicolon, parenthesis,
   * colon or example.
   */
  readonly text: string;
  /** How a shell completes the value. `undefined` if the shell cannot complete the value. */
  readonly completion?: Completion;
}

/** The options of a command, keyed by name without the leading `--`. */
export type Options = Readonly<Record<string, Option>>;

/** A command. Each command has a file in this folder, and `main.ts` lists all commands. */
export interface Command {
  readonly name: string;
  readonly summary: string;
  /** The usage lines, without the program's name. */
  readonly usage: readonly string[];
  /** Paragraphs that the help shows between the usage and the options. */
  readonly description?: readonly string[];
  readonly options: Options;
  /** How a shell completes operands. `undefined` if the shell cannot complete operands. */
  readonly operands?: Completion;
  /** Example command lines, without the program's name. */
  readonly examples: readonly string[];
  /** Descriptions of the exit codes other than 0 and 2, keyed by code. */
  readonly exitCodes?: Readonly<Record<number, string>>;
  /** Runs the command. Returns its exit code, or `undefined` for 0. */
  run(args: Args): Promise<number | void>;
}

/** Converts options to the form that `readArgs` takes. */
export function toFlags(options: Options): Flags {
  return Object.fromEntries(
    Object.entries(options).map(([name, { value, isRepeatable }]) => [
      name,
      isRepeatable ? "repeatable" : value !== undefined,
    ]),
  );
}

/** Whether this code runs from the npm package, whose files are bundled. */
export const isBundled: boolean = !/\/src\/cli\/[^/]+$/.test(import.meta.url);

/**
 * Whether this program is in a cache of npx, bunx, or the `dlx` of pnpm and Yarn. These programs can remove the folder
 * at any time, so nothing that outlives this process may name it.
 */
export function isInCache(): boolean {
  return isBundled && /[\\/](_npx|\.?bunx-[^\\/]*|pnpm[\\/]dlx|dlx-\d+)[\\/]/.test(findPackageFolder().pathname);
}

/** Returns the command that starts this program from any folder. */
export function toProgram(permissions: "all" | "none" = "all"): readonly string[] {
  const starters = { deno: undefined, bun: ["bunx", "--bun"], node: ["npx", "-y"] } as const;
  const starter = isBundled ? starters[platform.runtime] : undefined;
  if (starter) return [...starter, `${NAME}@${VERSION}`];
  const reads = permissions === "none" && platform.runtime === "deno" ? toOwnReads() : [];
  return [...platform.toRunner(permissions), ...reads.map((path) => `--allow-read=${path}`), toEntry()];
}

/** Paths that Deno must read to load this program. Empty if the program comes from a registry. */
export function toOwnReads(): readonly string[] {
  const folder = isBundled ? findPackageFolder() : new URL("../", import.meta.url);
  return folder.protocol === "file:" ? [decodeURIComponent(folder.pathname).replace(/\/$/, "")] : [];
}

/** Returns the entry point of this program: a file, or the package at this exact version. */
export function toEntry(): string {
  if (isBundled && platform.runtime === "deno") return `npm:${NAME}@${VERSION}`;
  const entry = isBundled
    ? new URL("bin.js", findPackageFolder())
    : new URL(`../../mod${import.meta.url.slice(-3)}`, import.meta.url);
  return entry.protocol === "file:" ? decodeURIComponent(entry.pathname) : `jsr:${NAME}@${VERSION}`;
}

/** Quotes words for a shell. */
export function toShell(words: readonly string[]): string {
  return words.map((word) => /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`).join(" ");
}

/** Returns the command that adds a target to a client. `options` select an endpoint of the target. */
export function toInstall(target: string, options: readonly string[]): string {
  // Do not suggest permissions for code, because only the author knows which permissions the code needs. `install` then
  // checks the entry, and reports missing permissions.
  const hasCode = /\.([cm]?[jt]sx?|jsonc?)$|^(jsr|npm|https?):/i.test(target);
  const permissions = hasCode && platform.runtime === "deno" ? ["--allow-none"] : [];
  return toShell([...toProgram(), "install", target, ...options, "--client", "claude-desktop", ...permissions]);
}
