/**
 * A demonstration server with one or more handlers of each kind. It needs no permissions and no packages.
 *
 * @module
 */
import { createServer, prompt, resource, type Server, tool, ToolError } from "../library.ts";
import { VERSION } from "./version.ts";

const greetings: Readonly<Record<string, string>> = {
  english: "Good day!",
  french: "Bonjour !",
  german: "Guten Tag!",
  japanese: "こんにちは。",
};

/** Creates the demonstration server. */
export function demo(): Server {
  return createServer({
    name: "demo",
    version: VERSION,
    title: "Demonstration",
    instructions: "A demonstration of tools, resources and prompts. Nothing here has side effects.",
    handlers: [about, greeting, add, countdown, explain],
  });
}

const number = { type: "number" } as const;

const add = tool({
  name: "add",
  description: "Adds two numbers",
  input: { type: "object", properties: { a: number, b: number }, required: ["a", "b"] },
  annotations: { readOnlyHint: true },
  run: ({ a, b }) => Number(a) + Number(b),
});

const countdown = tool({
  name: "countdown",
  description: "Counts down to zero, four steps a second, and reports progress",
  input: { type: "object", properties: { from: { type: "integer", minimum: 1, maximum: 40 } }, required: ["from"] },
  annotations: { readOnlyHint: true },
  run: async ({ from }, ctx) => {
    const total = Number(from);
    for (let done = 0; done < total; done++) {
      await ctx.progress(done, { total, message: `${total - done}` });
      await new Promise((resolve) => setTimeout(resolve, 250));
      if (ctx.signal.aborted) throw new ToolError(`Stopped at ${total - done}`);
    }
    return "Zero";
  },
});

const about = resource({
  uri: "demo://about",
  name: "about",
  description: "About this server",
  read: () => "A demonstration: two tools, this text, a greeting in several languages, and a prompt.",
});

const greeting = resource({
  uri: "demo://greeting/{language}",
  name: "greeting",
  description: "A greeting in a language, which can be completed",
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
