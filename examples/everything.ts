// The tools, resources and prompts that the official conformance suite requires of a server, with the names and texts
// that the suite checks. `deno task conformance` runs the suite against this file on both runtimes.
//
// With `MCP_ISSUERS` (URLs of authorization servers, separated by spaces) and `MCP_RESOURCE` (the URL of this server),
// the server requires access tokens. Calls, reads and prompts then need the scopes in `MCP_SCOPES`.
//
// With `MCP_STORE` (`memory`, `redis://host:port/db`, `postgres://…`, `sqlite:path` or `denokv:path`) and `MCP_SECRET`,
// several instances act as one server. Tests of these instances call four additional tools.
//
// With `MCP_REVISIONS` (dates of protocol revisions, separated by spaces), the server serves only these revisions.
import { existsSync } from "node:fs";
import process from "node:process";
import {
  type Context,
  createServer,
  type Handler,
  McpError,
  type Principal,
  prompt,
  resource,
  type Revision,
  type Server,
  tool,
  ToolError,
} from "@x/mcp";
import { idempotent } from "@x/mcp/layers";
import { oauth } from "@x/mcp/oauth";
import { skills } from "@x/mcp/skills";
import { task, tasks } from "@x/mcp/tasks";
import { memoryStore, type Store } from "@x/mcp/stores";
import { denoKvStore } from "@x/mcp/stores/deno-kv";
import { postgresStore } from "@x/mcp/stores/postgres";
import { redisStore } from "@x/mcp/stores/redis";
import { sqliteStore } from "@x/mcp/stores/sqlite";
import { z } from "zod";

/**
 * Returns the words in an environment variable. Returns an empty list if the variable is not set or may not be read.
 */
function readWords(variable: string): readonly string[] {
  try {
    return process.env[variable]?.split(" ").filter((word) => word !== "") ?? [];
  } catch {
    return [];
  }
}

const issuers = readWords("MCP_ISSUERS");
const [resourceUrl] = readWords("MCP_RESOURCE");
if (issuers.length && !resourceUrl) {
  throw new Error("Cannot check tokens: MCP_RESOURCE is missing; set it to the URL of this server");
}
const scopes = issuers.length ? readWords("MCP_SCOPES") : [];
const [storeUrl] = readWords("MCP_STORE");
const revisions = readWords("MCP_REVISIONS") as readonly Revision[]; // `createServer` checks the dates.
const auth = issuers.length ? oauth({ resource: resourceUrl, issuers, scopes }) : storeUrl ? admitAll : undefined;

/** Gives all requests the same principal, so that idempotency keys and links to results are valid for all requests. */
function admitAll(): Principal {
  return { id: "everybody", scopes: [] };
}

/** Opens the store at a URL. The client library of the store loads with the first operation. */
function openStore(url: string): Store {
  const [, kind, path] = /^(\w+):?(.*)$/s.exec(url) ?? [];
  switch (kind) {
    case "memory":
      return memoryStore();
    case "redis":
      return redisStore(async () => {
        const { createClient } = await import("redis");
        return createClient({ url, disableOfflineQueue: true });
      });
    case "postgres":
      return postgresStore(async () => {
        const { default: { Pool } } = await import("pg");
        return new Pool({ connectionString: url });
      });
    case "sqlite":
      return sqliteStore(async () => {
        const { DatabaseSync } = await import("node:sqlite");
        return new DatabaseSync(path);
      });
    case "denokv":
      return denoKvStore(() => Deno.openKv(path));
    default:
      throw new Error(
        `Cannot open the store: MCP_STORE is ${url}; write memory, redis://…, postgres://…, sqlite:… or denokv:…`,
      );
  }
}

const store = storeUrl ? openStore(storeUrl) : undefined;
const [secret] = readWords("MCP_SECRET");

const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
const WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=";

const image = { type: "image", data: PNG, mimeType: "image/png" } as const;

function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}

function toText(text: string): { readonly type: "text"; readonly text: string } {
  return { type: "text", text };
}

/** Returns a sampling request with this text. */
function toQuestion(text: string): Parameters<Context["sample"]>[1] {
  return { messages: [{ role: "user", content: toText(text) }], maxTokens: 100 };
}

// One tool for each kind of content.

