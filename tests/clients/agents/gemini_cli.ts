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
  // The command asks in the terminal whether it may open a browser. The answer is repeated, because the command
  // drops what was typed before it asks.
  toSignIn: ({ packages }) => [
    ...[
      "sh",
      "-c",
      `while sleep 1; do echo y; done | script -qec "'${packages}/node_modules/.bin/gemini' -p '/mcp auth probe'" /dev/null`,
    ],
  ],
  toCommand: ({ packages }, prompt) => [
    `${packages}/node_modules/.bin/gemini`,
    ...["-p", prompt, "-m", "gemini-2.5-flash", "--yolo"],
  ],
};
