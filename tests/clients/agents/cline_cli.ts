// Cline CLI, with the Chat Completions API of OpenAI.
import { type Agent, writeJson } from "./agent.ts";

const PROVIDER = "openai-compatible";

export const clineCli: Agent = {
  name: "cline",
  title: "Cline CLI",
  installName: "cline",
  writeSettings: ({ home, model }) =>
    writeJson(`${home}/.cline/data/settings/providers.json`, {
      ...{ version: 1, lastUsedProvider: PROVIDER, modes: {} },
      providers: {
        [PROVIDER]: {
          settings: { provider: PROVIDER, apiKey: "dummy", model: "fake", baseUrl: `${model}/v1` },
          ...{ updatedAt: "2026-01-01T00:00:00.000Z", tokenSource: "manual" },
        },
      },
    }),
  toEnv: () => ({ CLINE_TELEMETRY_DISABLED: "1", DO_NOT_TRACK: "1", CLINE_NO_AUTO_UPDATE: "1" }),
  toCommand: ({ packages }, prompt) => [
    `${packages}/node_modules/.bin/cline`,
    ...["--provider", PROVIDER, "--model", "fake", "--json", prompt],
  ],
};
