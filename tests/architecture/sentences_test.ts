// The messages in all messages.json files keep the form of the project's messages. Each kind of mistake here was seen.
import { assertEquals } from "@std/assert";
import { readdirSync, readFileSync } from "node:fs";

const tests = new URL("../", import.meta.url);

/** Returns all sentences of a stored value. */
function list(stored: unknown): string[] {
  return typeof stored === "string" ? [stored] : Object.values(Object(stored)).flatMap(list);
}

const sentences = readdirSync(tests, { recursive: true, encoding: "utf8" })
  .filter((path) => path.endsWith("messages.json"))
  .flatMap((path) => list(JSON.parse(readFileSync(new URL(path.replaceAll("\\", "/"), tests), "utf8"))));

const MISTAKES: Readonly<Record<string, (sentence: string) => boolean>> = {
  "a remedy after a full stop": (sentence) => /[\p{L}\p{N})"']\.; /u.test(sentence),
  "no subject after the action": (sentence) => /^(\w+: )?Cannot [^:]+: (cannot|could not|must|may not) /.test(sentence),
  "a shortened text without its closing quotation mark": (sentence) =>
    sentence.includes("…") && (sentence.match(/(?<!\\)"/g)?.length ?? 0) % 2 === 1,
  // deno-lint-ignore no-control-regex
  "a control character": (sentence) => /[\0-\x08\x0b-\x1f\x7f]/.test(sentence),
};

for (const [name, isMistake] of Object.entries(MISTAKES)) {
  Deno.test(`no message has ${name}`, () => {
    assertEquals(sentences.filter(isMistake), []);
  });
}
