// The official suite starts this program for each client scenario. The program does what the scenario requires, using
// this library's client with only the options that a user would set. The last argument is the server's URL.
import { type Client, connect, type ConnectOptions } from "../../src/client/client.ts";
import { createAuth, REFUSED } from "./sign_in.ts";
import { SkillError, skillsOf } from "../../src/extensions/skills/client/skills.ts";

interface BunHost {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly argv: readonly string[];
}

const { Bun: bun } = globalThis as unknown as { readonly Bun?: BunHost }; // The types of this package do not declare `Bun`.
const variable = (name: string) => bun ? bun.env[name] : Deno.env.get(name);
const scenario = variable("MCP_CONFORMANCE_SCENARIO") ?? "";
const context: unknown = JSON.parse(variable("MCP_CONFORMANCE_CONTEXT") ?? "{}");
const url = (bun ? bun.argv : Deno.args).at(-1) ?? "";

/** What the client does in each scenario after it has connected. */
const acts: Readonly<Record<string, (client: Client) => Promise<unknown>>> = {
  initialize: (client) => client.listTools(),
  "request-metadata": (client) => client.listTools(),
  "json-schema-ref-no-deref": (client) => client.listTools(),
  async tools_call(client) {
    await client.listTools();
    await client.callTool("add_numbers", { a: 5, b: 3 });
  },
  "elicitation-sep1034-client-defaults": (client) => client.callTool("test_client_elicitation_defaults"),
  "sse-retry": (client) => client.callTool("test_reconnection"),
  async "sep-2322-client-request-state"(client) {
    // Run one call while another call waits for an answer. Neither call must receive messages of the other call.
    await Promise.all([client.callTool("test_mrtr_echo_state"), client.callTool("test_mrtr_unrelated")]);
    await client.callTool("test_mrtr_no_state");
    await client.callTool("test_mrtr_no_result_type");
  },
  async "http-standard-headers"(client) {
    for (const { name } of await client.listTools()) await client.callTool(name);
    for (const { uri } of await client.listResources()) await client.readResource(uri);
    for (const { name } of await client.listPrompts()) await client.getPrompt(name);
  },
  async "http-custom-headers"(client) {
    await client.listTools();
    for (const { name, arguments: args } of readCalls(context)) await client.callTool(name, args);
  },
  async "http-invalid-tool-headers"(client) {
    for (const { name } of await client.listTools()) await client.callTool(name, { region: "north" });
  },
  async "json-schema-2020-12-preservation"(client) {
    const tools = await client.listTools();
    const schema = tools.find(({ name }) => name === "json_schema_2020_12_tool")?.inputSchema;
    await client.callTool("json_schema_echo", { schema });
  },
  "sep-2640-client-no-prefetch": (client) => skillsOf(client).list(),
  "sep-2640-client-verify-digest": loadSkills,
  "sep-2640-client-verify-size": loadSkills,
  "sep-2640-client-verify-frontmatter": loadSkills,
};

/** Loads all files of each skill. Stops at a file that does not match its entry. */
async function loadSkills(client: Client): Promise<void> {
  const skills = skillsOf(client);
  for (const skill of await skills.list()) {
    try {
      await skills.read(skill);
      for (const { uri } of skill.files === "dynamic" ? [] : skill.files) await skills.read(skill, uri);
    } catch (error) {
      if (!(error instanceof SkillError)) throw error;
    }
  }
}

interface PlannedCall {
  readonly name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
}

function readCalls(value: unknown): readonly PlannedCall[] {
  const calls = typeof value === "object" && value && "toolCalls" in value ? value.toolCalls : undefined;
  if (!Array.isArray(calls)) throw new Error("Cannot read the context: it has no toolCalls");
  return calls as readonly PlannedCall[]; // The cast is safe, because the suite writes this value.
}

const options: ConnectOptions = {
  info: { name: "conformance-client", version: "1.0.0" },
  onElicit: () => ({ action: "accept" }),
  onSample: () => ({ role: "assistant", model: "none", content: { type: "text", text: "Paris" } }),
  roots: [],
};

async function run(): Promise<void> {
  const isProtected = scenario.startsWith("auth/");
  const act = isProtected ? callAll : acts[scenario];
  if (!act) throw new Error(`Cannot run the scenario "${scenario}": it is unknown`);
  const auth = isProtected ? await createAuth(scenario, Object(context), url) : undefined;
  await using client = await connect(url, { ...options, auth });
  await act(client);
}

async function callAll(client: Client): Promise<void> {
  for (const { name } of await client.listTools()) await client.callTool(name);
}

if (REFUSED.has(scenario)) {
  const isRefused = await run().then(() => false, () => true);
  if (!isRefused) throw new Error(`The scenario "${scenario}" ended without an error`);
} else await run();
