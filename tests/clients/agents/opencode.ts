// opencode, with the Chat Completions API of OpenAI.
import { type Agent, writeJson } from "./agent.ts";

export const opencode: Agent = {
  name: "opencode",
  title: "opencode",
  installName: "opencode",
  writeSettings: ({ home, model }) =>
    writeJson(`${home}/.config/opencode/opencode.json`, {
      autoupdate: false,
      share: "disabled",
      model: "fake/fake",
      small_model: "fake/fake",
      permission: "allow",
      provider: {
        fake: {
          npm: "@ai-sdk/openai-compatible",
          options: { baseURL: `${model}/v1`, apiKey: "dummy" },
          models: {
            fake: {
              ...{ name: "fake", tool_call: true, attachment: true, limit: { context: 400_000, output: 8000 } },
              modalities: { input: ["text", "image", "pdf"], output: ["text"] },
            },
          },
        },
      },
    }),
  toEnv: () => ({
    ...{ OPENCODE_DISABLE_AUTOUPDATE: "1", OPENCODE_DISABLE_MODELS_FETCH: "1", OPENCODE_DISABLE_LSP_DOWNLOAD: "1" },
    OPENCODE_DISABLE_DEFAULT_PLUGINS: "1",
  }),
  // The command asks whether to sign in again.
  toSignIn: ({ packages }) => ["sh", "-c", `printf y | '${packages}/node_modules/.bin/opencode' mcp auth probe`],
  toCommand: ({ packages }, prompt) => [`${packages}/node_modules/.bin/opencode`, "run", prompt],
};
