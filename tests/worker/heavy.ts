// The handler that the tests run in a worker thread.
import { z } from "zod";
import { McpError, ToolError } from "../../mod.ts";
import { hasScopes } from "../../src/auth/auth.ts";
import { exposeWorker, type WorkerContext } from "../../src/ready/worker/worker.ts";

export default exposeWorker(
  async (input: { readonly job: string; readonly value?: unknown }, ctx): Promise<unknown> => {
    const { job, value } = input;
    if (job === "echo") return value;
    if (job === "context") return { method: ctx.method, version: ctx.client.version, meta: ctx.meta };
    if (job === "facts") {
      const read = (name: string) => {
        try {
          return String(Reflect.get(ctx.principal ?? {}, name));
        } catch (error) {
          return `${error}`;
        }
      };
      return Object.fromEntries((value as readonly string[]).map((name) => [name, read(name)]));
    }
    if (job === "caller") return { principal: ctx.principal, hasTest: tests(ctx) };
    if (["spin", "wait", "poll", "check"].includes(job)) await ctx.progress(1);
    if (job === "spin") { while (performance.now() >= 0); }
    if (job === "poll") {
      while (!ctx.signal.aborted);
      return ctx.signal.reason;
    }
    if (job === "check") { for (;;) ctx.signal.throwIfAborted(); }
    if (job === "announce and burn") await ctx.progress(1);
    if (job === "burn" || job === "announce and burn") {
      for (const end = performance.now() + Number(value); performance.now() < end;);
      return "burnt";
    }
    if (job === "progress") {
      await ctx.progress(1, { total: 2, message: "half" });
      await ctx.log.warning({ at: 1 }, { logger: "thread" });
      await ctx.progress(2);
      return "done";
    }
    if (job === "flood") {
      for (let n = 1; n <= 100_000; n++) ctx.progress(n);
      return "flooded";
    }
    if (job === "book") {
      const id = await ctx.once("id", () => crypto.randomUUID());
      const [day, seats] = await Promise.all([
        ctx.elicit("day", { message: "Which day?", schema: z.object({ day: z.enum(["mon", "tue"]) }) }),
        ctx.elicit("seats", {
          message: "How many?",
          schema: z.object({ seats: z.number().int().transform((seats) => seats * 10) }),
        }),
      ]);
      return { isSame: id === await ctx.once("id", () => "another"), day: day.content, seats: seats.content };
    }
    if (job === "pay") {
      const schema = z.object({ yes: z.boolean() });
      return (await ctx.elicit("sure", { message: "Pay?", schema, singleUse: true })).action;
    }
    if (job === "visit") {
      return (await ctx.elicitUrl("sure", { message: "Pay", url: "https://a.example/", singleUse: true })).action;
    }
    if (job === "roots") return await ctx.roots();
    if (job === "once") return await ctx.once("known", () => "new");
    if (job === "leave") {
      ctx.roots();
      setTimeout(() => ctx.progress(7), 20);
      return "left";
    }
    if (job === "leave an error") {
      setTimeout(() => {
        throw new Error("left behind");
      }, 20);
      return "left";
    }
    if (job === "once too large") return await ctx.once("k", () => "x".repeat(100), { maxBytes: 100 });
    if (job === "fail once") return await ctx.once("k", () => Promise.reject(new ToolError("could not make it")));
    if (job === "tool error") throw new ToolError("try tuesday");
    if (job === "mcp error") throw new McpError(7, "seven", { at: 7 });
    if (job === "bug") throw new RangeError("out of range");
    if (job === "function") return () => {};
    if (job === "late") setTimeout(() => Promise.reject(new Error("too late")));
    if (job === "uncaught") {
      setTimeout(() => {
        throw new Error("nobody caught this");
      });
    }
    if (job === "crash when idle") {
      setTimeout(() => {
        throw new Error("nobody caught this either");
      }, 20);
      return "done";
    }
    if (job === "close") globalThis.close?.();
    if (job === "exit") typeof Deno === "undefined" ? eval("process").exit(3) : Deno.exit(3);
    if (job === "print") console.log("printed");
    if (job === "wait") {
      await new Promise((_, reject) => ctx.signal.addEventListener("abort", () => reject(ctx.signal.reason)));
    }
    // Fixed wait: threads that fail after their call, or never end.
    await new Promise((resolve) => setTimeout(resolve, 60_000));
  },
);

/** Returns whether hasScopes refuses a thread's context, which lacks the server's scope rules. */
function tests(ctx: WorkerContext): boolean {
  try {
    return hasScopes(ctx, "notes:read") || true;
  } catch {
    return false;
  }
}
