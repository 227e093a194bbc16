// A stdio server whose author holds a timer. exit_test.ts starts it as a process, and passes the options as JSON.
import { createServer } from "../../mod.ts";
import { serveStdio } from "../../src/server/transports/stdio/stdio.ts";
import { bun, deno, node } from "../../src/core/runtime.ts";

const given = (deno?.args ?? bun?.argv.slice(2) ?? node?.argv.slice(2) ?? []).at(-1) ?? "{}";
const { stopMs, ...options }: { readonly stopMs?: number; readonly exit?: boolean } = JSON.parse(given);

setInterval(() => {}, 60_000); // Like a connection pool, it keeps the process alive.
const signal = stopMs === undefined ? undefined : AbortSignal.timeout(stopMs);
await serveStdio(createServer({ name: "held", version: "1.0.0" }), { ...options, signal });
console.error("served");
