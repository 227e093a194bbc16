// The server file that the CLI serves during the load measurements.
import { type Handler, tool } from "../../mod.ts";

/** Prints on standard error which calls have started. */
const wait = tool({
  name: "wait",
  input: { type: "object" },
  async run({ ms, n }: Readonly<Record<string, unknown>>) {
    if (n !== undefined) console.error(`began ${n};`);
    await new Promise((resolve) => setTimeout(resolve, Number(ms)));
    return `waited ${n}`;
  },
});

const handlers: readonly Handler[] = [wait];
export default handlers;