const contents: readonly Handler[] = [
  tool({
    scopes,
    name: "test_simple_text",
    description: "Gives one text",
    run: () => "This is a simple text response for testing.",
  }),
  tool({ scopes, name: "test_image_content", description: "Gives an image", run: () => image }),
  tool({
    scopes,
    name: "test_audio_content",
    description: "Gives a sound",
    run: () => ({ type: "audio", data: WAV, mimeType: "audio/wav" }),
  }),
  tool({
    scopes,
    name: "test_embedded_resource",
    description: "Gives a resource",
    run: () => ({
      type: "resource",
      resource: {
        uri: "test://embedded-resource",
        mimeType: "text/plain",
        text: "This is an embedded resource content.",
      },
    }),
  }),
  tool({
    scopes,
    name: "test_multiple_content_types",
    description: "Gives a text, an image and a resource",
    run: () => [
      toText("Multiple content types test:"),
      image,
      {
        type: "resource",
        resource: {
          uri: "test://mixed-content-resource",
          mimeType: "application/json",
          text: '{"test":"data","value":123}',
        },
      },
    ],
  }),
  tool({
    scopes,
    name: "test_error_handling",
    description: "Fails, in a way that a model can read",
    run: () => {
      throw new ToolError("This tool intentionally returns an error for testing");
    },
  }),
  tool({
    scopes,
    name: "json_schema_2020_12_tool",
    description: "Takes what only raw JSON Schema can describe",
    input: {
      $schema: "https://json-schema.org/draft/2020-12/schema",
      type: "object",
      $defs: {
        address: {
          $anchor: "addressDef",
          type: "object",
          properties: { street: { type: "string" }, city: { type: "string" } },
        },
      },
      properties: {
        name: { type: "string" },
        address: { $ref: "#/$defs/address" },
        contactMethod: { type: "string", enum: ["phone", "email"] },
        phone: { type: "string" },
        email: { type: "string" },
      },
      allOf: [{ anyOf: [{ required: ["phone"] }, { required: ["email"] }] }],
      if: { properties: { contactMethod: { const: "phone" } }, required: ["contactMethod"] },
      then: { required: ["phone"] },
      else: { required: ["email"] },
      additionalProperties: false,
    },
    run: (input) => input,
  }),
  tool({
    scopes,
    name: "test_x_mcp_header",
    description: "Takes an argument that clients repeat in a header",
    input: z.object({ region: z.string().meta({ "x-mcp-header": "Region" }).optional() }),
    run: ({ region = "none" }) => `Region: ${region}`,
  }),
];

// Tools that send notifications before their result.

const talkers: readonly Handler[] = [
  tool({
    scopes,
    name: "test_tool_with_progress",
    description: "Tells how far it is",
    run: async (_, ctx) => {
      for (const progress of [0, 50, 100]) {
        await ctx.progress(progress, { total: 100 });
        await pause(50);
      }
      return "Done.";
    },
  }),
  tool({
    scopes,
    name: "test_tool_with_logging",
    description: "Logs what it does",
    run: async (_, ctx) => {
      for (const text of ["Tool execution started", "Tool processing data", "Tool execution completed"]) {
        await ctx.log.info(text);
        await pause(50);
      }
      return "Done.";
    },
  }),
  tool({
    scopes,
    name: "test_logging_tool",
    description: "Logs, if the client wants that",
    run: async (_, ctx) => {
      await ctx.log.info("A message for clients that asked for messages");
      return "Done.";
    },
  }),
  tool({
    scopes,
    name: "test_reconnection",
    description: "Lets go of the stream before the result",
    run: async (_, ctx) => {
      ctx.closeStream(500);
      await pause(100);
      return "Read after reconnecting.";
    },
  }),
];

// Tools that send requests to the client.

const name = z.object({ name: z.string() });

