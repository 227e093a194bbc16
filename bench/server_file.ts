// Source code of the server files for the start benchmarks. Each server has one tool with a zod schema, and imports a
// given copy of the library.

/** The paths of the entry points of a copy of the library. */
export interface Entries {
  readonly library: string;
  readonly stdio: string;
}

/** Returns the source of a file that calls `serveStdio`. */
export function toStdioFile({ library, stdio }: Entries): string {
  return `${toServer(library)}import { serveStdio } from ${JSON.stringify(stdio)};\n\nawait serveStdio(server);\n`;
}

/** Returns the source of a file for the command line: its default export is the server. */
export function toServerFile({ library }: Entries): string {
  return `${toServer(library)}\nexport default server;\n`;
}

function toServer(library: string): string {
  return `import { z } from "zod";
import { createServer, tool } from ${JSON.stringify(library)};

const pair = z.object({ a: z.number(), b: z.number() });
const add = tool({ name: "add", description: "Adds two numbers", input: pair, run: ({ a, b }) => a + b });
const server = createServer({ name: "bench", version: "1.0.0", handlers: [add] });
`;
}
