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

const MISTAKES: Readonly<Record<string, RegExp>> = {
  "a remedy after a full stop": /[\p{L}\p{N})"']\.; /u,
  "no subject after the action": /^(\w+: )?Cannot [^:]+: (cannot|could not|must|may not) /,
  "a shortened text without its closing quotation mark": /"[^"]*…(?=; |\)|: |$)/,
  // deno-lint-ignore no-control-regex
  "a control character": /[\0-\x08\x0b-\x1f\x7f]/,
};

for (const [name, mistake] of Object.entries(MISTAKES)) {
  Deno.test(`no message has ${name}`, () => {
    assertEquals(sentences.filter((sentence) => mistake.test(sentence)), []);
  });
}