const askers: readonly Handler[] = [
  tool({
    scopes,
    name: "test_sampling",
    description: "Asks the client's model",
    input: z.object({ prompt: z.string() }),
    run: async ({ prompt }, ctx) => {
      const { content } = await ctx.sample("answer", toQuestion(prompt));
      return `LLM response: ${JSON.stringify(content)}`;
    },
  }),
  tool({
    scopes,
    name: "test_elicitation",
    description: "Asks the user",
    input: z.object({ message: z.string() }),
    run: async ({ message }, ctx) => {
      const schema = z.object({
        username: z.string().describe("Name of the user"),
        email: z.string().describe("Address of the user"),
      });
      const { action, content } = await ctx.elicit("user", { message, schema });
      return `User response: action=${action}, content=${JSON.stringify(content)}`;
    },
  }),
  tool({
    scopes,
    name: "test_elicitation_sep1034_defaults",
    description: "Asks the user, and suggests the answers",
    run: async (_, ctx) => {
      const schema = {
        type: "object",
        properties: {
          name: { type: "string", default: "John Doe" },
          age: { type: "integer", default: 30 },
          score: { type: "number", default: 95.5 },
          status: { type: "string", enum: ["active", "inactive", "pending"], default: "active" },
          verified: { type: "boolean", default: true },
        },
        required: [],
      };
      const { action, content } = await ctx.elicit("defaults", { message: "Please check these values", schema });
      return `Elicitation completed: action=${action}, content=${JSON.stringify(content)}`;
    },
  }),
  tool({
    scopes,
    name: "test_elicitation_sep1330_enums",
    description: "Asks the user to choose, in every way there is",
    run: async (_, ctx) => {
      const options = ["option1", "option2", "option3"];
      const titled = [
        { const: "value1", title: "First Option" },
        { const: "value2", title: "Second Option" },
        { const: "value3", title: "Third Option" },
      ];
      const schema = {
        type: "object",
        properties: {
          untitledSingle: { type: "string", enum: options },
          titledSingle: { type: "string", oneOf: titled },
          legacyEnum: {
            type: "string",
            enum: ["opt1", "opt2", "opt3"],
            enumNames: ["Option One", "Option Two", "Option Three"],
          },
          untitledMulti: { type: "array", items: { type: "string", enum: options } },
          titledMulti: { type: "array", items: { anyOf: titled } },
        },
        required: [],
      };
      const { action, content } = await ctx.elicit("choices", { message: "Please choose", schema });
      return `Elicitation completed: action=${action}, content=${JSON.stringify(content)}`;
    },
  }),
  tool({
    scopes,
    name: "test_missing_capability",
    description: "Needs a client with a model",
    requires: ["sampling"],
    run: async (_, ctx) => {
      await ctx.sample("needed", toQuestion("Are you there?"));
      return "The client has a model.";
    },
  }),
  tool({
    scopes,
    name: "test_streaming_elicitation",
    description: "Has nothing to ask",
    run: () => "Nothing had to be asked.",
  }),
  tool({
    scopes,
    name: "test_input_required_result_elicitation",
    description: "Asks for a name",
    run: async (_, ctx) => {
      const { content } = await ctx.elicit("user_name", { message: "What is your name?", schema: name });
      return `Hello, ${content?.name ?? "stranger"}!`;
    },
  }),
  tool({
    scopes,
    name: "test_input_required_result_sampling",
    description: "Asks the model for a capital",
    run: async (_, ctx) => {
      const { content } = await ctx.sample("capital_question", toQuestion("What is the capital of France?"));
      return `The model says: ${JSON.stringify(content)}`;
    },
  }),
  tool({
    scopes,
    name: "test_input_required_result_list_roots",
    description: "Asks for the client's roots",
    run: async (_, ctx) => {
      const roots = await ctx.roots();
      return `Roots: ${roots.map(({ uri }) => uri).join(", ")}`;
    },
  }),
  ...["test_input_required_result_request_state", "test_input_required_result_tampered_state"].map((name) =>
    tool({
      scopes,
      name,
      description: "Asks for a confirmation, and seals its state",
      run: async (_, ctx) => {
        await ctx.elicit("confirm", { message: "Go on?", schema: z.object({ ok: z.boolean() }) });
        return "state-ok";
      },
    })
  ),
  tool({
    scopes,
    name: "test_input_required_result_multiple_inputs",
    description: "Asks three things at once",
    run: async (_, ctx) => {
      const [{ content }, greeting, roots] = await Promise.all([
        ctx.elicit("user_name", { message: "What is your name?", schema: name }),
        ctx.sample("greeting", toQuestion("Write a greeting.")),
        ctx.roots(),
      ]);
      return `${content?.name}: ${JSON.stringify(greeting.content)}, ${roots.length} roots`;
    },
  }),
  tool({
    scopes,
    name: "test_input_required_result_multi_round",
    description: "Asks one thing after another",
    run: async (_, ctx) => {
      const first = await ctx.elicit("step1", { message: "What is your name?", schema: name });
      const schema = z.object({ color: z.string() });
      const second = await ctx.elicit("step2", { message: "Which color do you like?", schema });
      return `${first.content?.name} likes ${second.content?.color}.`;
    },
  }),
  tool({
    scopes,
    name: "test_input_required_result_capabilities",
    description: "Asks only what the client can answer",
    run: async (_, ctx) => {
      if (ctx.client.capabilities.elicitation) {
        await ctx.elicit("user_name", { message: "What is your name?", schema: name });
      }
      if (ctx.client.capabilities.sampling) await ctx.sample("capital_question", toQuestion("Say something."));
      return "Asked what could be asked.";
    },
  }),
];

