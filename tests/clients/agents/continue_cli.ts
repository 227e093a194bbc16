// Continue CLI, with the Chat Completions API of OpenAI.
import { type Agent, writeText } from "./agent.ts";

export const continueCli: Agent = {
  name: "continue",
  title: "Continue CLI",
  installName: "continue",
  writeSettings: ({ home, model }) =>
    writeText(
      `${home}/.continue/config.yaml`,
      `name: Local config
version: 1.0.0
schema: v1
models:
  - name: fake
    provider: openai
    model: fake
    apiBase: ${model}/v1
    apiKey: dummy
    useResponsesApi: false
    roles: [chat]
    capabilities: [tool_use, image_input]
    contextLength: 400000
`,
    ),
  toEnv: () => ({ CONTINUE_TELEMETRY_ENABLED: "0", CONTINUE_CLI_ENABLE_TELEMETRY: "0" }),
  toCommand: ({ packages, home }, prompt) => [
    `${packages}/node_modules/.bin/cn`,
    ...["--config", `${home}/.continue/config.yaml`, "--auto", "-p", prompt],
  ],
};
