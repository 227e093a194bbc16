// The calls that the model makes in every conversation.
import type { ScriptCall } from "./model/model.ts";

/** The characters of the large results. */
export const LARGE = [20_000, 60_000] as const;

/** The calls, in order. `grown` exists only after the call of `grow`. */
export const script: readonly ScriptCall[] = [
  { step: "add", tool: "add", args: { a: 4000, b: 711 } },
  ...[
    "fail",
    "both",
    "quiet",
    "picture",
    "chart",
    "link",
    "linked",
    "embedded",
    "who",
    "ask",
    "visit",
    "closed",
    "described",
  ]
    .map((tool) => ({ step: tool, tool })),
  ...LARGE.map((characters) => ({ step: `large ${characters}`, tool: "large", args: { characters } })),
  { step: "grow", tool: "grow" },
  { step: "rest", tool: "rest" },
  { step: "grown", tool: "grown" },
];

/** The tools of the probe, and of the probe with the official SDK. */
export const TOOLS: readonly string[] = [
  ...["add", "fail", "both", "quiet", "picture", "chart", "link", "linked", "embedded", "ask", "visit"],
  ...["who", "closed", "rest", "large", "dotted.name", `long_${"x".repeat(80)}_name`, "described", "grow"],
];
export const OFFICIAL_TOOLS: readonly string[] = TOOLS.slice(0, 11);
