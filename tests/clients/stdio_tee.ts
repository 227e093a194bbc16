// Starts a server, passes standard input and output on, and appends the messages of both sides to a file:
//
//   deno run -A tests/clients/stdio_tee.ts FILE COMMAND ARGS…
import type { WireEntry } from "./wire.ts";

const [file, command, ...args] = Deno.args;
const child = new Deno.Command(command, { args, stdin: "piped", stdout: "piped", stderr: "inherit" }).spawn();

/** Returns a stream that passes all bytes on, and appends each complete line to the file. */
function record(from: WireEntry["from"]): TransformStream<Uint8Array, Uint8Array> {
  const decoder = new TextDecoder();
  let rest = "";
  return new TransformStream({
    transform(bytes, controller) {
      const lines = (rest + decoder.decode(bytes, { stream: true })).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines.filter((line) => line.startsWith("{"))) {
        Deno.writeTextFileSync(file, `{"from":"${from}","message":${line}}\n`, { append: true });
      }
      controller.enqueue(bytes);
    },
  });
}

const input = Deno.stdin.readable.pipeThrough(record("client")).pipeTo(child.stdin).catch(() => {});
const output = child.stdout.pipeThrough(record("server")).pipeTo(Deno.stdout.writable).catch(() => {});
for (const signal of ["SIGTERM", "SIGINT"] as const) Deno.addSignalListener(signal, () => child.kill(signal));
const { code } = await child.status;
// Fixed wait: a client that has gone does not read the rest of the output.
await Promise.race([output, new Promise((resolve) => setTimeout(resolve, 1000))]);
void input;
Deno.exit(code);
