// The steps that stand around a handler, each with a check of what a caller sees of the step.
import { assert, assertEquals } from "@std/assert";
import { type Context, extension, McpError, resource } from "../../mod.ts";
import { refuseRequest } from "../../src/auth/auth.ts";
import { INTERNALS } from "../../src/core/internals.ts";
import {
  BUSY,
  HEADER_MISMATCH,
  INSUFFICIENT_SCOPE,
  INTERNAL_ERROR,
  INVALID_PARAMS,
  INVALID_REQUEST,
  MISSING_CAPABILITY,
} from "../../src/core/protocol/errors.ts";
import { idempotent, type Layer, layer, type Steps } from "../../src/layers/layers.ts";
import { customStore } from "../../src/stores/stores.ts";
import { readCaller, readHandler } from "../../src/server/call/reads.ts";
import { fakeClock } from "../../src/testing/testing.ts";
import { z } from "zod";
import { advanceUntil, started, turn, until } from "../support/behaviour.ts";
import { type Command, wrapEngine } from "../support/engines.ts";
import type { StepName, WayName } from "./way_table.ts";
import { getTask, INPUT, type Plan, Site, TOOL, TOOL_ERROR, TTL_MS, WAYS } from "./ways.ts";

/** Checks one cell of the table. `runs` states whether the step runs on the way. */
export type Check = (name: WayName, runs: boolean) => Promise<void>;

/** Code of the error with which a step refuses a call. */
const REFUSED = 7;

function refuse({ isClosed }: Site): void {
  if (isClosed) throw new McpError(REFUSED, "closed");
}

interface Reaching<T> {
  /** Whether the site closes before the step. */
  readonly closes?: boolean;
  /** Called after the handler was reached. */
  readonly look?: (site: Site) => T;
}

/** Reaches the handler of a new site. */
async function reach<T>(name: WayName, plan: Plan, { closes = false, look }: Reaching<T> = {}) {
  await using site = new Site(WAYS[name], plan, { closes });
  const { code, text } = await site.way.reach(site);
  return { site, ran: site.ran, code, text, seen: await look?.(site) };
}

interface Refusal {
  /** Code of the error. `hidden` for the error of an unknown handler. */
  readonly code: number | "hidden";
  /** The codes on ways with another code. */
  readonly codes?: { readonly [W in WayName]?: number | undefined };
  /** How often the handler runs nevertheless. Defaults to 0. */
  readonly ran?: number;
}

/** Returns a check of a step that refuses the call if the site is closed. */
function refuses(plan: Plan, { code, codes = {}, ran = 0 }: Refusal): Check {
  return async (name, runs) => {
    const open = await reach(name, plan);
    assertEquals([open.ran, open.code], [1, undefined], "a call that the step does not refuse");
    const closed = await reach(name, plan, { closes: true });
    const usual = code === "hidden" ? WAYS[name].hidden : code;
    const refused = Object.hasOwn(codes, name) ? codes[name] : usual;
    assertEquals([closed.ran, closed.code], runs ? [ran, refused] : [1, undefined], "a call that the step refuses");
  };
}

/** Returns the plan of a handler with a layer. */
function withLayer(steps: (site: Site) => Omit<Steps, "name">): Plan {
  return { handler: (site) => ({ use: [layer(() => ({ name: "step", ...steps(site) }))] }) };
}

/** Codes of the error for input that does not match the schema. A tool returns a result that the model can read. */
const INVALID = {
  prompt: INVALID_PARAMS,
  resource: INVALID_PARAMS,
  innerPrompt: INVALID_PARAMS,
  innerRead: INVALID_PARAMS,
};

/** The key of the rules is a hash, without the part of a server that other keys begin with. */
const isRules = ({ name, args: [key] }: Command) => name === "get" && /^[\w-]{43}$/.test(String(key));

/** Shares the rules for handlers over a store that does not report the rules while the site is down. */
const sharing = (site: Site) => ({
  sharedDisable: true,
  store: customStore(async () =>
    wrapEngine(await site.shared[INTERNALS].connect(), (command) => {
      if (!site.isDown || !isRules(command)) return command.run();
      site.refusals++;
      throw new Error("this shard does not respond");
    }, { close() {} }), { leaseMs: 1000, pollMs: 20, timeoutMs: 20_000 }),
});

const unknown: Plan = { server: sharing, isEarly: true, onClose: (site) => void (site.isDown = true) };
const refusesUnknown = refuses(unknown, { code: BUSY });

/** A task that another instance takes over waits until the store reports the rules. */
const waitsForRules: Check = async (name) => {
  await using site = new Site(WAYS[name], unknown, { closes: true });
  const reaching = site.way.reach(site);
  await until(() => site.refusals > 1, "the instance has tried repeatedly");
  assertEquals(site.ran, 0);
  site.isDown = false;
  assertEquals([await reaching, site.ran], [{ text: "done" }, 1]);
};

