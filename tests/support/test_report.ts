// Reads and writes the JUnit files of the test runners.

/** A test in a report. */
export interface Case {
  readonly name: string;
  /** The path of the file, relative to the project. */
  readonly file: string;
  readonly state: "passed" | "failed" | "skipped";
  readonly seconds: number;
}

const ENTITIES: Readonly<Record<string, string>> = { lt: "<", gt: ">", quot: '"', apos: "'", amp: "&" };

function decode(text: string): string {
  return text.replace(/&(?:#(\d+)|#x([\da-f]+)|(\w+));/gi, (whole, decimal, hex, name) => {
    if (name) return ENTITIES[name] ?? whole;
    return String.fromCodePoint(decimal ? Number(decimal) : parseInt(hex, 16));
  });
}

function encode(text: string): string {
  return text.replace(/[<>"'&]/g, (sign) => `&#${sign.charCodeAt(0)};`);
}

/** Returns a report of tests, which {@linkcode readCases} reads. */
export function writeCases(cases: readonly Case[]): string {
  const bodies = { passed: "", failed: "<failure/>", skipped: "<skipped/>" };
  const lines = cases.map(({ name, file, state, seconds }) =>
    `<testcase name="${encode(name)}" file="${encode(file)}" time="${seconds}">${bodies[state]}</testcase>`
  );
  return `<testsuites>\n${lines.join("\n")}\n</testsuites>\n`;
}

/** Returns the tests in a report. Deno lists the steps of a test separately, but they count as part of the test. */
export function readCases(xml: string): Case[] {
  const found: Case[] = [];
  for (
    const [, attributes, body = ""] of xml.matchAll(/<testcase\b((?:\s+\w+="[^"]*")*)\s*(?:\/>|>([^]*?)<\/testcase>)/g)
  ) {
    const read = (name: string) => decode(new RegExp(`\\s${name}="([^"]*)"`).exec(attributes)?.[1] ?? "");
    const file = (read("file") || read("classname")).replace(/^\.\//, "");
    const name = read("name");
    const state = /<(?:failure|error)\b/.test(body) ? "failed" : /<skipped\b/.test(body) ? "skipped" : "passed";
    found.push({ name, file, state, seconds: Number(read("time")) });
  }
  // A step can precede its test. The file of a step may be a helper that runs it.
  const names = new Set(found.map(({ name }) => name));
  return found.filter(({ name }) => ![...name.matchAll(/ > /g)].some(({ index }) => names.has(name.slice(0, index))));
}
