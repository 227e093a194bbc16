// Gemini CLI, with Gemini's API.
import { type Agent, writeJson } from "./agent.ts";

export const geminiCli: Agent = {
  name: "gemini",
  title: "Gemini CLI",
  installName: "gemini",
  writeSettings: ({ home }) =>
    writeJson(`${home}/.gemini/settings.json`, {
      security: { auth: { selectedType: "gemini-api-key" } },
      privacy: { usageStatisticsEnabled: false },
      general: { disableAutoUpdate: true, disableUpdateNag: true },
    }),
  toEnv: ({ model }) => ({
    ...{ GEMINI_API_KEY: "dummy", GOOGLE_GEMINI_BASE_URL: model, GEMINI_CLI_TRUST_WORKSPACE: "true" },
    GEMINI_CLI_NO_RELAUNCH: "1",
  }),
  toSignIn: () => [],
  toCommand: ({ packages }, prompt) => [
    `${packages}/node_modules/.bin/gemini`,
    ...["-p", prompt, "-m", "gemini-2.5-flash", "--yolo"],
  ],
};