const audit = extension({ id: "com.example/audit" });

const refusesAround = refuses({
  server: (site) => ({
    use: [async (_ctx, next) => {
      refuse(site);
      return await next();
    }],
  }),
}, { code: REFUSED });

/** The tools that are called besides the handler. */
const OTHERS: readonly WayName[] = ["innerCall", "relay", "recheck"];

/** The server's middleware runs once for each call, whatever layers the handler has. */
const checkAround: Check = async (name, runs) => {
  await refusesAround(name, runs);
  const enter = layer(() => ({ name: "enter", enter: async (_call, next) => await next() }));
  for (const use of [[], [enter]]) {
    const { seen } = await reach(name, {
      handler: () => ({ use }),
      server: ({ trace }) => ({
        use: [async ({ method }, next) => {
          trace.push(method);
          return await next();
        }],
      }),
    }, { look: ({ trace, way: { method } }) => trace.filter((each) => each === method).length });
    assertEquals(seen, OTHERS.includes(name) ? 2 : 1);
  }
};

const schema = z.object({ name: z.string() });

const checkRestore: Check = async (name, runs) => {
  const plan: Plan = {
    isAsking: true,
    async run({ once, elicit }, site) {
      await once("made", () => ++site.made);
      const { content } = await elicit("who", { message: "Who?", schema });
      return String(content?.name);
    },
  };
  const { text, ran, seen } = await reach(name, plan, { look: ({ made }) => made });
  // Before a task is taken over, its handler has run on another instance.
  assertEquals([text, ran, seen], ["Ada", runs && name !== "takeOver" ? 2 : 1, 1]);
};

const LEFT: readonly WayName[] = ["task", "takeOver", "probe"];

/** What the call depends on, if it is more than the resource that the handler reads. */
const READS: { readonly [W in WayName]?: readonly ReturnType<typeof toKind>[] } = {
  innerCall: ["handler", "resource"],
  innerPrompt: ["handler", "resource"],
  innerRead: ["resource", "resource"],
  // Another caller may get other suggestions, another list, or the resource from another provider.
  innerCompletion: ["caller", "resource"],
  innerList: ["caller"],
  chain: ["caller", "resource"],
};

/** Returns what an entry of the reads of a call names. */
function toKind(entry: string): "handler" | "caller" | "resource" {
  return readCaller(entry) !== undefined
    ? "caller"
    : readHandler(entry).method === "resources/read"
    ? "resource"
    : "handler";
}

/** The handler reads a resource that `allow` hides after the site was closed. */
const checkReads: Check = async (name) => {
  const note = (site: Site): Layer =>
    audit.layer({
      async around(call, next) {
        const result = await next();
        site.trace.push(call.reads);
        return result;
      },
    });
  const isLeft = LEFT.includes(name);
  const plan: Plan = {
    handler: (site) => ({ allow: () => true, use: [note(site)] }),
    outerUse: (site) => [note(site)],
    others: (site) => [
      audit,
      resource({ uri: "secret://x", name: "secret", allow: () => !site.isSecret, read: () => "x" }),
    ],
    run: async ({ once, readResource }) => await once("read", async () => (await readResource("secret://x"))[0]),
  };
  const { seen } = await reach(name, plan, {
    async look(site) {
      assertEquals(site.ran, 1);
      if (!isLeft) return site.trace.at(-1);
      // The second run gets the value that the first run has read.
      if (name === "takeOver") assertEquals(site.trace.at(-1), ["secret://x"]);
      site.isSecret = true;
      return (await getTask(site, String(site.taskId))).error?.code;
    },
  });
  if (isLeft) return assertEquals(seen, INVALID_PARAMS, "the task of a caller that may not read the resource any more");
  assert(Array.isArray(seen), `${seen}`);
  assertEquals(seen.map(toKind).toSorted(), [...READS[name] ?? ["resource"]].toSorted(), `${seen}`);
};

/** The numbers of running and detached calls on ways without a slot of their own. */
const SLOTS: { readonly [W in WayName]?: readonly [running: number, detached: number] } = {
  task: [0, 1],
  takeOver: [0, 1],
  extension: [0, 1],
  listen: [0, 0],
  notification: [0, 0],
};

const checkSlot: Check = async (name, runs) => {
  const note = async (site: Site) => {
    await turn();
    if (name === "task") await until(() => site.server.stats().running === 0, "the response of the call");
    const { running, detached } = site.server.stats();
    site.trace.push([running, detached]);
    return true;
  };
  const isShown = WAYS[name].isShown;
  const plan: Plan = isShown
    ? { handler: (site) => ({ allow: () => note(site) }) }
    : { run: async (_ctx, site) => void await note(site) };
  const { seen } = await reach(name, plan, {
    look: async (site) => {
      if (name === "listen") await note(site);
      return site.trace.at(-1);
    },
  });
  assertEquals(seen, runs ? [1, 0] : SLOTS[name] ?? [1, 0]);
};

