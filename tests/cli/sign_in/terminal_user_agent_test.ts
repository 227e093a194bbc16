// What a user sees in the terminal before signing in.
import { assertEquals, assertStringIncludes } from "@std/assert";
import { testProcesses } from "../../support/command_line.ts";
import { sentence } from "../../support/messages.ts";
import { root, run } from "../../support/processes.ts";

/** Shows the sign-in page with the given URL, and returns the lines on standard error. */
async function show(program: readonly string[], url: string, pageHost?: string): Promise<string> {
  const file = await Deno.makeTempFile({ suffix: ".ts" });
  const page = {
    url,
    server: "https://mcp.example.com/mcp",
    issuer: "https://login.example.com",
    pageHost,
    scopes: [],
  };
  await Deno.writeTextFile(
    file,
    `import { terminalUserAgent } from "${root}src/cli/sign_in/terminal_user_agent.ts";
const attempt = await terminalUserAgent({ opens: false, isForced: true })({ issuer: "", path: "/callback/a1" });
await attempt.visit(${JSON.stringify(page)}, { signal: AbortSignal.timeout(1) }).catch(() => {});
await attempt.end(new Error("enough"));
`,
  );
  const { stderr, code } = await run([...program, file]);
  await Deno.remove(file);
  assertEquals(code, 0, stderr);
  return stderr;
}

for (const program of [["deno", "run", "-A", "--no-check", `--config=${root}deno.json`], ["bun"]]) {
  testProcesses(
    `mix-up: the terminal shows the host of a sign-in page that is not the issuer's host (${program[0]})`,
    async () => {
      const evil = await show(program, "https://honest.example.com/authorize?state=1", "honest.example.com");
      assertStringIncludes(evil, sentence("https://login.example.com"));
      assertStringIncludes(evil, sentence("honest.example.com", "another host"));
      const usual = await show(program, "https://login.example.com/authorize?state=1");
      assertEquals(usual.includes("another host"), false);
    },
  );
}