// Resources and prompts.

const resources: readonly Handler[] = [
  resource({
    scopes,
    uri: "test://static-text",
    name: "static-text",
    description: "A text",
    mimeType: "text/plain",
    read: () => "This is the content of the static text resource.",
  }),
  resource({
    scopes,
    uri: "test://static-binary",
    name: "static-binary",
    description: "An image",
    mimeType: "image/png",
    read: (uri) => ({ uri, blob: PNG }),
  }),
  resource({
    scopes,
    uri: "test://watched-resource",
    name: "watched-resource",
    description: "Something to watch",
    read: () => "Nothing has happened.",
  }),
  resource({
    scopes,
    uri: "test://template/{id}/data",
    name: "template",
    description: "Data by its id",
    mimeType: "application/json",
    read: ({ id }) => ({ id, templateTest: true, data: `Data for ID: ${id}` }),
  }),
];

const prompts: readonly Handler[] = [
  prompt({
    scopes,
    name: "test_simple_prompt",
    description: "Takes nothing",
    run: () => "This is a simple prompt for testing.",
  }),
  prompt({
    scopes,
    name: "test_prompt_with_arguments",
    description: "Takes two texts",
    input: z.object({ arg1: z.string().describe("The first"), arg2: z.string().describe("The second") }),
    complete: { arg1: (value) => ["testing", "tested"].filter((word) => word.startsWith(value)) },
    run: ({ arg1, arg2 }) => `Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`,
  }),
  prompt({
    scopes,
    name: "test_prompt_with_embedded_resource",
    description: "Carries a resource",
    input: z.object({ resourceUri: z.string().describe("URI of the resource") }),
    run: ({ resourceUri: uri }) => [
      { type: "resource", resource: { uri, mimeType: "text/plain", text: "Embedded resource content for testing." } },
      toText("Please process the embedded resource above."),
    ],
  }),
  prompt({
    scopes,
    name: "test_prompt_with_image",
    description: "Carries an image",
    run: () => [image, toText("Please analyze the image above.")],
  }),
  prompt({
    scopes,
    name: "test_input_required_result_prompt",
    description: "Asks for its context",
    run: async (_, ctx) => {
      const schema = z.object({ context: z.string() });
      const { content } = await ctx.elicit("user_context", { message: "What is this about?", schema });
      return `This is about ${content?.context ?? "nothing in particular"}.`;
    },
  }),
];

// Tools that change lists at runtime.

const extraTool = tool({ scopes, name: "test_extra_tool", description: "Comes and goes", run: () => "Here." });
const extraPrompt = prompt({ scopes, name: "test_extra_prompt", description: "Comes and goes", run: () => "Here." });
const present = new Set<Handler>();

function toggle(handler: Handler): string {
  const isThere = present.delete(handler);
  if (isThere) server.handlers.remove(handler);
  else server.handlers.add(handler), present.add(handler);
  return isThere ? "Gone." : "Here.";
}

const triggers: readonly Handler[] = [
  tool({
    scopes,
    name: "test_trigger_tool_change",
    description: "Adds a tool, or takes it away",
    run: () => toggle(extraTool),
  }),
  tool({
    scopes,
    name: "test_trigger_prompt_change",
    description: "Adds a prompt, or takes it away",
    run: () => toggle(extraPrompt),
  }),
];

const confirmation = z.object({ confirm: z.boolean().optional() });

