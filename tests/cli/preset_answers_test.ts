// `--answer` fills in forms. Every value either fits its form field or is refused.
import { assert, assertEquals, assertRejects } from "@std/assert";
import { findFormMisfit } from "../../src/core/schema/form_answer.ts";
import type { Params } from "../../src/core/protocol/jsonrpc.ts";
import { CliError } from "../../src/cli/cli_error.ts";
import { toFields } from "../../src/cli/client/form_field.ts";
import { fillFields, readPresetAnswers } from "../../src/cli/client/preset_answers.ts";
import { sentence } from "../support/messages.ts";
import { type Random, random } from "../support/random.ts";

const NAMES = ["name", "naem", "a b", "__proto__", "constructor", "\x1b[2J", "é", "x=y", "0", ""];
const TEXTS = [
  ...["", " ", "yes", "NO", "true", "1", "-1", "1e400", "1.5", "0x10", "NaN", "r", "Red", "RED, Green", "a,b", "2"],
  ...["2026-07-28", "a@b.c", "https://x/", "\x1b]0;owned\x07", "\u202e", "{}", "[1]", "x".repeat(5000), "__proto__"],
];
const CHOICES: readonly Params[] = [
  { enum: ["r", "g"] },
  { enum: ["1", "2", "a,b", " c ", "__proto__"], enumNames: ["one"] },
  { oneOf: [{ const: "r", title: "Red" }, { const: "g", title: "Green" }] },
  { enum: [1, null, {}] },
  { enum: [] },
  { oneOf: [1, { title: "x" }] },
];

function makeField({ pick, below }: Random): unknown {
  const choices = pick(CHOICES);
  return pick<unknown>([
    { type: "string", format: pick(["email", "uri", "date", "date-time", "other"]), minLength: below(3) },
    { type: "string", maxLength: below(9), title: pick(TEXTS), description: pick(TEXTS), default: pick(TEXTS) },
    { type: pick(["number", "integer"]), minimum: below(3) - 1, maximum: below(9) },
    { type: "boolean", default: "maybe" },
    { type: "string", ...choices },
    { type: "array", items: choices, minItems: below(3), maxItems: 1 + below(4) },
    { type: "array", items: 5 },
    { type: pick(["object", "null", ["string"]]) },
    {},
    7,
  ]);
}

function makeWords({ pick, below }: Random): string[] {
  const words = () => pick([() => `${pick(NAMES)}=${pick(TEXTS)}`, () => pick(["accept", "decline", "cancel"])])();
  return Array.from({ length: 1 + below(4) }, words);
}

const toArgs = (answer: readonly string[]) => ({ operands: [], flags: {}, all: { answer } });

Deno.test("an answer to a form either fits its field or is refused with an error that is one printable line", async () => {
  let filled = 0;
  let refused = 0;
  let lines = 0;
  for (let seed = 0; seed < 5000; seed++) {
    const draw = random(seed);
    const properties = Object.fromEntries(
      Array.from({ length: draw.below(5) }, () => [draw.pick(NAMES), makeField(draw)]),
    );
    const words = makeWords(draw);
    const shown = `seed ${seed}: ${JSON.stringify({ properties, words })}`;
    const answers = await readPresetAnswers(toArgs(words)).catch((reason) => {
      assert(
        reason instanceof CliError && /^Cannot \S.*; \S/.test(reason.message),
        shown,
      );
    });
    if (!answers) continue;
    const { content, errors } = fillFields(toFields({ properties }), answers);
    assertEquals(findFormMisfit({ properties }, content), undefined, shown);
    for (const name of Object.keys(content)) assert(answers.values.has(name), shown);
    for (const line of errors.values()) {
      assert(/^Cannot [^\p{Cc}\p{Cf}]*(; [^\p{Cc}\p{Cf}]+)$/u.test(line), `${shown}\n${line}`);
    }
    lines += errors.size;
    filled += Object.keys(content).length;
    if (errors.size) refused++;
  }
  assert(filled > 100 && refused > 300 && lines > 300, `${filled} filled, ${refused} refused, ${lines} lines`);
});

Deno.test("an answer can be any choice of a list, even a choice that contains a comma", async () => {
  const fields = toFields({
    properties: { tags: { type: "array", items: { enum: ["a,b", "c", "d"] } }, ["__proto__"]: { type: "string" } },
  });
  const fill = async (...words: readonly string[]) =>
    fillFields(fields, await readPresetAnswers(toArgs(words))).content;
  assertEquals(await fill("tags=a,b"), { tags: ["a,b"] });
  assertEquals(await fill("tags=c, d", "tags=a,b"), { tags: ["c", "d", "a,b"] });
  assertEquals(Object.entries(await fill("__proto__=x")), [["__proto__", "x"]]);
  await assertRejects(() => readPresetAnswers(toArgs(["accept", "cancel"])), CliError, sentence("accept", "cancel"));
  await assertRejects(
    () => readPresetAnswers(toArgs(["tags=c", "decline"])),
    CliError,
    sentence("decline", "--answer tags=…"),
  );
});

Deno.test("an answer can be the title of a choice", () => {
  const fields = toFields({
    properties: {
      old: { type: "string", enum: ["r", "g"], enumNames: ["Red", "Green"] },
      one: { type: "string", oneOf: [{ const: "r", title: "Red" }, { const: "g", title: "Green" }] },
      many: { type: "array", items: { anyOf: [{ const: "r", title: "Red" }, { const: "g", title: "Green" }] } },
    },
  });
  assertEquals(fields.map(({ read }) => read("green")), [{ value: "g" }, { value: "g" }, { value: ["g"] }]);
});

Deno.test("a field with a single allowed number is answered with the number", () => {
  const [field] = toFields({ properties: { version: { type: "integer", const: 2 } } });
  assertEquals(field.read("2"), { value: 2 });
});
