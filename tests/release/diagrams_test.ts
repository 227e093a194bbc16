// Compares the sequence diagrams of the documentation with the transcripts of the wire.
import { assertEquals, assertThrows } from "@std/assert";
import { readPages } from "./pages.ts";
import { fillPage, PAGES } from "../../bench/pages.ts";
import { toPlot } from "../../bench/plots.ts";
import { type Figures, readRecord, RUNTIMES, toFigure } from "../../bench/record.ts";
import { toWorkloadRows } from "../../bench/table.ts";
import { judgeWarmUp } from "../../bench/warm_up.ts";
import { sentence } from "../support/messages.ts";

const root = new URL("../../", import.meta.url);

/** Returns the messages in a transcript, such as `→ tools/call` and `← result`. A body without a method is a result. */
async function readTranscript(path: string): Promise<readonly string[]> {
  const lines = (await Deno.readTextFile(new URL(path, root))).split("\n");
  return lines.flatMap((line) => {
    const [direction, head] = [line[0], line.slice(2)];
    if (direction !== "→" && direction !== "←") return [];
    if (head.startsWith("{")) {
      const { method, error } = JSON.parse(head);
      return [`${direction} ${method ?? (error ? "error" : "result")}`];
    }
    const [word] = head.split(" ");
    // These heads have a body, which follows.
    return word === "POST" || word === "200" ? [] : [`${direction} ${word}`];
  });
}

/** Returns the first words of the messages between the client and the server in a diagram. */
function readDiagram(text: string): readonly string[] {
  const arrows = text.matchAll(/^ *(Client|Server)-{1,2}>>(?:Client|Server): ([\w/]+)/gm);
  return [...arrows].map(([, from, word]) => `${from === "Client" ? "→" : "←"} ${word}`);
}

/** Returns the messages that do not follow the earlier messages in a transcript. */
function findStrangers(messages: readonly string[], transcript: readonly string[]): readonly string[] {
  let at = 0;
  return messages.filter((message) => {
    const found = transcript.indexOf(message, at);
    if (found >= 0) at = found + 1;
    return found < 0;
  });
}

// Only Deno reads the files.
Deno.test("the messages in a sequence diagram are in the transcripts that the diagram names, in the same order", {
  ignore: typeof Deno === "undefined",
}, async () => {
  const named: string[] = [];
  for (const { path, blocks } of await readPages()) {
    for (const { text } of blocks.filter(({ language }) => language === "mermaid")) {
      const transcripts = /%% (.+)/.exec(text)?.[1].split(", ") ?? [];
      if (!transcripts.length) continue;
      const messages = readDiagram(text);
      assertEquals(messages.length >= 4, true, path);
      const lines = (await Promise.all(transcripts.map(readTranscript))).flat();
      assertEquals(findStrangers(messages, lines), [], path);
      named.push(...transcripts);
    }
  }
  assertEquals(named.length, 5);
});

// Only Deno reads the files.
Deno.test(
  "every diagram has a title for readers who cannot see it",
  { ignore: typeof Deno === "undefined" },
  async () => {
    const diagrams = (await readPages()).flatMap(({ blocks }) =>
      blocks.filter(({ language }) => language === "mermaid")
    );
    assertEquals(diagrams.filter(({ text }) => !/^ *accTitle: \S/m.test(text)), []);
  },
);

// Tests the record of the benchmarks: plots and pages show its figures, and its servers are measured when they are warm.

const ignore = typeof Deno === "undefined"; // Only Deno reads the files.

const readText = (path: string) => Deno.readTextFile(new URL(path, root));

/** Removes the widths of table columns and the places of line breaks, which the formatter changes. */
const toWords = (markdown: string) =>
  markdown.replace(/-{3,}:/g, "--:").replace(/-{4,}/g, "---").split(/\s+/).join(" ");

/** A record, with a figure of each server on Deno only. */
function toRecord(servers: Readonly<Record<string, number>>, record: Partial<Figures> = {}): Figures {
  const figures = Object.entries(servers).map(([name, micros]) => [name, { deno: { micros } }] as const);
  const workload = { title: "tools/call", servers: Object.fromEntries(figures) };
  return { machine: "a machine", workloads: { W1: workload }, ...record };
}

Deno.test("plots and pages show the figures of the record; run deno task docs:plots", { ignore }, async () => {
  const record = await readRecord();
  assertEquals(Object.keys(record.workloads), ["W1", "W2", "W3", "W4"]);
  for (const [name, workload] of Object.entries(record.workloads)) {
    assertEquals(Object.keys(workload.servers["@x/mcp"]), [...RUNTIMES]);
    assertEquals(await readText(`bench/plots/${name}.svg`), toPlot(name, workload));
  }
  for (const path of PAGES) {
    const markdown = await readText(path);
    assertEquals(toWords(markdown), toWords(fillPage(markdown, record)), path);
  }
});