/** Tools whose calls become tasks. */
const jobs: readonly Handler[] = [
  tasks(),
  tool({
    scopes,
    name: "greet",
    description: "Greets at once",
    input: z.object({ name: z.string().default("you") }),
    run: ({ name }) => `Hello, ${name}!`,
  }),
  tool({
    scopes,
    name: "slow_compute",
    description: "Takes some seconds",
    input: z.object({ seconds: z.number().min(0).max(60).default(1), label: z.string().default("") }),
    use: [task({ resume: true })],
    async run({ seconds, label }, { signal }) {
      await pause(seconds * 1000, signal);
      return `Computed ${label}`;
    },
  }),
  tool({
    scopes,
    name: "failing_job",
    description: "Fails after a second, as a task only",
    use: [task({ required: true })],
    async run(_, { signal }) {
      await pause(1000, signal);
      throw new ToolError("The job failed");
    },
  }),
  tool({
    scopes,
    name: "protocol_error_job",
    description: "Fails with an error of the protocol",
    use: [task()],
    async run(_, { signal }) {
      await pause(100, signal);
      throw McpError.internalError("The job failed");
    },
  }),
  tool({
    scopes,
    name: "confirm_delete",
    description: "Asks before it deletes",
    input: z.object({ filename: z.string().default("notes.txt") }),
    use: [task({ resume: true })],
    async run({ filename }, ctx) {
      const { action } = await ctx.elicit("confirm", { message: `Delete ${filename}?`, schema: confirmation });
      return action === "accept" ? `Deleted ${filename}` : `Kept ${filename}`;
    },
  }),
  tool({
    scopes,
    name: "multi_input",
    description: "Asks two questions at once",
    use: [task({ resume: true })],
    async run(_, ctx) {
      const ask = (key: string) => ctx.elicit(key, { message: `The ${key}?`, schema: confirmation });
      return (await Promise.all([ask("first"), ask("second")])).map(({ action }) => action).join();
    },
  }),
  tool({
    scopes,
    name: "test_tool_with_task",
    description: "Asks for a name, and then becomes a task",
    use: [task({ after: 20 })],
    async run(_, ctx) {
      const schema = z.object({ name: z.string() });
      const { content } = await ctx.elicit("user_name", { message: "What is your name?", schema });
      await pause(200, ctx.signal);
      return `Hello, ${content?.name}!`;
    },
  }),
];

const folder = new URL("./skills", import.meta.url);

/**
 * Returns the skills in the folder of this file. Returns an empty list if the folder does not exist or may not be read.
 */
function createSkills(): readonly Handler[] {
  try {
    return existsSync(folder) ? [skills({ dir: folder })] : [];
  } catch {
    return [];
  }
}

/** Tools for tests with several instances. */
function createClusterTools(store: Store): readonly Handler[] {
  const instance = crypto.randomUUID();
  return [
    tool({ scopes, name: "cluster_instance", description: "Tells which process answers", run: () => instance }),
    tool({
      scopes,
      name: "cluster_touch",
      description: "Announces an update of test://watched-resource",
      run: (_, ctx) => ctx.server.resourceUpdated("test://watched-resource"),
    }),
    tool({
      scopes,
      name: "cluster_sleep",
      description: "Waits, until it is cancelled",
      input: z.object({ ms: z.number().min(0).max(60_000) }),
      run: async ({ ms }, ctx) => {
        await pause(ms, ctx.signal);
        return instance;
      },
    }),
    tool({
      scopes,
      name: "cluster_count",
      description: "Adds one to a counter, once for each key, and tells the new value",
      input: z.object({ key: z.string() }),
      use: [idempotent({ key: ({ key }) => key, rerun: true, ttlMs: 3_600_000 })],
      // With `token`, a repeated run does not append a second entry, and returns the number of the first entry.
      run: async (_, { idempotencyToken: token }) =>
        `${await store.append("cluster_count", "", { token, ttlMs: 3_600_000, max: 10_000 })}`,
    }),
  ];
}

const server = createServer({
  name: "everything",
  version: "1.0.0",
  auth,
  store,
  secret,
  revisions: revisions.length ? revisions : undefined,
  instructions: "A server to test clients and libraries with.",
  handlers: [
    ...contents,
    ...talkers,
    ...askers,
    ...triggers,
    ...jobs,
    ...createSkills(),
    ...resources,
    ...prompts,
    ...store ? createClusterTools(store) : [],
  ],
});

/**
 * Makes the server respond to `?cap=2025-06-18` as if the client had proposed revision 2025-06-18. Without this
 * function, the suite would not test older revisions, because it always proposes its newest revision. The suite's
 * client still declares the elicitation forms of the newest revision.
 */
async function cap(request: Request): Promise<Request> {
  const newest = /[?&]cap=([\d-]+)/.exec(request.url)?.[1];
  if (!newest || request.method !== "POST") return request;
  const message = await request.clone().json().catch(() => undefined);
  if (message?.method !== "initialize") return request;
  message.params.protocolVersion = newest;
  const { elicitation } = message.params.capabilities ?? {};
  if (elicitation) elicitation.form ??= {};
  return new Request(request, { body: JSON.stringify(message) });
}

export default {
  ...server,
  fetch: async (request, info) => await server.fetch(await cap(request), info),
} satisfies Server;
