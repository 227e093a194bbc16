// The calls that the model makes if `mcp gateway` is in front of two probes.
import type { ScriptCall } from "./model/model.ts";
import type { GatewayOption } from "./own_gateway.ts";
import { script } from "./script.ts";

const SUM = { a: 4000, b: 711 };

/**
 * Calls the tools of the first server, whose name this script leaves out, and then the tools of both servers. After 30
 * requests, Gemini CLI would ask the model whether the conversation is a loop.
 */
const bothServers: readonly ScriptCall[] = [
  ...script.slice(0, -2),
  { step: "remote grow", tool: "remote_grow" },
  ...script.slice(-2),
  { step: "remote grown", tool: "remote_grown" },
  { step: "steps", tool: "program_steps" },
  { step: "remote add", tool: "remote_add", args: SUM },
  { step: "remote ask", tool: "remote_ask" },
  // The gateway starts a program again that has ended. Nobody starts the server over HTTP again.
  { step: "end", tool: "program_end" },
  { step: "add after end", tool: "program_add", args: SUM },
  { step: "remote end", tool: "remote_end" },
  { step: "remote add after end", tool: "remote_add", args: SUM },
];

/** Calls tools that the lock file does not contain, so that the client should not offer them. */
const locked: readonly ScriptCall[] = [
  { step: "add", tool: "program_add", args: SUM },
  { step: "grow", tool: "program_grow" },
  { step: "rest", tool: "program_rest" },
  ...["unreviewed", "described", "grown"].map((name) => ({ step: name, tool: `program_${name}` })),
  { step: "remote add", tool: "remote_add", args: SUM },
];

function throughSearch(name: string, args: object = {}): Omit<ScriptCall, "step"> {
  return { tool: "call_tool", args: { name, arguments: args } };
}

/** Finds tools with a search, and calls them, also the tools that the lock file does not contain. */
const searched: readonly ScriptCall[] = [
  { step: "search", tool: "search_tools", args: { query: "add two numbers" } },
  { step: "add", ...throughSearch("program_add", SUM) },
  { step: "remote add", ...throughSearch("remote_add", SUM) },
  ...["fail", "picture", "ask", "steps"].map((name) => ({ step: name, ...throughSearch(`program_${name}`) })),
  { step: "search for new", tool: "search_tools", args: { query: "a new tool that is unreviewed" } },
  ...["unreviewed", "described"].map((name) => ({ step: name, ...throughSearch(`program_${name}`) })),
];

/** Returns the calls for a gateway with options. */
export function toGatewayScript(options: readonly GatewayOption[]): readonly ScriptCall[] {
  return options.includes("search") ? searched : options.includes("lock") ? locked : bothServers;
}
