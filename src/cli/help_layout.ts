/**
 * Breaks help at the width of the terminal.
 *
 * @module
 */
import { toLines, toWidth } from "./client/terminal_text.ts";

const NARROWEST = 40;
/** A line that is this long was broken because the text goes on. */
const BROKEN = 96;

/** Breaks lines that are wider than `columns`: paragraphs anew, and the rest with what it hangs on in front. */
export function wrapHelp(text: string, columns: number): string {
  const width = Math.max(NARROWEST, columns);
  return joinParagraphs(text.split("\n")).flatMap((line) => toWidth(line) <= width ? line : wrap(line, width)).join(
    "\n",
  );
}

/** Lines with the ones that go on in the next joined, so that no line ends in the middle. */
function joinParagraphs(lines: readonly string[]): readonly string[] {
  const joined: string[] = [];
  let isOpen = false;
  for (const line of lines) {
    const [indent] = /^ */.exec(line) ?? [""];
    const before = joined.at(-1) ?? "";
    const goesOn = isOpen && line.trim() !== "" && !/^\s*--?\w/.test(line) && indent === /^ */.exec(before)?.[0];
    if (goesOn) joined[joined.length - 1] = `${before} ${line.trim()}`;
    else joined.push(line);
    isOpen = line.length >= BROKEN;
  }
  return joined;
}

function wrap(line: string, width: number): readonly string[] {
  // What a line describes stands in front, such as a flag or the name of a command; the rest hangs behind it.
  const [, head, rest] = /^(\s*(?:--?[\w-]+(?: \S+)*?|[\w-]+)\s{2,})(\S.*)$/.exec(line) ?? /^(\s*)(.*)$/.exec(line) ??
    [];
  const indent = " ".repeat(head.length < width / 2 ? head.length : 4);
  const isBeside = head.length < width / 2;
  const lines = toLines(rest, width - indent.length);
  return isBeside
    ? lines.map((each, i) => (i ? indent : head) + each)
    : [head.trimEnd(), ...lines.map((each) => indent + each)];
}
