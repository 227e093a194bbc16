// Inputs with wrong responses in the past, or likely ones: each file of the corpus is replayed whole. A line is one
// input as the fuzzer prints it; SESSION and "STATE" are replaced by values that the server issued.
import { assertEquals } from "@std/assert";
import { replay } from "./drive.ts";

const { Bun: bun } = globalThis as unknown as {
  readonly Bun?: { file(path: URL): { text(): Promise<string> } }; // Deno has no types for it
};

const files = ["framing", "envelope", "answers", "sessions", "headers", "lines"];

for (const file of files) {
  Deno.test(`the corpus of ${file} gets the expected responses`, async () => {
    const path = new URL(`corpus/${file}.txt`, import.meta.url);
    const text = bun ? await bun.file(path).text() : await Deno.readTextFile(path);
    const inputs = text.split("\n").filter((line) => line && !line.startsWith("#"));
    for (const input of inputs) assertEquals(await replay(input), [], input.slice(0, 1000));
  });
}