Deno.test("bench/README.md has one table for each workload of the record, and a plot", { ignore }, async () => {
  const markdown = await readText("bench/README.md");
  for (const [name, { title }] of Object.entries((await readRecord()).workloads)) {
    const sections = markdown.split(/^#+ /m).filter((section) => section.startsWith(name));
    assertEquals(sections.map((section) => section.split("\n", 1)[0]), [`${name} ${title}`]);
    assertEquals(sections[0].includes(`<!-- record ${name} -->`), true, name);
    assertEquals(sections[0].includes(`plots/${name}.svg`), true, name);
  }
});

Deno.test("a paragraph with figures of the record says whether the servers were warm", { ignore }, async () => {
  for (const path of PAGES) {
    const paragraphs = (await readText(path)).split(/\n\n|\n- /).filter((text) => /"W\d [^"]+"\)/.test(text));
    for (const text of paragraphs) assertEquals(text.includes('"warm-up")'), true, text);
  }
});

Deno.test("a new record changes every kind of figure on a page, and nothing else", () => {
  const links = (cpu: string, ratio: string, warm: string) =>
    `Takes [${cpu}](../bench/README.md#a "W1 deno TS SDK") µs, [${ratio}](bench/README.md "W1 deno @x/mcp / W1 deno\n` +
    `TS SDK") times, on [${warm}](../../bench/README.md "warm-up"). See [plots](bench/README.md).`;
  const conditions = { rounds: 6, warmUpSeconds: 5, falling: [], shared: 1, slices: 90 };
  const record = toRecord({ "@x/mcp": 10, "TS SDK 9.1.0": 80 }, { conditions });
  assertEquals(fillPage(links("1", "2", "three servers"), record), links("80.0", "0.13", "warmed-up servers"));
  const falling = fillPage(
    "<!-- record conditions --><!-- end -->",
    toRecord({}, { conditions: { ...conditions, falling: ["tmcp 1.0.0 (W2, bun)"] } }),
  );
  assertEquals(/tmcp 1\.0\.0 \(W2, bun\)/.test(falling), true, falling);
  assertThrows(
    () => fillPage(links("", "", ""), toRecord({ "@x/mcp": 1 })),
    Error,
    sentence("the record has no figure"),
  );
});

Deno.test("a table shows the range of the rounds, and which runtime the record lacks", () => {
  const rounds = toFigure([12.04, 9, 30, 10]);
  assertEquals(rounds, { micros: 11, least: 9, most: 30 });
  const rows = toWorkloadRows({
    title: "tools/call",
    servers: {
      "@x/mcp": { deno: rounds, node: { micros: 20 } },
      "@x/mcp with @hono/node-server": { node: { micros: 18 } },
      "mcp-lite 0.10.0": { deno: { micros: 22 }, node: { micros: 40 } },
    },
  });
  assertEquals([...rows].map(([name, row]) => [name, ...row.values()]), [
    ["@x/mcp", "11.0 (9.0–30.0)", "1.000", "not recorded", "not recorded", "20.0", "1.000"],
    ["@x/mcp with @hono/node-server", "–", "–", "not recorded", "not recorded", "18.0", "**1.111**"],
    ["mcp-lite 0.10.0", "22.0", "0.500", "not recorded", "not recorded", "40.0", "0.500"],
  ]);
  assertEquals(
    [...rows.get("@x/mcp")?.keys() ?? []],
    RUNTIMES.flatMap((name) => [`${name}: µs CPU`, `${name}: ratio`]),
  );
});

Deno.test("a server is warm after five seconds of CPU time, when its CPU time per request no longer falls", () => {
  const judge = (cpu: number, figures: readonly number[]) =>
    judgeWarmUp(figures.map((micros) => ({ cpu, requests: cpu / micros * 1e6 })));
  assertEquals(judge(1, []), "cold");
  assertEquals(judge(1, [20, 20, 20, 20]), "cold");
  assertEquals(judge(1, [20, 20, 20, 20, 20]), "warm");
  assertEquals(judge(0.5, [20, 20, 20, 20, 20, 20]), "cold");
  assertEquals(judge(1, [600, 400, 300, 250, 200, 170]), "cold");
  assertEquals(judge(1, [600, 400, 300, 250, 200, 200, 199, 201]), "warm");
  assertEquals(judge(1, Array.from({ length: 20 }, (_, i) => 600 * 0.9 ** i)), "falling");
});
