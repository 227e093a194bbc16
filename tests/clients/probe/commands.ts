// The commands that start the probe on each runtime. Deno only.
import { root } from "../../support/processes.ts";
import type { Tools } from "../tools.ts";

/** A probe: on a runtime, or with the official SDK. */
export type ProbeKind = "deno" | "bun" | "node" | "official";

/** Returns the command that serves a probe over HTTP on the port `PORT`. */
export function toHttpCommand(probe: ProbeKind, tools: Tools): readonly string[] {
  const words = [...toProgram(probe, tools), toFile(probe, tools)];
  return probe === "official" ? [...words, "PORT"] : [...words, "--http", "--port", "PORT"];
}

/** Returns the server file. Bun and Node run it beside the npm package. */
export function toFile(probe: ProbeKind, { npmProject, officialProject }: Tools): string {
  if (probe === "official") return `${officialProject}/official.mjs`;
  return probe === "deno" ? `${root}tests/clients/probe/probe.ts` : `${npmProject}/probe.ts`;
}

/** Returns the command that runs the library's program. For the official SDK, it runs a file. */
export function toProgram(probe: ProbeKind, { deno, bun, node, npmProject }: Tools): readonly string[] {
  const program = `${npmProject}/node_modules/@x/mcp/bin.js`;
  switch (probe) {
    case "deno":
      return [deno, "run", "-A", `${root}mod.ts`];
    case "bun":
      return [bun ?? "bun", program];
    case "node":
      return [node, program];
    case "official":
      return [deno, "run", "-A", "--quiet", "--node-modules-dir=manual"];
  }
}
