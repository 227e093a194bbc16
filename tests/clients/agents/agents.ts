// All agents.
import type { Agent } from "./agent.ts";
import { claudeCode } from "./claude_code.ts";
import { clineCli } from "./cline_cli.ts";
import { codex } from "./codex.ts";
import { continueCli } from "./continue_cli.ts";
import { copilotCli } from "./copilot_cli.ts";
import { geminiCli } from "./gemini_cli.ts";
import { opencode } from "./opencode.ts";
import { qwenCode } from "./qwen_code.ts";

export const agents: readonly Agent[] = [
  ...[claudeCode, codex, geminiCli, qwenCode, opencode, copilotCli, continueCli, clineCli],
];
