// If another request cancels a call, the HTTP response to the call never has the status for a notification.
import { assertEquals, assertStringIncludes } from "@std/assert";
import { createServer } from "../../mod.ts";
import { LEGACY_VERSIONS, plainTool, until } from "../support/behaviour.ts";
import { readReply } from "../support/requests.ts";
import { toHello, toSession, toSessionRequest } from "../support/sessions.ts";

const BOTH = "application/json, text/event-stream";

for (const version of LEGACY_VERSIONS) {
  Deno.test(`the response to a cancelled call is a stream or JSON (${version})`, async (t) => {
    let running = 0;
    const wait = plainTool("wait", ({ signal }) => {
      running++;
      return new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    });
    const noisy = plainTool("noisy", async ({ log, signal }) => {
      await log.warning("working");
      running++;
      await new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    });
    const limits = { calls: { running: 1, runningPerClient: 1 } };
    await using server = createServer({ name: "s", version: "1", handlers: [wait, noisy], limits });
    const session: Record<string, string> = { "mcp-protocol-version": version };
    const post = (body: unknown, accept = BOTH) => server.fetch(toSessionRequest(body, { accept, ...session }));
    session["mcp-session-id"] = await toSession(await post(toHello({ version })));
    const call = (id: unknown, name = "wait") => ({ jsonrpc: "2.0", id, method: "tools/call", params: { name } });
    const cancel = async (requestId: unknown) => {
      const note = { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId } };
      assertEquals((await post(note)).status, 202);
    };
    const started = async (count: number) => {
      await until(() => running === count, "the call runs");
      running = 0;
    };
    const checkEmpty = async (pending: Promise<Response>) => {
      const response = await pending;
      assertEquals([response.status, response.headers.get("content-type")], [200, "text/event-stream"]);
      const text = await response.text();
      // The first event of a resumable stream is empty.
      const isEmpty = (line: string) => !line || /^(:|id: |retry: |data: $)/.test(line);
      assertEquals(text.split("\n").filter((line) => !isEmpty(line)), [], text);
    };

    await t.step("the client accepts streams", async () => {
      for (const [id, accept] of [[1, BOTH], ["two", BOTH], [0, "text/event-stream"]] as const) {
        const pending = post(call(id), accept);
        await started(1);
        await cancel(id);
        await checkEmpty(pending);
      }
    });

    await t.step("the client accepts only JSON", async () => {
      const pending = post(call(3), "application/json");
      await started(1);
      await cancel(3);
      const response = await pending;
      assertEquals([response.status, response.headers.get("content-type")], [200, "application/json"]);
      const { id, error } = await readReply(response);
      assertEquals([id, error.code], [3, -32600]);
    });

    await t.step("the call is waiting in the queue", async () => {
      const first = post(call(4));
      await started(1);
      let isAnswered = false;
      const second = post(call(5)).finally(() => isAnswered = true);
      // Cancel repeatedly: the test cannot see when the call waits, and a cancellation that arrives before the call has
      // no effect.
      await until(async () => {
        await cancel(5);
        return isAnswered;
      }, "the waiting call was cancelled");
      await checkEmpty(second);
      assertEquals(running, 0);
      await cancel(4);
      await checkEmpty(first);
    });

    await t.step("the call has sent a message", async () => {
      const pending = post(call(6, "noisy"));
      await started(1);
      await cancel(6);
      const response = await pending;
      assertEquals([response.status, response.headers.get("content-type")], [200, "text/event-stream"]);
      const text = await response.text();
      assertStringIncludes(text, "working");
      assertEquals(text.includes('"id":6'), false);
    });

    if (version === "2025-03-26") {
      await t.step("the call is in a batch", async () => {
        const note = { jsonrpc: "2.0", method: "notifications/initialized" };
        for (const accept of [BOTH, "application/json"]) {
          const pending = post([note, call("a")], accept);
          await started(1);
          await cancel("a");
          if (accept === BOTH) await checkEmpty(pending);
          else assertEquals((await readReply(await pending)).error.code, -32600);
        }
        const some = post([call("a"), { jsonrpc: "2.0", id: "b", method: "ping" }], "application/json");
        await started(1);
        await cancel("a");
        assertEquals(await readReply(await some), [{ jsonrpc: "2.0", id: "b", result: {} }]);
        assertEquals((await post([note, note])).status, 202);
      });
    }
  });
}
