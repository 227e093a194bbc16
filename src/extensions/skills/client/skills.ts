/**
 * Skills for clients: lists skills with validated entries, and reads files that match the digests in their entries.
 *
 * ```ts
 * import { connect } from "@x/mcp/client";
 * import { skillsOf } from "@x/mcp/client/skills";
 * import server from "./server.ts";
 *
 * await using client = await connect(server);
 * const skills = skillsOf(client, { server: "office" });
 * for (const skill of await skills.list()) {
 *   const { text } = await skills.read(skill); // SKILL.md
 *   console.log(skill.name, text);
 * }
 * ```
 *
 * @see SEP-2640
 * @module
 */
export { type Skill, SkillError, type SkillFile } from "./skill_entry.ts";
export { type SkillContent, type Skills, skillsOf, type SkillsOfOptions } from "./skill_reader.ts";
