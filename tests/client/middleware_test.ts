// The `use` option of the client: middleware functions run around requests.
import { assert, assertEquals, assertRejects } from "@std/assert";
import { createServer, resource, tool } from "../../mod.ts";
import { type ClientMiddleware, connect } from "../../src/client/client.ts";
import { textOf } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";

function createEcho() {
  const meta = tool({
    name: "meta",
    async run(_input, { meta, progress }) {
      await progress(1);
      return JSON.stringify(meta.traceparent ?? null);
    },
  });
  const who = tool({
    name: "who",
    async run(_input, { elicit }) {
      const schema = { type: "object", properties: { name: { type: "string" } } };
      return String(Object((await elicit("name", { message: "Who are you?", schema })).content).name);
    },
  });
  const book = resource({ uri: "book://1", name: "book", read: () => "text" });
  return createServer({ name: "echo", version: "1.0.0", handlers: [meta, who, book] });
}

const capabilities = { elicitation: { form: {} } };

for (const era of ["modern", "legacy"] as const) {
  for (const transport of ["http", "memory"] as const) {
    const join = async (stack: AsyncDisposableStack, use: readonly ClientMiddleware[]) => {
      const server = createEcho();
      stack.defer(() => server.close());
      const client = transport === "http"
        ? await connect("http://localhost/mcp", { era, use, capabilities, fetch: (request) => server.fetch(request) })
        : await connect(server, { era, use, capabilities });
      return stack.use(client);
    };

    Deno.test(`middleware functions run around every request, in order (${era} over ${transport})`, async () => {
      await using stack = new AsyncDisposableStack();
      const steps: string[] = [];
      const log = (name: string): ClientMiddleware => async (request, next) => {
        steps.push(`${name} ${request.method}`);
        const result = await next();
        steps.push(`${name} end`);
        return result;
      };
      const client = await join(stack, [log("outer"), log("inner")]);
      const handshake = era === "modern" ? "server/discover" : "initialize";
      assertEquals(steps.splice(0), [`outer ${handshake}`, `inner ${handshake}`, "inner end", "outer end"]);
      await client.callTool("meta");
      await client.readResource("book://1");
      await client.listTools();
      assertEquals(steps.filter((step) => step.startsWith("outer ") && step !== "outer end"), [
        "outer tools/call",
        "outer resources/read",
        "outer tools/list",
      ]);
    });

    Deno.test(`a middleware function can change and repeat requests, and return results of its own (${era} over ${transport})`, async () => {
      await using stack = new AsyncDisposableStack();
      let sent = 0;
      const trace: ClientMiddleware = (request, next) => {
        const { params } = request;
        return next({ ...request, params: { ...params, _meta: { traceparent: "00-1" } } });
      };
      const twice: ClientMiddleware = async (request, next) => {
        if (request.method !== "tools/call") return await next();
        await next();
        sent++;
        return await next();
      };
      const cached: ClientMiddleware = (request, next) =>
        request.method === "resources/read" ? { contents: [{ uri: "book://1", text: "cached" }] } : next();
      const client = await join(stack, [cached, twice, trace]);
      assertEquals([textOf(await client.callTool("meta")), sent], ['"00-1"', 1]);
      assertEquals((await client.readResource("book://1")).contents[0].text, "cached");
    });

    Deno.test(`a request fails with the error that a middleware function throws (${era} over ${transport})`, async () => {
      await using stack = new AsyncDisposableStack();
      const client = await join(stack, [(request, next) => {
        if (request.method === "resources/read") throw new Error("not today");
        return request.method === "tools/call" ? Object(undefined)[1] : next();
      }]);
      await assertRejects(() => client.readResource("book://1"), Error, "not today");
      await assertRejects(() => client.callTool("meta"), TypeError, sentence("tools/call", "use"));
      assert((await client.listTools()).length);
    });

    Deno.test(`middleware sees and changes the questions of its request, the outermost last (${era} over ${transport})`, async () => {
      await using stack = new AsyncDisposableStack();
      const steps: string[] = [];
      const note = (name: string): ClientMiddleware => (request, next) =>
        next(request, {
          async onQuestion(question, answer) {
            steps.push(`${name} ${request.method} ${question.method} ${question.params.message}`);
            const result = await answer({ ...question, params: { ...question.params, message: name } });
            steps.push(`${name} got ${Object(result).action}`);
            return name === "inner" ? { ...Object(result), content: { name: "changed" } } : result;
          },
        });
      const shown: string[] = [];
      const client = await join(stack, [note("outer"), note("inner")]);
      const result = await client.callTool("who", {}, {
        onElicit({ message }) {
          shown.push(message);
          return { action: "accept", content: { name: "Ada" } };
        },
      });
      assertEquals([textOf(result), shown], ["changed", ["outer"]]);
      assertEquals(steps, [
        "inner tools/call elicitation/create Who are you?",
        "outer tools/call elicitation/create inner",
        "outer got accept",
        "inner got accept",
      ]);
    });

    Deno.test(`middleware sees the notifications of its request (${era} over ${transport})`, async () => {
      await using stack = new AsyncDisposableStack();
      const seen: string[] = [];
      const note = (name: string): ClientMiddleware => (request, next) =>
        next(request, { onNotification: ({ method, params }) => seen.push(`${name} ${method} ${params.progress}`) });
      const client = await join(stack, [note("outer"), note("inner")]);
      const progress: number[] = [];
      await client.callTool("meta", {}, { onProgress: ({ progress: each }) => progress.push(each) });
      const isProgress = (text: string) => text.includes("progress");
      assertEquals([seen.filter(isProgress), progress], [
        ["inner notifications/progress 1", "outer notifications/progress 1"],
        [1],
      ]);
    });

    Deno.test(`a middleware that returns no result for a question fails the question (${era} over ${transport})`, async () => {
      await using stack = new AsyncDisposableStack();
      const client = await join(stack, [(request, next) => next(request, { onQuestion: () => undefined })]);
      const onElicit = () => ({ action: "decline" as const });
      const outcome = await client.callTool("who", {}, { onElicit }).then((result) => result.isError, () => true);
      assertEquals(outcome, true);
    });
  }
}
