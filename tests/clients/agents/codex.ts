// Codex, with the Responses API of OpenAI.
import { type Agent, writeText } from "./agent.ts";

export const codex: Agent = {
  name: "codex",
  title: "Codex",
  installName: "codex",
  writeSettings: ({ home, model }) =>
    writeText(
      `${home}/.codex/config.toml`,
      `model = "gpt-5.1"
model_provider = "fake"
approval_policy = "never"
sandbox_mode = "danger-full-access"

[model_providers.fake]
name = "fake"
base_url = "${model}/v1"
wire_api = "responses"
env_key = "FAKE_KEY"
`,
    ),
  toEnv: () => ({ FAKE_KEY: "dummy" }),
  toSignIn: ({ packages }) => [`${packages}/node_modules/.bin/codex`, "mcp", "login", "probe"],
  toCommand: ({ packages }, prompt) => [
    `${packages}/node_modules/.bin/codex`,
    // Without this option, Codex sends the first prompt before a slow server has started.
    ...["-c", "mcp_servers.probe.required=true"],
    ...["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", prompt],
  ],
};
