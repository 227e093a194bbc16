// A misbehaving legacy server that client tests start as a process. The last argument selects the behaviour.
interface Runtimes {
  readonly Deno?: {
    readonly args: readonly string[];
    readonly stdin: { readonly readable: ReadableStream<Uint8Array> };
    readonly stdout: { writeSync(bytes: Uint8Array): number };
    exit(code: number): never;
    addSignalListener(signal: string, listener: () => void): void;
  };
  readonly Bun?: { readonly argv: readonly string[]; readonly stdin: { stream(): ReadableStream<Uint8Array> } };
  readonly process?: {
    readonly stdout: { write(bytes: Uint8Array): boolean };
    exit(code: number): never;
    on(signal: string, listener: () => void): void;
  };
}

const { Deno: deno, Bun: bun, process } = globalThis as Runtimes; // Each runtime lacks the other runtime's global.
const habit = (deno ? deno.args : bun?.argv ?? []).at(-1);
const input = deno ? deno.stdin.readable : bun?.stdin.stream();
const exit = (code: number) => (deno ?? process)?.exit(code);
if (!input) throw new Error("Cannot read standard input");

const say = (message: object) => console.log(JSON.stringify({ jsonrpc: "2.0", ...message }));
const decoder = new TextDecoder();
let rest = "";

if (habit === "deaf") {
  const listen = deno ? deno.addSignalListener : process?.on.bind(process);
  listen?.("SIGTERM", () => {});
}
if (habit === "noisy") console.log("Starting…\n{}\n[1]");
// A byte order mark without a line break, so that the first message follows it on the same line.
if (habit === "marked") {
  const mark = Uint8Array.of(0xef, 0xbb, 0xbf);
  if (deno) deno.stdout.writeSync(mark);
  else process?.stdout.write(mark);
}
if (habit === "mute") console.error("started");
if (habit === "wordy") console.error("ready: héllo");

for await (const bytes of input) {
  const lines = (rest + decoder.decode(bytes, { stream: true })).split("\n");
  rest = lines.pop() ?? "";
  for (const line of lines) {
    const { id, method, params } = JSON.parse(line);
    if (habit === "mute") continue;
    if (method === "initialize") {
      const { protocolVersion } = params;
      say({ id, result: { protocolVersion, capabilities: {}, serverInfo: { name: habit, version: "1" } } });
    } else if (method === "tools/list") {
      say({ id, result: { tools: [{ name: "cwd", inputSchema: { type: "object" } }] } });
    } else if (method === "tools/call" && params.name === "exit") exit(3);
    else if (method === "tools/call" && habit === "unread") {
      setInterval(() => console.error("alive"), 20);
      await new Promise(() => {});
    } else if (id !== undefined && habit === "strict") exit(1);
    else if (id !== undefined) say({ id, error: { code: -32601, message: "no such method" } });
  }
}
// A running timer prevents the process from exiting at the end of its input.
if (habit === "deaf" || habit === "stubborn") setInterval(() => console.error("alive"), 20);
