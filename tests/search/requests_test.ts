// The measure of a tool search: its catalogues and requests.
import { assertEquals } from "@std/assert";
import { type CatalogueName, CATALOGUES, readCatalogue } from "./catalogues.ts";
import { REQUESTS } from "./requests.ts";

// The cast is safe, because the keys of an object literal are its names.
for (const name of Object.keys(CATALOGUES) as CatalogueName[]) {
  Deno.test(`the catalogue ${name} has unique names, and every tool that a request wants`, async () => {
    const names = new Set((await readCatalogue(name)).map((tool) => tool.name));
    assertEquals(names.size, CATALOGUES[name]);
    const missing = REQUESTS[name].flatMap(({ want }) => want).filter((each) => !names.has(each));
    assertEquals(missing, []);
  });

  Deno.test(`${name} has five different requests of each level, and none repeats a summary`, async () => {
    const requests = REQUESTS[name];
    for (const level of ["easy", "reworded", "hard"]) {
      assertEquals(requests.filter((each) => each.level === level).length, 5, level);
    }
    const texts = new Set(requests.map(({ text }) => toWords(text)));
    assertEquals(texts.size, requests.length);
    const summaries = (await readCatalogue(name)).flatMap(({ title, description }) => [title, description]);
    assertEquals(summaries.filter((summary) => summary && texts.has(toWords(summary))), []);
  });
}

function toWords(text: string): string {
  return text.toLowerCase().match(/\w+/g)?.join(" ") ?? "";
}
