// Inputs whose responses were wrong in the past or are likely to be wrong. Each corpus file is replayed as a whole. A
// line is one input, in the form that the fuzzer prints. The test replaces SESSION and "STATE" with values that the
// server issued.
import { assertEquals } from "@std/assert";
import { replay } from "./drive.ts";

const { Bun: bun } = globalThis as unknown as {
  readonly Bun?: { file(path: URL): { text(): Promise<string> } }; // Deno type-checks this file, but has no types for Bun.
};

const files = ["framing", "envelope", "answers", "sessions", "headers", "lines"];

for (const file of files) {
  Deno.test(`the inputs of the corpus ${file} get the expected responses`, async () => {
    const path = new URL(`corpus/${file}.txt`, import.meta.url);
    const text = bun ? await bun.file(path).text() : await Deno.readTextFile(path);
    const inputs = text.split("\n").filter((line) => line && !line.startsWith("#"));
    for (const input of inputs) assertEquals(await replay(input), [], input.slice(0, 1000));
  });
}