/** Returns the events of the calls that reach the handler, as the ids of their starts and ends. */
function listEvents({ events, way: { method } }: Site) {
  const all = events.filter(({ event }) =>
    event.method === method && !["outer", "hold", "call_tool"].includes(`${event.subject}`)
  );
  const pick = (name: string) => all.filter((each) => each.name === name).map(({ event }) => event);
  return { starts: pick("start").map(({ id }) => id), arounds: pick("around"), ends: pick("call") };
}

const checkObserver: Check = async (name, runs) => {
  for (const fails of [false, true]) {
    const run: Plan["run"] = (_ctx, { isClosed }) => {
      if (isClosed) throw new McpError(REFUSED, "failed");
    };
    const { site } = await reach(name, { run }, { closes: fails });
    if (!runs) {
      const methods = site.events.map(({ event: { method } }) => method);
      assertEquals(new Set(methods), new Set([WAYS[name].method]), "no call of the handler");
      continue;
    }
    const { starts, arounds, ends } = listEvents(site);
    assertEquals(arounds.length, name === "listen" ? 0 : 1, "the observer is around the handler once");
    // The request that becomes a task ends with the task, and its handler with the result.
    const others = name === "task" ? ends.filter(({ resultType }) => resultType === "task") : [];
    const own = ends.filter((each) => !others.includes(each));
    assertEquals(new Set(starts), new Set(ends.map(({ id }) => id)));
    assertEquals(starts.length, 1 + others.length, "each call starts once");
    const isFailed = fails && !WAYS[name].isShown;
    assertEquals(own.map(({ outcome, code }) => [outcome, code]), [
      isFailed ? ["error", REFUSED] : [name === "listen" ? "cancelled" : "result", undefined],
    ]);
    const hasParent = /^inner|^relay$|^task$/.test(name);
    assertEquals(own[0].parent !== undefined, hasParent, "the outer call");
  }
};

/** Returns a check of the time after which the call is cancelled. */
function timesOut(plan: Plan, { ran }: { readonly ran: number }): Check {
  return async (name, runs) => {
    const open = await reach(name, plan);
    assertEquals([open.ran, open.code], [1, undefined], "a call within the time");
    await using site = new Site(WAYS[name], plan, { closes: true });
    const clock = site.clock = fakeClock(Date.now());
    const reaching = started(site.way.reach(site));
    if (!runs && ran === 0) return assertEquals([(await reaching).code, site.ran], [undefined, 1]);
    await until(() => site.hangs, "the step or the handler hangs");
    const from = clock.now();
    const { code } = await advanceUntil(clock, runs ? 250 : TTL_MS / 10, reaching);
    assertEquals([site.ran, code], [ran, INTERNAL_ERROR]);
    assertEquals(clock.now() - from < 2 * TIMEOUT_MS, runs, "the time");
  };
}

const TIMEOUT_MS = 1000;

/** Nobody can answer a question of a step before the handler. */
const checkQuestions: Check = async (name, runs) => {
  const allowAsking = async ({ elicit }: Context, { trace }: Site) => {
    const asking = elicit("may", { message: "May I?", schema });
    trace.push(await asking.then(() => "answered", (error) => error instanceof TypeError ? "refused" : "asked"));
    return true;
  };
  const { code, seen } = await reach(name, {
    isAsking: true,
    handler: (site) => ({ allow: (ctx) => site.isClosed ? allowAsking(ctx, site) : true }),
  }, { closes: true, look: ({ trace }) => trace });
  assertEquals([code, new Set(seen)], [undefined, new Set(runs ? ["refused"] : [])]);
};

/** Never settles if the site is closed. */
async function hang(site: Site): Promise<void> {
  if (!site.isClosed) return;
  site.hangs = true;
  await new Promise(() => {});
}

const hanging: Plan["run"] = (_ctx, site) => hang(site);
/**
 * Without this layer, the time of the outer call would be over before the time of a step. An inner list has only the time
 * of its outer call.
 */
const outerUse = ({ way }: Site) => way.isShown ? [] : [layer(() => ({ name: "long", timeoutMs: Infinity }))];
const timed = { limits: { calls: { timeoutMs: TIMEOUT_MS } } };

const checkKey: Check = async (name) => {
  const plan: Plan = { handler: () => ({ use: [idempotent({ key: () => "key" })] }) };
  const { ran, text, seen } = await reach(name, plan, {
    look: async (site) => [(await site.send("tools/call", TOOL)).text, site.ran],
  });
  assertEquals([ran, seen], [1, ["done", 1]], "another call with the key gets the result of the first call");
  assertEquals(text, "done");
};

