// A sealed value can be opened only with the same secret and purpose, and opening returns the same value.
import { assert, assertEquals, assertMatch, assertNotEquals, assertThrows } from "@std/assert";
import { Sealer } from "../../src/server/call/sealer.ts";
import { sentence } from "../support/messages.ts";

const old = "an old secret of thirty-two chars";
const young = "a new secret of thirty-two chars!";

Deno.test("any JSON value is unchanged after sealing and opening", async () => {
  const sealer = new Sealer({ secret: old, realm: "r" });
  for (const value of [null, 0, "", "\u00e9\ud83d\ude00", [], { a: [1, { b: null }] }, "x".repeat(100_000)]) {
    const text = await sealer.seal("p", value);
    assertMatch(text, /^[\w-]+$/);
    assertEquals(await sealer.open("p", text), value);
  }
});

Deno.test("sealing a value twice gives different texts, and neither text reveals the value", async () => {
  const sealer = new Sealer({ secret: old, realm: "r" });
  const [a, b] = [await sealer.seal("p", "hello"), await sealer.seal("p", "hello")];
  assertNotEquals(a, b);
  assertNotEquals(a.slice(16), b.slice(16));
  assert(!atob(a.replaceAll("-", "+").replaceAll("_", "/")).includes("hello"));
});

Deno.test("a changed text cannot be opened, wherever it was changed", async () => {
  const sealer = new Sealer({ secret: old, realm: "r" });
  const text = await sealer.seal("p", { a: 1 });
  for (let at = 0; at < text.length; at++) {
    const other = text[at] === "A" ? "B" : "A";
    assertEquals(await sealer.open("p", text.slice(0, at) + other + text.slice(at + 1)), undefined, `at ${at}`);
    assertEquals(await sealer.open("p", text.slice(0, at)), undefined, `cut at ${at}`);
  }
  for (
    const each of ["", "x", "!!", `${text}A`, `${text}=`, ` ${text}`, "A".repeat(37), "A".repeat(38), "A".repeat(400)]
  ) {
    assertEquals(await sealer.open("p", each), undefined, each);
  }
});

Deno.test("the shortest sealed text can be opened", async () => {
  const sealer = new Sealer({ secret: old, realm: "r" });
  // The nonce has 12 bytes, the JSON one byte, and the authentication tag 16 bytes.
  const text = await sealer.seal("p", 7);
  assertEquals([text.length, await sealer.open("p", text)], [39, 7]);
});

Deno.test("a sealed text can be opened only with its own purpose and secret", async () => {
  const sealer = new Sealer({ secret: old, realm: "r" });
  const text = await sealer.seal("p", 1);
  for (const purpose of ["q", "", "P", "p "]) assertEquals(await sealer.open(purpose, text), undefined, purpose);
  assertEquals(await new Sealer({ secret: old, realm: "r" }).open("p", text), 1);
  assertEquals(await new Sealer({ secret: young, realm: "r" }).open("p", text), undefined);
  assertEquals(await new Sealer({ realm: "r" }).open("p", text), undefined);
  const [one, other] = [new Sealer({ realm: "r" }), new Sealer({ realm: "r" })];
  assertEquals(await other.open("p", await one.seal("p", 1)), undefined);
  assertEquals(await other.open("p", await other.seal("p", 1)), 1);
});

Deno.test("the first of several secrets seals, and each of the secrets can open", async () => {
  const before = await new Sealer({ secret: old, realm: "r" }).seal("p", "before");
  const sealer = new Sealer({ secret: [young, old], realm: "r" });
  const after = await sealer.seal("p", "after");
  assertEquals([await sealer.open("p", before), await sealer.open("p", after)], ["before", "after"]);
  assertEquals(await new Sealer({ secret: young, realm: "r" }).open("p", after), "after");
  assertEquals(await new Sealer({ secret: old, realm: "r" }).open("p", after), undefined);
  assertEquals(
    await sealer.open("p", await new Sealer({ secret: "a third secret of thirty-two chars", realm: "r" }).seal("p", 1)),
    undefined,
  );
});

Deno.test("a secret that could be guessed is refused with a command that generates a strong secret", () => {
  for (const secret of ["", "short", "x".repeat(31), ["x".repeat(32), "short"]]) {
    assertThrows(() => new Sealer({ secret: secret, realm: "r" }), TypeError, sentence("openssl rand"));
  }
  new Sealer({ secret: "x".repeat(32), realm: "r" });
});

Deno.test("a text that one server sealed cannot be opened by another server with the same secret", async () => {
  const seal = (realm: string, purpose: string) => new Sealer({ secret: old, realm }).seal(purpose, 1);
  const open = (realm: string, purpose: string, text: string) => new Sealer({ secret: old, realm }).open(purpose, text);
  assertEquals(await open("a", "p", await seal("a", "p")), 1);
  const others: readonly (readonly [realm: string, purpose: string])[] = [
    ["b", "p"],
    ["", "p"],
    ["ap", ""],
    ["", "ap"],
    ['a","p', ""],
    ["A", "p"],
    ["a ", "p"],
  ];
  for (const [realm, purpose] of others) {
    assertEquals(await open(realm, purpose, await seal("a", "p")), undefined, `${realm} ${purpose}`);
    assertEquals(await open("a", "p", await seal(realm, purpose)), undefined, `${realm} ${purpose}`);
  }
});
