/**
 * A demonstration server with at least one handler of each kind. It needs no permissions and no packages.
 */
import { app, supportsApp, ui } from "../extensions/apps/apps.ts";
import { createServer, prompt, resource, type Server, tool } from "../library.ts";
import { task, tasks } from "../extensions/tasks/tasks.ts";
import { VERSION } from "./version.ts";

const greetings: Readonly<Record<string, string>> = {
  english: "Good day!",
  french: "Bonjour !",
  german: "Guten Tag!",
  japanese: "こんにちは。",
};

export function demo(): Server {
  return createServer({
    name: "demo",
    version: VERSION,
    title: "Demonstration",
    instructions: "A demonstration of tools, resources, prompts, tasks and apps. The server has no side effects.",
    handlers: [about, greeting, add, bake, countdown, roll, dice, explain, tasks()],
  });
}

const number = { type: "number" } as const;

const add = tool({
  name: "add",
  title: "Add two numbers",
  description: "Adds two numbers",
  input: { type: "object", properties: { a: number, b: number }, required: ["a", "b"] },
  annotations: { readOnlyHint: true, destructiveHint: false, openWorldHint: false },
  run: ({ a, b }) => Number(a) + Number(b),
});

// A tool with an elicitation. The user answers in the client, and the model receives only the tool's result.
const bake = tool({
  name: "bake",
  title: "Bake a cake",
  description: "Bakes a cake of the flavor that the user chooses",
  annotations: { readOnlyHint: true, destructiveHint: false, openWorldHint: false },
  requires: ["elicitation"],
  run: async (_input, ctx) => {
    const flavor = { type: "string", enum: ["chocolate", "lemon", "plum"] } as const;
    const { action, content } = await ctx.elicit("flavor", {
      message: "Which flavor?",
      schema: { type: "object", properties: { flavor }, required: ["flavor"] },
    });
    return action === "accept" ? `Here is your ${content?.flavor} cake.` : "No cake today.";
  },
});

// A tool whose calls can become tasks. Clients that support tasks get a task handle if a call takes longer than a
// second. All other clients wait for the result, and receive progress notifications.
const countdown = tool({
  name: "countdown",
  title: "Count down",
  description: "Counts down to zero, in four steps per second, and reports progress",
  input: { type: "object", properties: { from: { type: "integer", minimum: 1, maximum: 40 } }, required: ["from"] },
  annotations: { readOnlyHint: true, destructiveHint: false, openWorldHint: false },
  use: [task({ after: 1000 })],
  run: async ({ from }, ctx) => {
    const total = Number(from);
    for (let done = 0; done < total; done++) {
      await ctx.progress(done, { total, message: `${total - done}` });
      await new Promise((resolve) => setTimeout(resolve, 250));
      ctx.signal.throwIfAborted();
    }
    return "Zero";
  },
});

// An app. Clients that support apps show this document to display the result of the tool.
const dice = app({
  uri: "ui://dice",
  html: `<!doctype html><title>Dice</title><h1></h1>
    <script>mcpApp.on("result", ({ structuredContent: { eyes } }) =>
      document.querySelector("h1").textContent = eyes.map((each) => "⚀⚁⚂⚃⚄⚅"[each - 1]).join(" "));</script>`,
});

const roll = tool({
  name: "roll",
  title: "Roll two dice",
  description: "Rolls two dice",
  annotations: { readOnlyHint: true, destructiveHint: false, openWorldHint: false },
  use: [ui(dice)],
  run: (_input, ctx) => {
    const eyes = [1, 2].map(() => 1 + Math.floor(Math.random() * 6));
    return supportsApp(ctx, dice) ? { eyes } : `You rolled ${eyes.join(" and ")}.`;
  },
});

const about = resource({
  uri: "demo://about",
  name: "about",
  description: "About this server",
  read: () => "Demonstrates tools, an elicitation, a task, an app, greetings and a prompt.",
});

const greeting = resource({
  uri: "demo://greeting/{language}",
  name: "greeting",
  description: "A greeting in the chosen language, with completion of the language",
  complete: { language: (value) => Object.keys(greetings).filter((name) => name.startsWith(value.toLowerCase())) },
  read: ({ language }) => Object.hasOwn(greetings, language) ? greetings[language] : undefined,
});

const explain = prompt({
  name: "explain",
  description: "Asks for an explanation",
  input: {
    type: "object",
    properties: { topic: { type: "string", description: "What to explain" } },
    required: ["topic"],
  },
  run: ({ topic }) => `Explain ${topic} in three sentences.`,
});
