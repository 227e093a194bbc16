// A minimal stdio server. The server splits the input into lines, parses each line, and writes a recorded response with
// the id of the request. All responses to one input chunk are written together. The first argument is the file with the
// response. If the second argument is `zod`, the program loads zod before it reads input.
import { args, bun, isNode } from "./serve.ts";

const [file, library] = args;
if (library) await import("zod");
const { default: texts }: { default: readonly string[] } = await import(file, { with: { type: "json" } });
const { result } = JSON.parse(texts[texts.length - 1]);

const input: AsyncIterable<Uint8Array> = bun ? bun.stdin.stream() : isNode ? process.stdin : Deno.stdin.readable;
const encoder = new TextEncoder();
const decoder = new TextDecoder();
let rest = new Uint8Array();

async function write(bytes: Uint8Array): Promise<void> {
  if (isNode) await new Promise((written) => process.stdout.write(bytes, written));
  else if (bun) await bun.write(bun.stdout, bytes);
  else for (let at = 0; at < bytes.length;) at += await Deno.stdout.write(bytes.subarray(at));
}

for await (const chunk of input) {
  let bytes = chunk;
  if (rest.length) {
    bytes = new Uint8Array(rest.length + chunk.length);
    bytes.set(rest);
    bytes.set(chunk, rest.length);
  }
  let out = "";
  let from = 0;
  for (let at = bytes.indexOf(10); at >= 0; at = bytes.indexOf(10, from)) {
    const { id } = JSON.parse(decoder.decode(bytes.subarray(from, at)));
    if (id !== undefined) out += JSON.stringify({ jsonrpc: "2.0", id, result }) + "\n";
    from = at + 1;
  }
  rest = bytes.slice(from);
  if (out) await write(encoder.encode(out));
}
