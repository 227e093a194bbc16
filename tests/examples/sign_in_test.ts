// The example of a client that signs in at a real authorization server, as a process on each runtime.
import { assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { signIn, startOidc } from "../auth/oidc.ts";
import { serveNotes } from "../auth/serve_notes.ts";
import { runtimes } from "../support/runtimes.ts";
import { testProcesses } from "../support/command_line.ts";
import { sentence } from "../support/messages.ts";
import { root, start } from "../support/processes.ts";

for (const { name, program, file } of runtimes) {
  testProcesses(`${name}: the example signs a user in and lists the tools`, async () => {
    await using oidc = await startOidc();
    await using notes = await serveNotes(program, [oidc.issuers.first]);
    await using running = await start([...file, `${root}examples/sign_in.ts`, notes.url.href]);
    const [, link] = await running.waitFor(/Sign in at \S+: (\S+)\n/);
    const back = await fetch(await signIn(new URL(link), "ada"));
    assertStringIncludes(await back.text(), `<title>${sentence()}</title>`);
    const { code, stdout, stderr } = await running.finished;
    assertEquals(code, 0, stderr);
    assertMatch(stdout, /^list: /m);
    assertMatch(stderr, /^Signed in at \S+ with notes:read/m);
  });
}
