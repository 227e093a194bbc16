// Measures the bytes that a server loads at startup. `deno task bench -- --only=size` prints them.
const root = new URL("../../", import.meta.url);

/** Maximum size of a server with one tool, minified, in KiB. */
export const BUNDLE_KIB = 104;

/** The size of a bundle. */
export interface Weight {
  readonly bytes: number;
  /** The size in bytes if each file is compressed. */
  readonly gzip: number;
}

/**
 * Measures the minified code that a server with one tool loads at startup, without zod. `library` is the path of the
 * main entry, relative to the project.
 */
export async function weighServer(library: string): Promise<Weight> {
  const folder = await Deno.makeTempDir();
  try {
    await Deno.writeTextFile(
      `${folder}/server.ts`,
      `import { z } from "zod";
import { createServer, tool } from "${new URL(library, root).pathname}";
const add = tool({ name: "add", input: z.object({ a: z.number(), b: z.number() }), run: ({ a, b }) => a + b });
export default createServer({ name: "calc", version: "1.0.0", handlers: [add] });
`,
    );
    // Code splitting puts code that is loaded on demand into separate files.
    const args = [
      "build",
      "--minify",
      "--splitting",
      "--target=bun",
      "--packages=external",
      "--outdir",
      `${folder}/out`,
    ];
    const { success, stderr } = await new Deno.Command("bun", { args: [...args, `${folder}/server.ts`] }).output();
    if (!success) throw new Error(`Cannot bundle ${library}: ${new TextDecoder().decode(stderr)}`);
    return await weighFiles(`${folder}/out`, "./server.js");
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** Returns the size of a bundled file and of all files that it imports statically. */
async function weighFiles(folder: string, entry: string): Promise<Weight> {
  const files = new Map<string, Weight>();
  const waiting = [entry];
  for (const name of waiting) {
    if (files.has(name)) continue;
    const source = await Deno.readTextFile(`${folder}/${name}`);
    const packed = new Response(source).body?.pipeThrough(new CompressionStream("gzip"));
    const gzip = (await new Response(packed).arrayBuffer()).byteLength;
    files.set(name, { bytes: new TextEncoder().encode(source).length, gzip });
    for (const [, path] of source.matchAll(/\b(?:from|import)\s*["'](\.\/[^"']+)["']/g)) waiting.push(path);
  }
  const all = [...files.values()];
  const sum = (name: keyof Weight) => all.reduce((sum, file) => sum + file[name], 0);
  return { bytes: sum("bytes"), gzip: sum("gzip") };
}
