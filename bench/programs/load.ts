// A small load generator for machines without wrk. Arguments: the port, the number of connections, the duration in
// seconds, a file with the path, the number of tenants, the header lines, an empty line and the body, and the first request
// id. The generator replaces `{tenant}` by the number of a tenant. It reads each response completely, but does not parse
// the response.
import { isWhole } from "./wire.ts";

const [port, connections, seconds, file, first] = Deno.args;
const [head, body] = (await Deno.readTextFile(file)).split("\n\n");
const size = new TextEncoder().encode(body.trimEnd()).length;
const [path, tenants, ...headers] = head.split("\n");
if (!headers.some((line) => line.startsWith("host: "))) headers.unshift(`host: 127.0.0.1:${port}`);
const lines = [`POST ${path} HTTP/1.1`, ...headers, `content-length: ${size}`];
const [before, after] = `${lines.join("\r\n")}\r\n\r\n${body.trimEnd()}`.split(/(?<="id":)1000000/);
const encoder = new TextEncoder();
const decoder = new TextDecoder("latin1");
const end = performance.now() + Number(seconds) * 1000;
const times: number[] = [];
let id = Number(first);
let failed = 0;

async function run(): Promise<void> {
  using connection = await Deno.connect({ port: Number(port) });
  const buffer = new Uint8Array(256 * 1024);
  while (performance.now() < end) {
    const start = performance.now();
    const bytes = encoder.encode((before + ++id + after).replaceAll("{tenant}", `${id % Number(tenants)}`));
    for (let at = 0; at < bytes.length;) at += await connection.write(bytes.subarray(at));
    let text = "";
    while (!isWhole(text)) {
      const count = await connection.read(buffer);
      if (count === null) throw new Error("Cannot read the answer: the connection ended");
      text += decoder.decode(buffer.subarray(0, count));
    }
    if (!text.startsWith("HTTP/1.1 2")) failed++;
    times.push(performance.now() - start);
  }
}

const start = performance.now();
await Promise.all(Array.from({ length: Number(connections) }, run));
const micros = Math.round((performance.now() - start) * 1000);
times.sort((a, b) => a - b);
const at = (part: number) => Math.round(times[Math.floor(times.length * part)] * 1000);
console.log(`JSON ${JSON.stringify({ requests: times.length, micros, failed, p50: at(0.5), p99: at(0.99) })}`);
