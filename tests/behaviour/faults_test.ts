// By default, the server reports an unexpected error with the method and the name of the tool, prompt or resource.
import { assert, assertEquals } from "@std/assert";
import { type Context, prompt, resource, service, tool } from "../../mod.ts";
import { consoleObserver } from "../../src/observe/observe.ts";
import { behaviour, raise, until } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";

const fail = (): never => raise(new Error("broken"));

const tx = service("tx", () => 1, { per: "call", dispose: fail });

const handlers = [
  tool({ name: "broken", run: fail }),
  tool({ name: "slow", run: async (_, ctx) => await ctx.readResource("config://app") }),
  tool({ name: "hidden", allow: fail, run: () => "" }),
  tool({ name: "late", run: (_, ctx) => ctx.defer(fail) }),
  tool({ name: "tidy", services: { tx }, run: fail }),
  tool({ name: "fine", run: () => "" }),
  prompt({ name: 'say "hi"', run: fail }),
  resource({ uri: "config://app", name: "config", read: fail }),
  resource({ uri: "note://{id}", name: "note", complete: { id: fail }, read: fail }),
];

/** Runs a function, and adds the first line of each printed error to `printed`, with `<id>` instead of its id. */
async function collect(run: (printed: string[]) => Promise<void>): Promise<void> {
  const printed: string[] = [];
  const { error } = console;
  console.error = (text: string) => void printed.push(text.split("\n")[0].replace(/\b[0-9a-f]{8}\b/, "<id>"));
  try {
    await run(printed);
  } finally {
    console.error = error;
  }
}

behaviour("the default error report names the handler of the call", async (connect, { era }) => {
  const use = async (call: Context, next: () => Promise<Record<string, unknown>>) => {
    if (call.params.name === "fine") fail();
    return await next();
  };
  const { client, takeFaults } = await connect({ handlers, use: [use], observer: consoleObserver() });
  const requests: readonly (readonly [method: string, params: Record<string, unknown>, printed: readonly string[]])[] =
    [
      ["tools/call", { name: "broken" }, [sentence("tools/call", '"broken"')]],
      ["tools/call", { name: "hidden" }, [sentence("tools/call", '"hidden"')]],
      ["tools/call", { name: "late" }, [sentence("tools/call", '"late"')]],
      ["tools/call", { name: "fine" }, [sentence("tools/call", '"fine"')]],
      ["tools/call", { name: "tidy" }, [sentence("tools/call", '"tidy"'), sentence("tools/call", 'service "tx"')]],
      // The tool rethrows the resource's error, which the server has already reported with the resource.
      ["tools/call", { name: "slow" }, [sentence("resources/read", '"config://app"')]],
      ["prompts/get", { name: 'say "hi"' }, [sentence("prompts/get", '"say \\"hi\\""')]],
      ["resources/read", { uri: "config://app" }, [sentence("resources/read", '"config://app"')]],
      ["resources/read", { uri: "note://1" }, [sentence("resources/read", '"note://1"')]],
      [
        "completion/complete",
        { ref: { type: "ref/resource", uri: "note://{id}" }, argument: { name: "id", value: "" } },
        [sentence("completion/complete", '"note://{id}"')],
      ],
      // A list request does not concern a single tool, even if the client sends a tool's name.
      ["tools/list", { name: "broken" }, [sentence("tools/list")]],
    ];
  await collect(async (printed) => {
    // The first request is repeated at the end, so that the test detects an extra report for the last request.
    for (const [method, params, expected] of [...requests, requests[0]]) {
      await client.request(method, params).catch(() => {});
      await until(() => printed.length >= expected.length, `${method} has been printed`);
      assertEquals(printed.splice(0).sort(), [...expected], `${era} ${JSON.stringify(params)}`);
    }
  });
  takeFaults();
});

behaviour("the default error report has only the stack frames in the author's files", async (connect) => {
  const { client, takeFaults } = await connect({ handlers, observer: consoleObserver() });
  const printed: string[] = [];
  const { error } = console;
  console.error = (text: string) => void printed.push(text);
  try {
    await client.request("tools/call", { name: "broken" }).catch(() => {});
    await until(() => printed.length > 0, "the error has been printed");
  } finally {
    console.error = error;
  }
  const [, message, ...lines] = printed.join("\n").split("\n");
  assertEquals(message, "Error: broken");
  const frames = lines.filter((line) => line.includes(":"));
  assert(frames.length > 0 && frames.every((frame) => frame.includes("/tests/")), printed.join("\n"));
  assertEquals(lines.filter((line) => !frames.includes(line)).length, 1, printed.join("\n"));
  takeFaults();
});
