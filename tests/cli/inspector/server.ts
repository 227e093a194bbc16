// A server that uses all features of the inspector page, and tries to inject markup.
import { createServer, type Handler, media, prompt, resource, resourceLink, tool, ToolError } from "@x/mcp";
import { replaceInResponses } from "./foreign.ts";

/** Markup that the page must always show as text. */
const markup = `<img src=x onerror="document.title='broken'"><script>document.title='broken'</script>`;
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";

/** Stands for a URL that this library refuses. */
const website = "https://replaced.example/";

function pause(ms: number): Promise<void> {
  // Fixed wait: a tool that takes as long as its caller asks for.
  return new Promise((resolve) => setTimeout(resolve, ms));
}

const forms: readonly Handler[] = [
  tool({
    name: "every_field",
    title: "Every kind of field",
    description: "Gives back what it is given.\nThe form has one field of each kind.",
    annotations: { readOnlyHint: true, idempotentHint: true },
    input: {
      type: "object",
      properties: {
        text: { type: "string", description: "Any text", examples: ["for example this"] },
        day: { type: "string", format: "date" },
        moment: { type: "string", format: "date-time" },
        count: { type: "integer", minimum: 1, maximum: 10 },
        ratio: { type: "number", default: 0.5 },
        flag: { type: "boolean" },
        maybe: { type: "boolean" },
        color: { type: "string", enum: ["red", "green", "blue"] },
        size: { oneOf: [{ const: 1, title: "Small" }, { const: 2, title: "Large" }] },
        days: { type: "array", items: { type: "string", enum: ["Mon", "Tue", "Wed"] } },
        tags: { type: "array", items: { type: "string" } },
        place: {
          type: "object",
          properties: { city: { type: "string" }, zip: { type: ["string", "null"] } },
          required: ["city"],
        },
        owner: { $ref: "#/$defs/person" },
        nothing: { type: ["string", "null"] },
      },
      required: ["text", "count", "flag", "color", "place", "nothing"],
      $defs: {
        person: { type: "object", properties: { name: { type: "string" }, boss: { $ref: "#/$defs/person" } } },
      },
    },
    run: (input) => ({ given: input }),
  }),
  tool({
    name: "repeated",
    description: "Takes an argument that is repeated in a header",
    input: { type: "object", properties: { region: { type: "string", "x-mcp-header": "Region" } } },
    run: (_, ctx) => `Header: ${ctx.http?.headers.get("mcp-param-region") ?? "none"}`,
  }),
];

const runs: readonly Handler[] = [
  tool({
    name: "steps",
    description: "Takes five steps and tells of each",
    run: async (_, ctx) => {
      for (let step = 1; step <= 5; step++) {
        await ctx.progress(step, { total: 5, message: `step ${step}` });
        await ctx.log[step === 4 ? "error" : "info"](`Log of step ${step}`);
        await pause(60);
      }
      return "All steps taken.";
    },
  }),
  tool({
    name: "endless",
    description: "Runs until it is stopped",
    run: async (_, ctx) => {
      await ctx.progress(1);
      await new Promise((resolve) => ctx.signal.addEventListener("abort", resolve));
      stopped++;
      return "Stopped.";
    },
  }),
  tool({ name: "how_often_stopped", run: () => stopped }),
  tool({
    name: "refuse",
    description: "Fails in a way that a model can read",
    run: () => {
      throw new ToolError("The cupboard is bare.");
    },
  }),
  tool({
    name: "crash",
    description: "Fails unexpectedly",
    run: () => {
      throw new Error("A secret of the server");
    },
  }),
  tool({
    name: "turn",
    description: "Adds a tool, or takes it away",
    run: () => {
      isThere = !isThere;
      if (isThere) server.handlers.add(extra);
      else server.handlers.remove(extra);
      return isThere ? "Added." : "Taken away.";
    },
  }),
  tool({
    name: "tick",
    description: "Changes a resource",
    run: () => {
      ticks++;
      server.resourceUpdated("test://ticks");
      return ticks;
    },
  }),
];

