// Claude Code, with the Messages API of Anthropic.
import { type Agent, writeJson } from "./agent.ts";

export const claudeCode: Agent = {
  name: "claude-code",
  title: "Claude Code",
  installName: "claude-code",
  // The user approves the servers of a project once; the settings say it here.
  writeSettings: ({ home, project }) =>
    writeJson(`${home}/.claude.json`, {
      hasCompletedOnboarding: true,
      projects: { [project]: { hasTrustDialogAccepted: true, enabledMcpjsonServers: ["probe"] } },
    }),
  toEnv: ({ model }) => ({
    ANTHROPIC_BASE_URL: model,
    ANTHROPIC_API_KEY: "dummy",
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
    DISABLE_AUTOUPDATER: "1",
  }),
  // The command signs in only in a terminal, which the program `script` creates.
  toSignIn: ({ packages }) => ["script", "-qec", `'${packages}/node_modules/.bin/claude' mcp login probe`, "/dev/null"],
  toCommand: ({ packages }, prompt) => [
    `${packages}/node_modules/.bin/claude`,
    ...["-p", prompt, "--model", "claude-sonnet-4-5", "--allowedTools", "mcp__probe,ToolSearch"],
    ...["--output-format", "json"],
  ],
};
