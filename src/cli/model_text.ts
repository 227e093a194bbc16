/**
 * Finds what texts for a model must not contain: characters that people do not see, and orders to the model.
 */
import { escapeUnprintable } from "../core/kit/printable.ts";

/** Scripts whose writing needs joiners, which are invisible. */
const JOINED =
  String.raw`\p{Script=Arabic}\p{Script=Devanagari}\p{Script=Bengali}\p{Script=Gurmukhi}\p{Script=Gujarati}` +
  String.raw`\p{Script=Oriya}\p{Script=Tamil}\p{Script=Telugu}\p{Script=Kannada}\p{Script=Malayalam}\p{Script=Sinhala}`;
const JOINER = new RegExp(String.raw`(?<=[${JOINED}]\p{M}*)[\u200c\u200d](?=[${JOINED}])`, "gu");
/** Line ends of Windows. */
const LINE_ENDS = /\r(?=\n)/g;

/** Returns the first control or invisible character of a text, such as `U+200B`. Parts of emoji and words do not count. */
export function findInvisible(text: string): string | undefined {
  let found: string | undefined;
  escapeUnprintable(text.replace(JOINER, "").replace(LINE_ENDS, ""), "\n\t", (code) => {
    found ??= `U+${code.toString(16).toUpperCase().padStart(4, "0")}`;
    return "";
  });
  return found;
}

const ACTIONS = String.raw`\b(?:read|open|send|include|pass|upload|attach|copy)\b`;
const SECRETS =
  String.raw`(?:~\/\.|\.ssh\b|\bid_rsa\b|\.env\b|\.pem\b|\b(?:private key|system prompt|credentials|password)s?\b|` +
  String.raw`\b(?:(?:conversation|chat) history|(?:whole|full|entire) (?:conversation|chat))\b)`;

/** Texts that give orders to a model, as descriptions in attacks do. No list is complete. */
const ORDERS = [
  /\b(ignore|disregard|forget|override|bypass)\b.{0,30}\b(previous|prior|above|earlier|your|system|all|any)\b.{0,20}\b(instructions?|prompts?|guidelines|safeguards)\b/is,
  /\b(do not|don't|never|without)\b.{0,20}\b(tell|telling|mention|inform|informing|reveal|disclose|notify|warn|alert)\b.{0,40}\busers?\b/is,
  new RegExp(String.raw`\b(?:before|must|always)\b.{0,80}${ACTIONS}.{0,60}${SECRETS}`, "is"),
  /<\/?\s*(important|system|instructions?|secret|hidden)\s*>/i,
  /\b(fetch|download|load|read|follow|obey)\b.{0,30}\binstructions?\b.{0,20}\b(from|at|in)\b.{0,20}https?:/is,
];

/** Texts that are orders in attacks, and also common in honest descriptions. */
const POSSIBLE_ORDERS = [
  /\b(ignore|disregard|forget|override)\b.{0,40}\b(previous|prior|above|earlier|other|all)\b/is,
  /\b(do not|don't|never|without)\b.{0,40}\b(tell|telling|mention|inform|reveal|show|ask|asking)\b/is,
  /\b(before|instead of|rather than|you must|always)\b.{0,40}\b(tools?|call|read|send|include|pass)\b/is,
  /<\/?\s*(important|system|instructions?|secret|hidden)\b|\b(system prompt|private key|id_rsa)\b/i,
];

/** Returns the part of a text that orders a model to act against its user. */
export function findOrder(text: string): string | undefined {
  return findFirst(ORDERS, text);
}

/** Like {@linkcode findOrder}, but also returns what is often harmless. For a person who reviews each change. */
export function findPossibleOrder(text: string): string | undefined {
  return findFirst([...ORDERS, ...POSSIBLE_ORDERS], text);
}

/** Texts that steer a model away from other tools, or make it call a tool that the user has not asked for. */
const STEERING = [
  /\b(do not|don't|never|avoid)\s+(use|using|call|calling)\s+(any |all )?(other|another)\s+([\w-]+\s+)?(tools?|servers?|connectors?|plugins?|apps?)\b/is,
  /\b(instead of|rather than|in preference to|prefer(red)?\b.{0,20}\bover|over|better than)\s+(any |all |the )?(other|built-?in|native|default|competing)\s+([\w-]+\s+)?(tools?|servers?|connectors?|plugins?|apps?)\b/is,
  /\b(always|must)\b.{0,20}\b(call|use|run|invoke)\s+this\b.{0,40}\b(every|each|any)\s+(message|turn|request|conversation|prompt|question|task|other tool)\b/is,
  /\b(call|use|run|invoke)\s+this\s+tool\s+(first|before)\b.{0,20}\b(every|each|any|all)\b/is,
  // Several calls of the server's own tools are no other tool.
  /\b(prefer|use|choose)\s+(this|it)(\s+(tool|server|connector|plugin))?\s+(over|instead of|rather than)\s+(?!(multiple|several|separate|individual|repeated|many)\b)[a-z][\w -]{2,40}\b(search|tools?|servers?|connectors?|plugins?|knowledge|memory|browsing)\b/is,
];

/** Returns the part of a text that steers a model away from other tools, or to calls that the user has not asked for. */
export function findSteering(text: string): string | undefined {
  return findFirst(STEERING, text);
}

function findFirst(patterns: readonly RegExp[], text: string): string | undefined {
  return patterns.map((each) => each.exec(text)?.[0]).find((found) => found !== undefined);
}
