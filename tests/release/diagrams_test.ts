// Compares the sequence diagrams of the documentation with the transcripts of the wire.
import { assertEquals } from "@std/assert";
import { readPages } from "./pages.ts";

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

Deno.test({
  name: "the messages in a sequence diagram are in the transcripts that the diagram names, in the same order",
  ignore: typeof Deno === "undefined", // Only Deno reads the files.
  async fn() {
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
  },
});

Deno.test({
  name: "every diagram has a title for readers who cannot see it",
  ignore: typeof Deno === "undefined", // Only Deno reads the files.
  async fn() {
    const diagrams = (await readPages()).flatMap(({ blocks }) =>
      blocks.filter(({ language }) => language === "mermaid")
    );
    assertEquals(diagrams.filter(({ text }) => !/^ *accTitle: \S/m.test(text)), []);
  },
});
