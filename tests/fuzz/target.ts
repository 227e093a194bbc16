// The server that is fuzzed. It has a handler of each kind, and limits low enough to be reached.
import { createServer, prompt, resource, resourceProvider, type Server, tool } from "../../mod.ts";
import { shapes } from "./shapes.ts";
import { testLimits } from "../support/limits.ts";
import { throwing } from "../support/throwing.ts";

/** A server with its unexpected errors. */
export interface Target {
  readonly server: Server;
  /** The errors that were reported to `observer.fault`. Each error is a bug. */
  readonly faults: unknown[];
}

/** Maximum length of an accepted line in bytes. */
export const LINE_BYTES = 16_384;

const HIDDEN = "hidden in /home/someone/server.ts:12";

const handlers = [
  tool({ name: "good", run: () => "good" }),
  tool({ name: "echo", input: { type: "object" }, run: (input) => JSON.stringify(input) }),
  tool({
    name: "typed",
    input: {
      type: "object",
      properties: {
        name: { type: "string", minLength: 1, maxLength: 20, pattern: "^[a-z]+$" },
        count: { type: "integer", minimum: 0, maximum: 10 },
        tags: { type: "array", items: { enum: ["a", "b"] }, uniqueItems: true, maxItems: 3 },
        choice: { anyOf: [{ type: "null" }, { type: "number", multipleOf: 0.5 }] },
        deep: { $ref: "#/$defs/tree" },
      },
      required: ["name"],
      additionalProperties: false,
      $defs: { tree: { type: "object", additionalProperties: { $ref: "#/$defs/tree" } } },
    },
    output: { type: "object", properties: { name: { type: "string" } }, required: ["name"] },
    // The cast is safe, because the input schema requires a name.
    run: (input) => ({ name: (input as { readonly name: string }).name }),
  }),
  tool({
    name: "region",
    input: {
      type: "object",
      properties: {
        region: { type: "string", "x-mcp-header": "Region" },
        count: { type: "integer", "x-mcp-header": "Count" },
      },
    },
    run: () => "here",
  }),
  tool({
    name: "steps",
    async run(_input, ctx) {
      await ctx.progress(1, { total: 2 });
      await ctx.log.info({ step: 1 });
      await ctx.progress(2, { total: 2 });
      return "done";
    },
  }),
  tool({
    name: "ask",
    async run(_input, ctx) {
      const made = await ctx.once("made", () => 7);
      const schema = { type: "object", properties: { ok: { type: "boolean" }, n: { type: "integer" } } } as const;
      const [first, second] = await Promise.all([
        ctx.elicit("first", { message: "First?", schema }),
        ctx.elicit("second", { message: "Second?", schema }),
      ]);
      const third = await ctx.sample("third", {
        messages: [{ role: "user", content: { type: "text", text: `${first.action} ${second.action}` } }],
        maxTokens: 5,
      });
      return `${made} ${first.action} ${second.action} ${third.role}`;
    },
  }),
  tool({ name: "broken", run: throwing(new Error(HIDDEN)) }),
  resource({ uri: "note://one", name: "one", read: () => "one" }),
  resource({
    uri: "repo://{owner}/{+path}{?ref}",
    name: "repo",
    complete: { owner: (value) => ["ada", "alan"].filter((owner) => owner.startsWith(value)) },
    list: () => [{ uri: "repo://ada/a", name: "a" }],
    read: (variables) => JSON.stringify(variables),
  }),
  resourceProvider({ scheme: "dir", name: "dir", read: (uri) => uri }),
  prompt({
    name: "greet",
    input: { type: "object", properties: { who: { type: "string" }, how: { type: "string" } }, required: ["who"] },
    complete: { how: (value) => [value] },
    run: (input) => `Greet ${JSON.stringify(input)}`,
  }),
  ...shapes,
];

/** Starts a server. */
export function createTarget(): Target {
  const faults: unknown[] = [];
  const server = createServer({
    name: "fuzz",
    version: "1.0.0",
    handlers,
    cors: { origins: ["https://app.example.com"] },
    limits: testLimits({
      calls: { answerMs: 30, pageItems: 3 },
      request: { bodyBytes: 65_536, lineBytes: LINE_BYTES, bodyMs: 500 },
      streams: { watchedUris: 20 },
      replay: { events: 50 },
    }),
    observer: {
      fault({ error }) {
        if (!(error instanceof Error && error.message === HIDDEN)) faults.push(error);
      },
    },
  });
  return { server, faults };
}
