// Every command works with a server that has authentication.
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { testProcesses, withFiles } from "../support/command_line.ts";
import { runtimes } from "./runtimes.ts";
import { root, run, start } from "../support/processes.ts";
import { sentence } from "../support/messages.ts";

const source = `import { createServer, tool } from "@x/mcp";
import { apiKey, requirePrincipal } from "${root}src/auth/auth.ts";
const about = { title: "A tool", annotations: { readOnlyHint: true } };
const whoami = tool({ ...about, name: "whoami", description: "Says who calls", run: (_, { principal }) => principal?.id ?? "nobody" });
const write = tool({ title: "Write", annotations: { destructiveHint: false }, name: "write", description: "Writes", scopes: ["notes:write"], run: () => "written" });
const mine = tool({ ...about, name: "mine", description: "Needs a caller", run: (_, ctx) => requirePrincipal(ctx).id });
const auth = apiKey({ keys: { ada: "ada-2f6c1e0b9d4a7853", bot: { key: "bot-8d3f5a7c6e1b9042", scopes: ["notes:write"] } } });
export default createServer({ name: "me", version: "1.0.0", auth, handlers: [whoami, write, mine] });`;

for (const { name, program } of runtimes) {
  testProcesses(`${name}: check, call and install need no credentials`, async () => {
    await withFiles({ "server.ts": source }, async (cwd) => {
      const checked = await run([...program, "check", "server.ts"], { cwd });
      assertEquals(checked.code, 0, checked.stderr);
      assertStringIncludes(checked.stdout + checked.stderr, sentence("problems"));
      assertEquals((await run([...program, "call", "server.ts", "whoami"], { cwd })).stdout, "nobody\n");
      assertEquals((await run([...program, "call", "server.ts", "write"], { cwd })).stdout, "written\n");
      const refused = await run([...program, "call", "server.ts", "mine"], { cwd });
      assertEquals(refused.code, 1);
      assertStringIncludes(refused.stderr, sentence("-31401", "--header"));
      const words = ["install", "server.ts", "--client", "cursor", "--allow-none", "--dry-run"];
      assertEquals((await run([...program, ...words], { cwd })).code, 0);
    });
  });

  testProcesses(`${name}: serve authenticates requests, and listens on all networks without a warning`, async () => {
    await withFiles({ "server.ts": source }, async (cwd) => {
      await using serving = await start([...program, "server.ts", "--http", "--port", "0", "--host", "0.0.0.0"], {
        cwd,
      });
      const [printed, url] = await serving.waitFor(/[^]*server\.ts\D+(http:\S+)/);
      assert(!printed.includes("`auth`"), printed);
      const refused = await run([...program, "call", url, "whoami"]);
      assertEquals(refused.code, 1);
      assertStringIncludes(refused.stderr, sentence("-31401", "--header"));
      const header = ["--header", "authorization=Bearer ada-2f6c1e0b9d4a7853"];
      assertEquals((await run([...program, "call", url, "whoami", ...header])).stdout, "apikey:ada\n");
      const lacking = await run([...program, "call", url, "write", ...header]);
      assertStringIncludes(lacking.stderr, sentence("notes:write", "-31403"));
    });
  });

  testProcesses(`${name}: --inspect serves its page for a server with authentication`, async () => {
    await withFiles({ "server.ts": source }, async (cwd) => {
      await using serving = await start([...program, "server.ts", "--http", "--inspect", "--port", "0"], { cwd });
      const [, page] = await serving.waitFor(/(http:\/\/127\.0\.0\.1:\d+\/)#key=/);
      const [, url] = await serving.waitFor(/server\.ts\D+(http:\S+)/);
      assertEquals([(await fetch(page)).status, (await fetch(url)).status], [200, 401]);
    });
  });
}
