// The example with code mode, in both eras.
import { assertEquals } from "@std/assert";
import server from "../../examples/code_mode.ts";
import { connectTest } from "../../src/testing/testing.ts";
import { textOf } from "../support/behaviour.ts";

/** A program that reads all pages, and orders two items. */
const CODE = `
const empty = [];
for (let page = 1, pages = 1; page <= pages; page++) {
  const result = await tools.list_items({ page });
  pages = result.pages;
  empty.push(...result.items.filter(({ stock }) => stock === 0));
}
const orders = [];
for (const { id } of empty.slice(0, 2)) orders.push(await tools.order_item({ id, count: 10 }));
return { empty: empty.length, ordered: orders.map(({ ordered }) => ordered) };`;

const options = { sanitizeOps: false, sanitizeResources: false };

for (const era of ["modern", "legacy"] as const) {
  Deno.test(`a program of the example reads all pages, and confirms its orders (${era})`, options, async () => {
    const asked: string[] = [];
    await using client = await connectTest(server, {
      era,
      onElicit: ({ message }) => {
        asked.push(message);
        return { action: "accept", content: {} };
      },
    });
    const result = await client.callTool("run_code_with_effects", { code: CODE });
    assertEquals(JSON.parse(textOf(result)), { empty: 9, ordered: [10, 10] });
    assertEquals(asked, ["Order 10 of item 1?", "Order 10 of item 24?"]);
  });
}
