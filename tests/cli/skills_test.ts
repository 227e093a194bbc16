// `serve FOLDER --skills` serves the skills in a folder, and no other files.
import { assertEquals } from "@std/assert";
import { connect } from "../../src/client/client.ts";
import { skillsOf } from "../../src/extensions/skills/client/skills.ts";
import { testProcesses, withFiles } from "../support/command_line.ts";
import { sentence } from "../support/messages.ts";
import { start } from "../support/processes.ts";
import { runtimes } from "./runtimes.ts";
import { runHere } from "./run_here.ts";
import { assertRefused } from "./refused.ts";

const files = {
  "skills/notes-style/SKILL.md": "---\nname: notes-style\ndescription: Writes notes.\n---\n\n# Notes\n",
  "skills/acme/refunds/SKILL.md": "---\nname: refunds\ndescription: Refunds money.\n---\n",
  "skills/mcp.jsonc": '{ "tools": { "leak": { "description": "Leaks", "run": ["env"] } } }',
  "skills/secret.txt": "secret",
  "empty/.hidden/SKILL.md": "---\nname: hidden\n---\n",
  "file.txt": "no folder",
};

Deno.test("serve --skills refuses a path that is not a folder with skills", async () => {
  await withFiles(files, async (cwd) => {
    for (
      const [words, message] of [
        [["serve", "--skills"], sentence("--skills")],
        [["serve", "missing", "--skills"], sentence("missing")],
        [["serve", "file.txt", "--skills"], sentence("file.txt")],
        [["serve", "empty", "--skills"], sentence("empty", "SKILL.md")],
        [["serve", "skills", "--skills", "--watch"], sentence("--watch")],
      ] as const
    ) await assertRefused(runHere(words, { cwd }), message);
  });
});

for (const { name, program } of runtimes) {
  testProcesses(`${name}: serve --skills offers skills over stdio and HTTP, in both eras`, async () => {
    await withFiles(files, async (cwd) => {
      const [command, ...args] = [...program, "serve", "skills", "--skills"];
      await using served = await start([command, ...args, "--http", "--port", "0"], { cwd });
      const [, url] = await served.waitFor(/(http:\S+)/);
      for (const era of ["modern", "legacy"] as const) {
        for (const target of [url, { command, args: [...args, "--stdio"], cwd }]) {
          await using client = await connect(target, { era });
          const skills = await skillsOf(client).list();
          assertEquals(skills.map(({ frontmatter }) => frontmatter.name).sort(), ["notes-style", "refunds"]);
          const uris = (await client.listResources()).map(({ uri }) => uri).sort();
          assertEquals(uris, ["skill://acme/refunds/SKILL.md", "skill://notes-style/SKILL.md"]);
          assertEquals(
            (await client.request("resources/read", { uri: uris[1] }).then(JSON.stringify)).includes("# Notes"),
            true,
          );
          assertEquals("tools" in client.server.capabilities, false);
        }
      }
    });
  });
}
