// Searches for requests that cost more CPU time or memory per byte than the known requests.
import { random } from "../../support/random.ts";
import { META } from "../../hostile/http.ts";
import type { Runtime } from "../processes.ts";
import { sleep } from "../processes.ts";
import { legacy, modern, type Sent, shapes } from "./cases.ts";
import { measure, openBaseline } from "./cost.ts";
import { startAbused } from "./server.ts";

/** A description of a request. Each field can be mutated. */
interface Gene {
  readonly tool: string;
  /** Index of the part of the request that grows. */
  readonly place: number;
  /** The repeated unit, without the commas between repetitions. A counter replaces `#`. */
  readonly unit: string;
  readonly shape: string;
  readonly size: number;
}

interface Found {
  readonly gene: Gene;
  /** The cost in microseconds or bytes, per byte of the request. */
  readonly score: number;
}

const TOOLS = [
  "any",
  "enum",
  "const",
  "texts",
  "unique",
  "contains",
  "forms",
  "patterns",
  "lengths",
  "unevaluated",
  "dependent",
  "ask",
  "steps",
  "quick",
];
const UNITS = [
  "{}",
  "[]",
  '"#"',
  "#",
  '"k#":0',
  '"#":[]',
  "null",
  '{"a":#}',
  '{"#":#}',
  "[[#]]",
  '"é"',
  '"\\ud800"',
  '"\\u0000#"',
  "1e308",
  "-0",
  '{"kind":"#"}',
  '"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx#"',
  '{"b":[#],"a":#}',
];
const PLACES = 7;

function toText({ unit, shape, size }: Gene): string {
  if (shape !== "") return shapes[shape](size);
  const parts: string[] = [];
  for (let i = 0, length = 0; length < size && i < 190_000; i++) {
    length += parts[parts.push(unit.replaceAll("#", `${i}`)) - 1].length + 1;
  }
  return /^"[^"]*":/.test(unit) ? `{${parts.join(",")}}` : `[${parts.join(",")}]`;
}

function toSent(gene: Gene): Sent {
  const text = toText(gene);
  const { tool, place } = gene;
  const call = { name: tool, arguments: { v: "@" } };
  switch (place) {
    case 0:
      return modern("tools/call", call, text);
    case 1:
      return modern("tools/call", { name: tool, arguments: "@" }, text, {
        [`${META}clientCapabilities`]: { elicitation: {} },
      });
    case 2:
      return modern("tools/call", { name: tool, arguments: {} }, text, {
        [`${META}clientCapabilities`]: { elicitation: {}, a: "@" },
      });
    case 3:
      return legacy("tools/call", call, text);
    case 4:
      return legacy("initialize", { protocolVersion: "2025-11-25", capabilities: { a: "@" } }, text);
    case 5:
      return modern("completion/complete", {
        ref: { type: "ref/prompt", name: "ask" },
        argument: { name: "word", value: "" },
        context: { arguments: "@" },
      }, text);
    default:
      return modern("prompts/get", { name: "ask", arguments: "@" }, text);
  }
}

/** Searches on one runtime for the given minutes, and prints the most expensive requests. */
export async function fuzz(runtime: Runtime, minutes: number): Promise<void> {
  const seed = Date.now() % 2 ** 31;
  const { below, pick } = random(seed);
  console.log(`\n## ${runtime}, ${minutes} min, seed ${seed}\n`);
  await using server = await startAbused(runtime);
  await openBaseline(server);
  const mutate = (gene: Gene): Gene => {
    switch (below(6)) {
      case 0:
        return { ...gene, tool: pick(TOOLS) };
      case 1:
        return { ...gene, place: below(PLACES) };
      case 2:
        return { ...gene, shape: "", unit: pick(UNITS) };
      case 3:
        return { ...gene, shape: pick(Object.keys(shapes)) };
      case 4: {
        // Mutates the unit: combines it with another unit, or damages it.
        const [one, other] = [gene.unit, pick(UNITS)];
        return {
          ...gene,
          shape: "",
          unit: below(2) || one.includes(":")
            ? `[${other.includes('":') ? `{${other}}` : other}]`
            : `${one},${other}`.slice(0, 200),
        };
      }
      default:
        return { ...gene, size: pick([16_000, 64_000, 250_000, 1_000_000]) };
    }
  };
  const worst: Record<"cpu" | "held", Found[]> = { cpu: [], held: [] };
  const judge = async (goal: "cpu" | "held", gene: Gene): Promise<number> => {
    const sent = toSent(gene);
    const bytes = new TextEncoder().encode(sent.body).length;
    if (goal === "cpu") return (await measure(server, sent, 20_000)).cpu / bytes;
    const stop = new AbortController();
    const before = await server.held();
    const held = toSent({ ...gene, tool: "slow", place: gene.place % 4 });
    const count = Math.max(1, Math.ceil(2_000_000 / bytes));
    for (let i = 0; i < Math.min(100, count); i++) {
      fetch(server.url, { method: "POST", headers: held.headers, body: held.body, signal: stop.signal }).catch(
        () => {},
      );
    }
    await sleep(300);
    const after = await server.held();
    stop.abort();
    await sleep(50);
    return (after.heap - before.heap) / (Math.min(100, count) * bytes);
  };
  const until = performance.now() + minutes * 60_000;
  for (let n = 0; performance.now() < until; n++) {
    const goal = n % 4 ? "cpu" : "held";
    const found = worst[goal];
    const parent = found.length && below(5) ? pick(found).gene : {
      tool: pick(TOOLS),
      place: below(PLACES),
      unit: pick(UNITS),
      shape: "",
      size: 64_000,
    };
    const gene = mutate(parent);
    const score = await judge(goal, gene).catch(() => 0);
    if (server.isDead) throw new Error(`The server died during ${JSON.stringify(gene)}: ${server.errors}`);
    const same = found.findIndex((each) => JSON.stringify(each.gene) === JSON.stringify(gene));
    if (same >= 0) found.splice(same, 1);
    found.push({ gene, score });
    found.sort((a, b) => b.score - a.score).splice(10);
  }
  for (const [goal, found] of Object.entries(worst)) {
    for (const { gene, score } of found.slice(0, 5)) {
      const { body } = toSent({ ...gene, size: 60 });
      console.log(
        `- ${score.toFixed(2)} ${goal === "cpu" ? "µs" : "bytes held"} for each byte, ${gene.size} bytes of: ${
          body.slice(0, 300)
        }`,
      );
    }
  }
}
