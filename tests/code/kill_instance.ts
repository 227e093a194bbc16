// An instance that a test kills: runs a program with the answer to its question, and writes each effect to a file.
import { appendFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { createServer, type Server, tool } from "../../mod.ts";
import { codeMode } from "../../src/ready/code/code.ts";
import { sqliteStore } from "../../src/stores/sqlite.ts";
import { ask } from "../support/requests.ts";

/** A program with five effects, two of them before its question. */
export const CODE = `
const out = [];
const effect = async (id) => {
  try {
    out.push(await tools.effect({ id }));
  } catch ({ message }) {
    out.push(message);
  }
};
await effect(1);
await effect(2);
out.push(await tools.ask());
await effect(3);
await effect(4);
await effect(5);
return out;`;

/** Opens an instance. `effects` is the file of the effects, and `run` distinguishes several programs. */
export function openInstance(database: string, effects: string): Server {
  const note = (line: string) => appendFileSync(effects, `${line}\n`);
  const effect = tool({
    name: "effect",
    input: { type: "object", properties: { id: { type: "number" } } },
    run: async ({ id }) => {
      note(`begin ${id}`);
      await new Promise((resolve) => setTimeout(resolve));
      note(`done ${id}`);
      return `ok ${id}`;
    },
  });
  const question = tool({
    name: "ask",
    run: async (_input, ctx) => (await ctx.elicit("ok", { message: "Go on?", schema: { type: "object" } })).action,
  });
  return createServer({
    name: "kills",
    version: "1.0.0",
    handlers: [effect, question, codeMode()],
    secret: "k".repeat(32),
    store: sqliteStore(() => new DatabaseSync(database)),
  });
}

/** Sends the program, or the answer to its question. */
export function send(server: Server, requestState?: unknown, keys: readonly string[] = []) {
  const inputResponses = Object.fromEntries(keys.map((key) => [key, { action: "accept", content: {} }]));
  return ask(server, "tools/call", {
    name: "run_code_with_effects",
    arguments: { code: CODE },
    _meta: { "io.modelcontextprotocol/clientCapabilities": { elicitation: {} } },
    ...requestState !== undefined && { requestState, inputResponses },
  });
}
