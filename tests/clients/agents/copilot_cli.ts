// Copilot CLI, with the Chat Completions API of OpenAI as a provider of its own.
import type { Agent } from "./agent.ts";

export const copilotCli: Agent = {
  name: "copilot",
  title: "Copilot CLI",
  installName: "copilot",
  toEnv: ({ model }) => ({
    ...{ COPILOT_PROVIDER_BASE_URL: `${model}/v1`, COPILOT_PROVIDER_TYPE: "openai", COPILOT_PROVIDER_API_KEY: "dummy" },
    ...{ COPILOT_MODEL: "gpt-5.1", COPILOT_PROVIDER_WIRE_API: "completions", COPILOT_OFFLINE: "true" },
    COPILOT_AUTO_UPDATE: "false",
  }),
  toCommand: ({ packages }, prompt) => [
    `${packages}/node_modules/.bin/copilot`,
    ...["-p", prompt, "--allow-all-tools", "--disable-builtin-mcps", "--no-auto-update"],
  ],
};
