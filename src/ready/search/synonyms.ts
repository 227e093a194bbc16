/**
 * Words that people use for the same thing when they ask for a tool.
 */
import { toStem } from "./words.ts";

/**
 * Groups of words with similar meanings: what operations do, and common things in software. A word may be in several
 * groups. The words come from general knowledge of English, not from the tools of a server.
 */
const GROUPS: readonly string[] = [
  // What operations do.
  "create add make new open insert register build generate",
  "delete remove erase drop destroy discard clear purge trash",
  "list show get find view see display fetch read browse retrieve enumerate look print",
  "search find query lookup filter locate",
  "update change edit modify set alter adjust patch replace rename rewrite",
  "close finish resolve complete",
  "start run launch trigger begin execute dispatch kick",
  "stop cancel abort halt terminate kill end",
  "restart rerun retry redo relaunch",
  "enable activate allow permit",
  "disable deactivate block forbid prevent deny",
  "assign give delegate attach",
  "unassign detach",
  "send post submit publish share",
  "write save store put record",
  "copy duplicate clone fork",
  "move transfer relocate migrate",
  "merge combine join integrate",
  "compare diff difference",
  "undo revert rollback restore recover",
  "invite add",
  "upload attach import",
  "download export fetch save",
  "check verify validate test inspect confirm status",
  "approve accept",
  "reject decline refuse dismiss",
  "watch follow subscribe monitor",
  "scale resize replica grow shrink",
  "evict drain",
  "connect attach link",
  "navigate visit open go browse",
  "screenshot capture picture snapshot image",
  "calculate compute sum count total number",
  // Things.
  "repository repo project",
  "pr pull merge",
  "issue ticket bug problem defect",
  "comment reply remark note message",
  "user person account member people profile",
  "team group",
  "organization org company enterprise",
  "secret password credential token key",
  "variable env environment setting",
  "config configuration settings options preferences",
  "file document content",
  "folder directory dir path",
  "log logs output history",
  "event activity history",
  "commit change revision",
  "label tag",
  "workflow pipeline action ci build",
  "deployment deploy release rollout",
  "error failure exception crash fault",
  "permission access right role",
  "page site website url web",
  "job task run batch",
  "service svc endpoint",
  "pod container",
  "volume disk storage",
];

const SYNONYMS: ReadonlyMap<string, readonly string[]> = toTable(GROUPS.map((group) => group.split(" ").map(toStem)));

/** Returns the stems of the words with a meaning like a word with this stem, without the stem itself. */
export function findSynonyms(stem: string): readonly string[] {
  return SYNONYMS.get(stem) ?? [];
}

function toTable(groups: readonly (readonly string[])[]): ReadonlyMap<string, readonly string[]> {
  const table = new Map<string, readonly string[]>();
  for (const group of groups) {
    for (const stem of group) {
      const others = [...table.get(stem) ?? [], ...group].filter((each) => each !== stem);
      table.set(stem, [...new Set(others)]);
    }
  }
  return table;
}