const checkRun: Check = async (name) => {
  const ranked = (site: Site, rank: NonNullable<Steps["rank"]>) =>
    layer(() => ({
      name: rank,
      rank,
      run: (_run, next) => (site.trace.push(rank), next()),
    }));
  const plan: Plan = { handler: (site) => ({ use: [ranked(site, "reuse"), ranked(site, "ask")] }) };
  const { ran, seen } = await reach(name, plan, { look: ({ trace }) => trace });
  assertEquals([ran, seen], [1, ["ask", "reuse"]]);
};

/** The check of each step. */
export const CHECKS: Readonly<Record<StepName, Check>> = {
  admit: refuses({
    server: (site) => ({ admit: () => site.isClosed ? refuseRequest(403, { reason: "closed" }) : true }),
  }, { code: INSUFFICIENT_SCOPE }),
  unknownRules: (name, runs) => name === "takeOver" ? waitsForRules(name, runs) : refusesUnknown(name, runs),
  disabled: refuses({ server: sharing, onClose: ({ server, handler }) => server.handlers.disable(handler) }, {
    code: "hidden",
    // The cursor of a list that all callers share is not a cursor of the list that only some callers see.
    codes: { page: INVALID_PARAMS },
  }),
  allow: refuses({ handler: (site) => ({ allow: () => !site.isClosed }) }, { code: "hidden" }),
  allowTimeout: timesOut({
    handler: (site) => ({ allow: () => site.isClosed ? hang(site).then(() => true) : true }),
    server: () => timed,
    outerUse,
  }, { ran: 0 }),
  allowQuestions: checkQuestions,
  headers: refuses({
    handler: () => ({ input: { type: "object", properties: { n: { type: "string", "x-mcp-header": "N" } } } }),
    headers: ({ isClosed }) => ({ "mcp-param-n": isClosed ? "2" : "1" }),
  }, { code: HEADER_MISMATCH }),
  scopes: refuses({ isRemade: true, handler: ({ isClosed }) => ({ scopes: [isClosed ? "other" : "use"] }) }, {
    code: INSUFFICIENT_SCOPE,
    codes: { notification: undefined },
  }),
  requires: refuses({ isRemade: true, handler: ({ isClosed }) => isClosed ? { requires: ["elicitation"] } : {} }, {
    code: MISSING_CAPABILITY,
    codes: { session: INVALID_REQUEST },
  }),
  limit: refuses(withLayer((site) => ({ limit: () => refuse(site) })), { code: REFUSED }),
  limitTimeout: timesOut({
    ...withLayer((site) => ({ limit: () => site.isClosed ? hang(site) : undefined })),
    server: () => timed,
    outerUse,
  }, { ran: 0 }),
  restore: checkRestore,
  slot: checkSlot,
  observer: checkObserver,
  enter: refuses(
    withLayer((site) => ({
      enter: async (_call, next) => {
        refuse(site);
        return await next();
      },
    })),
    { code: REFUSED },
  ),
  layerTimeout: timesOut({
    run: hanging,
    handler: () => ({ use: [layer(() => ({ name: "time", timeoutMs: TIMEOUT_MS }))] }),
  }, { ran: 1 }),
  timeout: timesOut({ run: hanging, server: () => timed }, { ran: 1 }),
  aroundExtension: refuses({
    handler: (site) => ({
      use: [audit.layer({
        around: (_call, next) => {
          refuse(site);
          return next();
        },
      })],
    }),
    others: () => [audit],
  }, { code: REFUSED }),
  around: checkAround,
  input: refuses({ handler: (site) => ({ input: INPUT.refine(() => !site.isClosed) }) }, {
    code: TOOL_ERROR,
    codes: INVALID,
  }),
  onInput: refuses(withLayer((site) => ({ onInput: () => refuse(site) })), { code: REFUSED }),
  inside: refuses(
    withLayer((site) => ({
      inside: async (_ctx, next) => {
        refuse(site);
        return await next();
      },
    })),
    { code: REFUSED },
  ),
  key: checkKey,
  run: checkRun,
  reads: checkReads,
  onOutput: refuses(withLayer((site) => ({ onOutput: () => refuse(site) })), { code: REFUSED, ran: 1 }),
  output: refuses({
    handler: (site) => ({ output: INPUT.refine(() => !site.isClosed) }),
    run: () => ({ n: "1" }),
  }, { code: INTERNAL_ERROR, ran: 1 }),
  result: refuses(
    withLayer((site) => ({
      result: () => {
        refuse(site);
        return undefined;
      },
    })),
    { code: REFUSED, ran: 1 },
  ),
};