const askers: readonly Handler[] = [
  tool({
    name: "ask_twice",
    description: "Asks one thing after another",
    run: async (_, ctx) => {
      const schema = {
        type: "object",
        properties: {
          name: { type: "string", description: "Your name", default: "Ada" },
          mail: { type: "string", format: "email", title: "E-mail address" },
          likes: { type: "array", items: { type: "string", enum: ["tea", "coffee"] } },
        },
        required: ["name"],
      };
      const first = await ctx.elicit("who", { message: "Who are you?", schema });
      if (first.action !== "accept") return `The first answer was ${first.action}.`;
      const sure = { type: "object", properties: { sure: { type: "boolean" } }, required: ["sure"] };
      const second = await ctx.elicit("sure", { message: "Are you sure?", schema: sure });
      return JSON.stringify([first.content, second.action, second.content]);
    },
  }),
  tool({
    name: "ask_all",
    description: "Asks the model, for roots, and for a visit to a page",
    run: async (_, ctx) => {
      const [answer, roots] = await Promise.all([
        ctx.sample("poem", {
          messages: [{ role: "user", content: { type: "text", text: "Write a poem." } }],
          maxTokens: 100,
        }),
        ctx.roots(),
      ]);
      const { action } = await ctx.elicitUrl("pay", { message: "Please pay.", url: "https://pay.example/bill?id=1" });
      return JSON.stringify([answer.content, roots, action]);
    },
  }),
];

const extra = tool({ name: "extra", run: () => "Here." });
let isThere = false;
let ticks = 0;
let stopped = 0;

/** Stands for image data that is not Base64. */
const placeholder = btoa("not an image");

const hostile: readonly Handler[] = [
  tool({
    name: "hostile",
    title: markup,
    description: `${markup} and \u202Etext that runs backwards\u202C`,
    input: {
      type: "object",
      properties: {
        [markup]: { type: "string", title: markup, description: markup, default: markup },
        ["__proto__"]: { type: "string", default: "own" },
        choice: { type: "string", enum: [markup, "javascript:alert(1)"] },
      },
    },
    run: (input) => ({
      content: [
        { type: "text", text: `${markup} ${JSON.stringify(input)}` },
        { type: "resource_link", uri: "javascript:document.title='broken'", name: markup },
        { type: "image", data: placeholder, mimeType: "image/png" },
        {
          type: "image",
          data: btoa(`<svg xmlns="http://www.w3.org/2000/svg" onload="top.document.title='broken'"/>`),
          mimeType: "image/svg+xml",
        },
        { type: "resource", resource: { uri: markup, mimeType: "text/html", text: markup } },
      ],
      structuredContent: { [markup]: markup },
    }),
  }),
  tool({
    name: "media",
    description: "Gives an image, a link and bytes",
    run: () => [
      media(Uint8Array.fromBase64(pixel), "image/png"),
      resourceLink("test://ticks", { name: "ticks" }),
      { type: "resource", resource: { uri: "test://bytes", mimeType: "application/zip", blob: "AAECAw==" } },
    ],
  }),
];

const resources: readonly Handler[] = [
  resource({
    uri: "test://ticks",
    name: "ticks",
    description: "How often it has ticked",
    mimeType: "application/json",
    read: () => ({ ticks }),
  }),
  resource({ uri: "test://html", name: markup, mimeType: "text/html", read: () => markup }),
  resource({
    uri: "test://{kind}/{name}",
    name: "pairs",
    complete: {
      kind: (typed) => ["animal", "angle"].filter((kind) => kind.startsWith(typed)),
      name: (typed, { kind }) => {
        const names = kind === "angle" ? ["acute", "right"] : ["ape", "bee"];
        return names.filter((name) => name.startsWith(typed));
      },
    },
    read: ({ kind, name }) => `${kind}: ${name}`,
  }),
];

const prompts: readonly Handler[] = [
  prompt({
    name: "explain",
    description: "Asks for an explanation",
    input: {
      type: "object",
      properties: { topic: { type: "string", description: "What to explain" }, tone: { type: "string" } },
      required: ["topic"],
    },
    complete: { topic: (typed) => ["gravity", "grammar"].filter((topic) => topic.startsWith(typed)) },
    run: ({ topic, tone }) => `Explain ${topic}${tone ? `, ${tone}` : ""}.`,
  }),
];

const server = createServer({
  name: "inspected",
  version: "1.2.3",
  title: "Inspected <b>server</b>",
  instructions: `Try everything. ${markup}`,
  websiteUrl: website,
  handlers: [...forms, ...runs, ...askers, ...hostile, ...resources, ...prompts],
  observer: { fault() {} },
});

replaceInResponses(server, {
  [placeholder]: `"onerror="document.title='broken'`,
  // This library refuses such a URL, but other libraries may send it.
  [website]: "javascript:document.title='broken'",
});

export default server;
