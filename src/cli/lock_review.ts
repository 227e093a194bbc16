/**
 * Shows what has changed in a server's lists, and what could mislead a model.
 */
import { LISTS, type Locked, SECTIONS } from "../client/lock_file.ts";
import { isObject } from "../core/kit/json.ts";
import { toPrintable } from "../core/kit/printable.ts";
import { toLine } from "./client/terminal_text.ts";

/** A member in which two JSON values differ. `undefined` stands for a missing member. */
type Difference = readonly [path: string, before: unknown, after: unknown];

/** An entry, a page, or a member of what the server says about itself, that differs from the lock file. */
export type Change = readonly [section: typeof SECTIONS[number], ...difference: Difference];

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

/** Describes a change in several lines, with warnings of what could mislead a model. */
export function describeChange([section, name, before, after]: Change): readonly string[] {
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

/** Texts that give orders to a model, as descriptions in attacks do. No list is complete. */
const ORDERS = [
  /\b(ignore|disregard|forget|override)\b.{0,40}\b(previous|prior|above|earlier|other|all)\b/is,
  /\b(do not|don't|never|without)\b.{0,40}\b(tell|telling|mention|inform|reveal|show|ask|asking)\b/is,
  /\b(before|instead of|rather than|you must|always)\b.{0,40}\b(tools?|call|read|send|include|pass)\b/is,
  /<\/?\s*(important|system|instructions?|secret|hidden)\b|\b(system prompt|private key|id_rsa)\b/i,
];

function findRisks(text: string): readonly string[] {
  const order = ORDERS.map((each) => each.exec(text)?.[0]).find((found) => found !== undefined);
  return [
    ...toPrintable(text) === text ? [] : ["  warning: it contains invisible characters"],
    ...order === undefined ? [] : [`  warning: it may give an order to the model: ${toLine(order)}`],
  ];
}

/** Lists the members in which two JSON values differ, with their paths. */
function listDifferences(before: unknown, after: unknown, path = ""): readonly Difference[] {
  if (JSON.stringify(before) === JSON.stringify(after)) return [];
  const pairs = [before ?? {}, after ?? {}].every(isObject) ? toPairs(before, after) : [];
  // A new empty object is a difference too, because its name can be a text for the model.
  if (!pairs.length) return [[path, before, after]];
  return pairs.flatMap(([key, ...values]) => listDifferences(...values, path ? `${path}.${key}` : key));
}

function toPairs(before: unknown, after: unknown): readonly Difference[] {
  const [old, now] = [before, after].map((value) => new Map<string, unknown>(Object.entries(value ?? {})));
  return [...new Set([...old.keys(), ...now.keys()])].map((name) => [name, old.get(name), now.get(name)]);
}
