// The agent frameworks. Each has a program in this folder, which Node runs.

/** A framework with which people write clients. */
export interface Framework {
  /** The name on the command line and in the record, and of the program. */
  readonly name: string;
  readonly title: string;
  /** Whether only a model can call tools, which has to be the fake model. */
  readonly needsModel?: boolean;
}

export const frameworks: readonly Framework[] = [
  { name: "claude-agent-sdk", title: "Claude Agent SDK", needsModel: true },
  { name: "mastra", title: "Mastra" },
  { name: "openai-agents", title: "OpenAI Agents SDK" },
  { name: "ai-sdk", title: "AI SDK" },
  { name: "langchain", title: "LangChain" },
  { name: "llamaindex", title: "LlamaIndex" },
  { name: "mcp-use", title: "mcp-use" },
  { name: "mcp-client", title: "mcp-client" },
  { name: "strands", title: "Strands Agents" },
  { name: "google-adk", title: "Google ADK" },
];
