// Icons, and links to web pages, that clients show. The server sends only URLs with safe schemes.
import { assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { createServer, prompt, resource, resourceLink, resourceProvider, tool } from "../../mod.ts";
import { behaviour } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";

/** Makes a value of the wrong type compile. */
function untyped(value: unknown): never {
  return value as never; // The cast lets any value pass the type check.
}

const text = () => "";

const FACTORIES: readonly (readonly [make: (icons: never) => unknown, ...names: readonly string[]])[] = [
  [(icons) => createServer({ name: "s", version: "1.0.0", icons })],
  [(icons) => tool({ name: "t", icons, run: text }), 'tool "t"'],
  [(icons) => prompt({ name: "p", icons, run: text }), 'prompt "p"'],
  [(icons) => resource({ uri: "x://a", name: "a", icons, read: text }), 'resource "x://a"'],
  [(icons) => resource({ uri: "x://{a}", name: "a", icons, read: text }), 'resource "x://{a}"'],
  [(icons) => resourceLink("x://a", { icons })],
];

const SAFE = [
  "https://a.example/icon.png",
  "HTTPS://a.example/icon.svg?size=48",
  "data:image/png;base64,iVBORw0KGgo=",
  "data:image/svg+xml,%3Csvg%20xmlns=%22http://www.w3.org/2000/svg%22/%3E",
  "data:image/svg+xml;charset=utf-8,%3Csvg/%3E",
];

const UNSAFE = [
  "javascript:alert(1)",
  "JavaScript:alert(1)",
  " javascript:alert(1)",
  "java\nscript:alert(1)",
  "\u0000javascript:alert(1)",
  "vbscript:x",
  "http://a.example/icon.png",
  "https://",
  "https:/a.example/icon.png",
  "//a.example/icon.png",
  "/icon.png",
  "file:///etc/passwd",
  "ftp://a.example/icon.png",
  "ws://a.example",
  "blob:https://a.example/1",
  "app://icon",
  "data:text/html,<script>alert(1)</script>",
  "data:text/html;image/png,<script>",
  "data:,x",
  "data:image/png",
  "data:image/,x",
  "https://a.example/icon .png",
  "",
];

Deno.test("an icon throws if its source is neither an https URL nor a data: URL of an image", () => {
  for (const [make, ...names] of FACTORIES) {
    for (const src of SAFE) make(untyped([{ src, mimeType: "image/png", sizes: ["48x48", "any"], theme: "dark" }]));
    for (const src of UNSAFE) {
      const { message } = assertThrows(() => make(untyped([{ src: SAFE[0] }, { src }])), TypeError);
      assertStringIncludes(message, "icons");
      assertStringIncludes(message, JSON.stringify(src.slice(0, 60)));
    }
    const wrong = [{ src: SAFE[0] }, { src: UNSAFE[0] }];
    assertThrows(() => make(untyped(wrong)), TypeError, sentence(...names, "icons", JSON.stringify(UNSAFE[0])));
  }
});

Deno.test("an icon with another invalid field throws with a remedy", () => {
  const [src] = SAFE;
  const cases: readonly (readonly [icons: unknown, message: string])[] = [
    [[{}], sentence("src")],
    [[src], sentence(JSON.stringify(src))],
    [[null], sentence("null")],
    [[{ src: [src] }], sentence("src")],
    [[{ src, mimeType: "text/html" }], sentence("mimeType", '"text/html"', "image/png")],
    [[{ src, sizes: "48x48" }], sentence("sizes", '"48x48"')],
    [[{ src, sizes: ["big"] }], sentence("sizes")],
    [[{ src, theme: "blue" }], sentence("theme", '"blue"', '"light"', '"dark"')],
    [[{ src, onload: "x" }], sentence("onload", "src, mimeType, sizes, theme")],
  ];
  for (const [icons, message] of cases) {
    assertThrows(() => tool({ name: "t", icons: untyped(icons), run: text }), TypeError, message);
  }
});

Deno.test("websiteUrl of a server must be an http or https URL", () => {
  const make = (websiteUrl: string) => createServer({ name: "s", version: "1.0.0", websiteUrl });
  for (const url of ["https://a.example", "http://localhost:3000/about"]) make(url);
  for (const url of ["javascript:alert(1)", "data:text/html,x", "a.example", "file:///x", "https://", ""]) {
    assertThrows(
      () => make(url),
      TypeError,
      sentence("websiteUrl", JSON.stringify(url)),
    );
  }
});

behaviour(
  "unsafe icons of listed resources are omitted and reported, and the list still contains all resources",
  async (connect) => {
    const [src] = SAFE;
    const icons = [{ src: "javascript:alert(1)" }];
    const entries = [{ uri: "x://1", name: "one", icons }, { uri: "x://2", name: "two", icons: [{ src }] }];
    const listed = resource({ uri: "x://{id}", name: "x", list: () => entries, read: text });
    const provided = resourceProvider({
      scheme: "y",
      name: "y",
      list: () => ({ resources: [{ uri: "y://1", name: "three", icons }] }),
      read: text,
    });
    const { client, takeFaults } = await connect({ handlers: [listed, provided] });
    const resources = await client.listResources();
    assertEquals(resources.map(({ name, icons }) => [name, icons]), [["one", undefined], ["two", [{ src }]], [
      "three",
      undefined,
    ]]);
    const faults = takeFaults();
    assertEquals(faults.length, 2);
    assertEquals(`${faults[0].error}`, sentence("icons", '"javascript:alert(1)"'));
  },
);
