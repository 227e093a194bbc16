// Qwen Code, with the Chat Completions API of OpenAI.
import { type Agent, writeJson } from "./agent.ts";

export const qwenCode: Agent = {
  name: "qwen",
  title: "Qwen Code",
  installName: "qwen",
  writeSettings: ({ home }) =>
    writeJson(`${home}/.qwen/settings.json`, {
      security: { auth: { selectedType: "openai" } },
      privacy: { usageStatisticsEnabled: false },
      general: { disableAutoUpdate: true, disableUpdateNag: true },
    }),
  toEnv: ({ model }) => ({ OPENAI_API_KEY: "dummy", OPENAI_BASE_URL: `${model}/v1`, OPENAI_MODEL: "fake" }),
  toCommand: ({ packages }, prompt) => [
    `${packages}/node_modules/.bin/qwen`,
    ...["-p", prompt, "--yolo"],
  ],
};
