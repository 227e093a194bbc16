#!/usr/bin/env node
/**
 * The executable of the npm package. Checks the version of Node first, because an older version fails in the middle of
 * a command, with an error that does not name the version.
 *
 * @module
 */

// This file imports nothing statically, because an older version could not load the rest of the program.
const OLDEST = [22, 18] as const;

const { node, bun, deno } = process.versions;
const [major, minor] = node.split(".").map(Number);
const isOld = bun === undefined && deno === undefined &&
  (major < OLDEST[0] || major === OLDEST[0] && minor < OLDEST[1]);
if (isOld) {
  console.error(
    `Cannot run on Node ${node}: @x/mcp needs Node ${OLDEST.join(".")} or newer; update Node, or use Bun or Deno`,
  );
  process.exit(2);
}
const { startProgram } = await import("./program.ts");
await startProgram();
