// Which calls are measured, and when a connection has no more work.
import { assert, assertEquals, assertLess } from "@std/assert";
import { tool } from "../../mod.ts";
import { Call } from "../../src/server/call/call.ts";
import type { Engine } from "../../src/server/engine/era.ts";
import { InFlight } from "../../src/server/call/in_flight.ts";
import type { Link } from "../../src/server/call/link.ts";
import { BOUNDS } from "../support/limits.ts";
import { modernEra } from "../../src/server/eras/eras.ts";
import { parseMessage } from "../../src/core/protocol/message_parser.ts";
import { buildServer } from "../../src/server/server.ts";
import type { ServerOptions } from "../../src/server/options.ts";
import { openPipe } from "../../src/server/transports/channel.ts";
import { gate, turn, until } from "../support/behaviour.ts";
import { toRequest } from "../support/requests.ts";

/** Creates a server, and exposes the objects that its era uses. */
function start(options: Partial<ServerOptions> = {}) {
  const engines: Engine[] = [];
  const server = buildServer({ name: "scheduled", version: "1.0.0", ...options }, (engine) => {
    engines.push(engine);
    return modernEra(engine);
  });
  return { server, engine: engines[0] };
}

/** A call that sends no messages. */
class SilentCall extends Call {
  notify(): undefined {}
  askClient(): Promise<void> {
    return Promise.resolve();
  }
  makeOnce(): Promise<void> {
    return Promise.resolve();
  }
}

/** Creates a call on a separate connection. */
function createCall({ accounts, host }: Engine, id: number): Call {
  const text = JSON.stringify({ jsonrpc: "2.0", id, method: "tools/call", params: { name: "hold" } });
  const message = parseMessage(text, BOUNDS.request);
  assert(message.kind === "request");
  const link: Link = {
    transport: "memory",
    inFlight: new InFlight(),
    account: accounts.find(),
    streams: false,
    send: () => undefined,
    wait() {},
    open() {},
    release() {},
  };
  const session = () => () => undefined as never; // The cast is safe, because no test reads this value.
  return new SilentCall({ host, session }, link, message, { version: "2026-07-28", capabilities: {} });
}

Deno.test("at most 16 running calls are not measured yet", async () => {
  const { server, engine } = start();
  const { pass, open } = gate();
  const runner = { run: () => pass.then(() => ({})) };
  const calls = Array.from({ length: 40 }, (_, id) => createCall(engine, id));
  const guess = calls[0].weight;
  const outcomes = calls.map((call) => engine.scheduler.run(call, runner));
  assertEquals(calls.filter(({ weight }) => weight >= guess).length, 16);
  assertLess(calls[39].weight, guess / 10);
  open();
  await Promise.all(outcomes);
  // Later calls can take the slots of the ended calls.
  const later = createCall(engine, 0);
  await engine.scheduler.run(later, runner);
  assertEquals(later.weight, guess);
  await server.close();
});

Deno.test("a subscription on a connection without running calls does not delay the server's closing", async () => {
  const { pass, open } = gate();
  const hold = tool({ name: "hold", run: () => pass });
  const { server, engine } = start({ handlers: [hold], limits: { calls: { closeMs: 60_000 } } });
  const lines: string[] = [];
  const pipe = openPipe(server, { write: (line) => void lines.push(line) });
  pipe.receive(await toRequest("tools/call", { name: "hold" }).text());
  pipe.receive(await toRequest("subscriptions/listen", { notifications: { toolsListChanged: true } }).text());
  await until(() => lines.some((line) => line.includes("acknowledged")), "the subscription");
  let isIdle = false;
  engine.scheduler.idle().then(() => isIdle = true);
  await turn();
  assertEquals(isIdle, false, "the server was idle while a call was running");
  open();
  await turn();
  assertEquals(isIdle, true, "the server was not idle, although only the subscription was left");
  assertEquals(lines.length, 2);
  await server.close();
  pipe.close();
});
