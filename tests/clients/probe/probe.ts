// The server that real clients call. Every tool returns a mark, so that a test can see which part of a result a client
// passes to the model. The file runs from the repository on Deno and Bun, and beside the npm package on Node.
//
// With `PROBE_RESOURCE` (the URL of this server), the server requires access tokens: of `PROBE_ISSUER` (the URL of an
// authorization server), or else its own, for which users sign in at a fake of GitHub. With `PROBE_NEW`, it has a tool
// more, and another description of a tool.
import process from "node:process";
import { createServer, media, prompt, resource, resourceLink, tool, ToolError } from "@x/mcp";
import { oauth } from "@x/mcp/oauth";
import { github, oauthProxy } from "@x/mcp/oauth/proxy";
import { fakeGitHub } from "@x/mcp/testing";
import { z } from "zod";

const { PROBE_ISSUER: issuer, PROBE_RESOURCE: protectedUrl, PROBE_NEW: isNew } = process.env;
const scopes = ["notes:read"];
const hub = fakeGitHub();

/** Returns the metadata document of a client, because its host cannot be reached. */
function toDocument({ url }: Request): Promise<Response> {
  const redirects = ["http://localhost/callback", "http://127.0.0.1/callback"];
  return Promise.resolve(Response.json({ client_id: url, client_name: "A client", redirect_uris: redirects }));
}

const auth = protectedUrl === undefined
  ? undefined
  : issuer !== undefined
  ? oauth({ resource: protectedUrl, issuers: [issuer], scopes })
  : oauthProxy({
    resource: protectedUrl,
    provider: github(hub.client),
    who: ({ facts }) => facts.login === "ada",
    scopes,
    fetch: hub.fetch,
    documents: { fetch: toDocument },
  });

/** A red square of 8 by 8 pixels. */
const PNG = Uint8Array.from(
  atob(
    "iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAEklEQVR4nGP4z8CAFWEXHbQSACj/P8Fu7N9hAAAAAElFTkSuQmCC",
  ),
  (char) => char.charCodeAt(0),
);

function pause(ms: number): Promise<void> {
  return new Promise((end) => setTimeout(end, ms));
}

const grown = tool({ name: "grown", description: "Appears when grow is called", run: () => "GROWN-MARK" });

const unreviewed = tool({ name: "unreviewed", description: "NEW-MARK: a new tool", run: () => "UNREVIEWED-MARK" });

const tools = [
  tool({
    name: "add",
    description: "Adds two numbers",
    input: z.object({ a: z.number(), b: z.number() }),
    run: ({ a, b }) => a + b,
  }),
  tool({
    name: "fail",
    description: "Fails with a message for the model",
    run: () => {
      throw new ToolError("FAIL-MARK: no flight on this day; try the day after");
    },
  }),
  tool({
    name: "both",
    description: "Returns a text, and other structured content",
    run: () => ({
      content: [{ type: "text" as const, text: "TEXT-MARK" }],
      structuredContent: { mark: "STRUCTURED-MARK" },
    }),
  }),
  tool({
    name: "quiet",
    description: "Returns structured content without a text",
    text: "none",
    run: () => ({ mark: "QUIET-MARK" }),
  }),
  tool({ name: "picture", description: "Returns an image", run: () => media(PNG, "image/png") }),
  tool({
    name: "chart",
    description: "Returns an object with an image",
    run: () => ({ day: "CHART-MARK", chart: new Blob([PNG], { type: "image/png" }) }),
  }),
  tool({
    name: "link",
    description: "Returns only a link to a resource",
    run: () => resourceLink("probe://static", { name: "LINK-MARK" }),
  }),
  tool({
    name: "linked",
    description: "Returns a text beside a link to a resource",
    run: () => ["BESIDE-MARK", resourceLink("probe://static", { name: "LINK-MARK" })],
  }),
  tool({
    name: "embedded",
    description: "Returns the contents of a resource",
    run: () => ({
      type: "resource" as const,
      resource: { uri: "probe://static", mimeType: "text/plain", text: "EMBEDDED-MARK" },
    }),
  }),
  tool({
    name: "ask",
    description: "Asks the user for a color",
    run: async (_, ctx) => {
      const schema = z.object({ color: z.string().default("red") });
      const { action } = await ctx.elicit("color", { message: "Which color?", schema });
      return `ASK-MARK ${action}`;
    },
  }),
  tool({
    name: "visit",
    description: "Asks the user to open a page",
    run: async (_, ctx) => {
      const { action } = await ctx.elicitUrl("page", { message: "Open the page", url: "https://example.com/page" });
      return `VISIT-MARK ${action}`;
    },
  }),
  tool({
    name: "who",
    description: "Returns what the client says about itself",
    run: (_, { client: { info, version, capabilities } }) => JSON.stringify({ info, version, capabilities }),
  }),
  tool({
    name: "closed",
    description: "Closes its stream before it returns",
    run: async (_, ctx) => {
      ctx.closeStream(50);
      await pause(200); // The stream must end before the result is there, and a handler is not notified of this.
      return "CLOSED-MARK";
    },
  }),
  tool({
    name: "rest",
    description: "Returns after a second, in which the client can list the tools again",
    run: async () => {
      await pause(1000);
      return "REST-MARK";
    },
  }),
  tool({
    name: "large",
    description: "Returns a line of a given number of characters",
    input: z.object({ characters: z.number() }),
    run: ({ characters }) => `BEGIN-MARK ${"word ".repeat(characters / 5 - 4)} END-MARK`,
  }),
  tool({ name: "dotted.name", description: "Has a dot in its name", run: () => "DOTTED-MARK" }),
  tool({ name: `long_${"x".repeat(80)}_name`, description: "Has a name of 90 letters", run: () => "LONG-MARK" }),
  tool({
    name: "described",
    description: `Has a description of about 6,000 characters. ${"More words. ".repeat(497)} END-MARK${
      isNew ? " NEW-MARK" : ""
    }`,
    run: () => "DESCRIBED-MARK",
  }),
  tool({
    name: "grow",
    description: "Adds a tool",
    run: (_, ctx) => {
      ctx.server.handlers.add(grown);
      return "GROW-MARK";
    },
  }),
  tool({
    name: "steps",
    description: "Reports its progress",
    run: async (_, ctx) => {
      for (let done = 1; done <= 3; done++) await ctx.progress(done, { total: 3, message: `STEP-MARK ${done}` });
      return "STEPS-MARK";
    },
  }),
  tool({ name: "end", description: "Ends the server", run: () => process.exit(3) }),
  ...isNew ? [unreviewed] : [],
];

export default createServer({
  name: "probe",
  version: "1.0.0",
  auth,
  routes: [{
    path: "/github",
    fetch: ({ url }) => hub.fetch(new Request(`https://github.com/login/oauth/authorize${new URL(url).search}`)),
  }],
  instructions: "INSTRUCTIONS-MARK: call the tools of this server one after another.",
  handlers: [
    ...tools,
    resource({ uri: "probe://static", name: "static", description: "A text", read: () => "STATIC-MARK" }),
    resource({ uri: "probe://item/{id}", name: "item", description: "An item", read: ({ id }) => `ITEM-MARK ${id}` }),
    prompt({
      name: "greet",
      description: "Greets a person",
      input: z.object({ name: z.string() }),
      run: ({ name }) => `PROMPT-MARK ${name}`,
    }),
  ],
});
