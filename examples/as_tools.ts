// A handbook for clients whose models can only call tools: pages that are resources, and a prompt that asks the user for
// details, are also tools. They keep their rights, because a tool reads and asks for its caller.
import { createServer, prompt, resource } from "@x/mcp";
import { asTools } from "@x/mcp/handlers";
import { z } from "zod";

const pages = new Map([
  ["holidays", "30 days a year. Ask your lead two weeks before."],
  ["travel", "Second class. Keep the receipts."],
]);

const page = resource({
  uri: "handbook://{title}",
  name: "handbook_page",
  description: "A page of the handbook",
  variables: z.object({ title: z.string().describe("Title in lower case, such as holidays") }),
  list: () => [...pages.keys()].map((title) => ({ uri: `handbook://${title}`, name: title })),
  read: ({ title }) => pages.get(title),
});

// Only leads see this page and its tool.
const salaries = resource({
  uri: "lead://salaries",
  name: "salaries",
  description: "The salary bands",
  allow: ({ principal }) => principal?.id === "lead",
  read: () => "A: 50,000 to 60,000. B: 60,000 to 80,000.",
});

const request = prompt({
  name: "holiday_request",
  description: "Starts a request for holidays",
  input: z.object({ from: z.string().describe("First day") }),
  async run({ from }, ctx) {
    const schema = z.object({ days: z.number().int().min(1).max(30) });
    const { content } = await ctx.elicit("days", { message: "How many days?", schema });
    return `Write a request to my lead for ${content?.days ?? "some"} days of holidays from ${from}. The rules: ${
      pages.get("holidays")
    }`;
  },
});

export default createServer({
  name: "handbook",
  version: "1.0.0",
  handlers: [
    page,
    salaries,
    request,
    asTools(page),
    asTools(salaries),
    asTools(request),
    asTools(), // list_resources and read_resource
  ],
});
