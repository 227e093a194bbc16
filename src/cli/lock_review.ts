/**
 * Shows what has changed in a server's lists, and what could mislead a model.
 */
import { LISTS, type Locked, SECTIONS, toDigest } from "../client/lock_file.ts";
import { isObject } from "../core/kit/json.ts";
import { toLine } from "./client/terminal_text.ts";
import { toShell } from "./command.ts";
import { toCount } from "./listing.ts";
import { findInvisible, findPossibleOrder } from "./model_text.ts";

/** A member in which two JSON values differ. `undefined` stands for a missing member. */
type Difference = readonly [path: string, before: unknown, after: unknown];

/** An entry, a page, or a member of what the server says about itself, that differs from the lock file. */
export type Change = readonly [section: typeof SECTIONS[number], ...difference: Difference];

/** The changes of a server, as a person reviews them. */
export interface Review {
  /** The server's key in the lock file. */
  readonly key: string;
  /** The value of `--accept` that accepts all of these changes. */
  readonly word: string;
  readonly changes: readonly ReviewedChange[];
}

interface ReviewedChange {
  readonly change: Change;
  /** The value of `--accept` that accepts this change. */
  readonly word: string;
}

/** Lists the differences between the lock file and a server. */
export function listChanges(before: Locked | undefined, after: Locked): readonly Change[] {
  return SECTIONS.flatMap((section) =>
    toPairs(before?.[section], after[section]).filter(([, old, now]) => listDifferences(old, now).length)
      .map((difference) => [section, ...difference] as const)
  );
}

/** Returns the part of the lock file for a server, with the accepted changes. */
export function applyChanges(before: Locked | undefined, accepted: readonly Change[]): Locked {
  const sections = SECTIONS.map((section) => {
    const own = accepted.filter(([of]) => of === section).map(([, name, , after]) => [name, after]);
    // An entry that is no longer listed becomes `undefined`, which JSON leaves out.
    return [section, Object.fromEntries([...Object.entries(before?.[section] ?? {}), ...own])];
  });
  return Object.fromEntries(sections) as Locked; // The cast is safe, because the object has all sections.
}

export async function createReview(key: string, differences: readonly Change[]): Promise<Review> {
  const changes = await Promise.all(differences.map(async (change) => {
    const [section, name, before, after] = change;
    // An object leaves out `undefined`, which JSON cannot tell from null in a list.
    return { change, word: await toWord(name, { key, section, name, before, after }) };
  }));
  return { key, word: await toWord(key, { key, words: changes.map(({ word }) => word) }), changes };
}

/** Characters of a digest in `--accept`. */
const DIGEST_CHARACTERS = 32;

/**
 * Returns a name and a digest of 192 bits. Fewer bits would not be safe, because a server chooses both the text that is
 * reviewed and the text that it serves later: two texts with the same 96 bits are found after 2^48 attempts.
 */
async function toWord(name: string, reviewed: unknown): Promise<string> {
  const [, digest] = /^sha256-(.*)$/.exec(await toDigest(reviewed)) ?? [];
  return `${toLine(name)}@${digest.slice(0, DIGEST_CHARACTERS)}`;
}

/** Returns the changes that the words accept. */
export function chooseChanges({ word, changes }: Review, words: readonly string[]): readonly Change[] {
  return changes.filter((each) => words.includes(each.word) || words.includes(word)).map(({ change }) => change);
}

/** Returns the text of a review, with the option that accepts each change. */
export function toReviewLines({ key, word, changes }: Review): readonly string[] {
  // Without "=", a name that begins with "--" would be another option.
  const toWords = (accepted: string) => accepted.startsWith("-") ? [`--accept=${accepted}`] : ["--accept", accepted];
  const lines = changes.flatMap((each) => [
    ...describeChange(each.change),
    `  to accept: ${toShell(toWords(each.word))}`,
  ]);
  if (!lines.length) return [`${key}: no changes`];
  return [...lines, `${key}: ${toCount(changes.length, "change")}; to accept all: ${toShell(toWords(word))}`];
}

/** Describes a change in several lines, with warnings of what could mislead a model. */
function describeChange([section, name, before, after]: Change): readonly string[] {
  const place = `${Object(LISTS)[section]?.word ?? section.replace("pages", "page")} ${toLine(name)}`;
  if (after === undefined) return [`${place}: no longer listed`];
  const show = (value: unknown) => toWhole(JSON.stringify(value) ?? "nothing");
  const lines = listDifferences(before, after).flatMap(([path, old, now]) => [
    `  ${path && `${toWhole(path)}: `}${old === undefined ? "" : `${show(old)} → `}${show(now)}`,
    ...findRisks(`${name}\n${path}\n${typeof now === "string" ? now : JSON.stringify(now)}`),
  ]);
  return [`${place}: ${before === undefined ? "new" : "changed"}`, ...lines];
}

/** Nothing is cut off, because the part that nobody sees would be accepted too. */
function toWhole(text: string): string {
  return toLine(text, Infinity);
}

function findRisks(text: string): readonly string[] {
  const order = findPossibleOrder(text);
  return [
    ...findInvisible(text) === undefined ? [] : ["  warning: it contains invisible characters"],
    ...order === undefined ? [] : [`  warning: it may give an order to the model: ${toLine(order)}`],
  ];
}

/** Lists the members in which two JSON values differ, with their paths. */
function listDifferences(before: unknown, after: unknown, path = ""): readonly Difference[] {
  if (JSON.stringify(before) === JSON.stringify(after)) return [];
  const pairs = [before ?? {}, after ?? {}].every(isObject) ? toPairs(before, after) : [];
  // A new empty object is a difference too, because its name can be a text for the model.
  if (!pairs.length) return [[path, before, after]];
  // Quote unusual keys, because a key can look like other lines of the review.
  const quote = (key: string) => /^[\w$-]+$/.test(key) ? key : JSON.stringify(key);
  return pairs.flatMap(([key, ...values]) => listDifferences(...values, path ? `${path}.${quote(key)}` : quote(key)));
}

function toPairs(before: unknown, after: unknown): readonly Difference[] {
  const [old, now] = [before, after].map((value) => new Map<string, unknown>(Object.entries(value ?? {})));
  return [...new Set([...old.keys(), ...now.keys()])].map((name) => [name, old.get(name), now.get(name)]);
}
