// What the wrapper of `Deno.test` adds: tests that leave something behind fail, and both errors of a cleanup are shown.
import { assertEquals, assertStringIncludes } from "@std/assert";
import { root, withFolder } from "../support/folder.ts";
import { run } from "../support/processes.ts";

/** Runs the tests of a file. Returns the exit code and the output. */
async function runTests(text: string): Promise<{ readonly code: number; readonly output: string }> {
  let ran = { code: -1, stdout: "", stderr: "" };
  await withFolder(
    { "some_test.ts": `import * as running from "${root}tests/support/running.ts";\nvoid running;\n${text}` },
    async (folder) => {
      const options = ["-A", "--no-check", "--config", `${root}deno.json`];
      ran = await run([Deno.execPath(), "test", ...options, `${folder}/some_test.ts`]);
    },
  );
  return { code: ran.code, output: ran.stdout + ran.stderr };
}

const isDeno = typeof Deno !== "undefined";
const onDeno = (name: string, fn: () => Promise<void>) => Deno.test({ name, ignore: !isDeno, fn }); // Only Deno can check what tests leave behind.
const timer = "setTimeout(() => {}, 60_000)";

onDeno("a test that leaves a timer behind fails if its file has behaviours", async () => {
  const plain = await runTests(`Deno.test("plain", () => void ${timer});`);
  assertEquals(plain.code, 0, plain.output);
  const strict = await runTests(`Deno.test("strict", () => void ${timer}); // behaviour()`);
  assertEquals(strict.code, 1);
  assertStringIncludes(strict.output, "A timer was started in this test, but never completed.");
  const closed = await runTests(`Deno.test("closed", () => { // behaviour()
    const id = ${timer};
    running.closeAtEnd({ close: async () => clearTimeout(id) });
  });`);
  assertEquals(closed.code, 0, closed.output);
});

onDeno("a test whose cleanup fails too shows both errors", async () => {
  const { code, output } = await runTests(`Deno.test("both", async () => {
    await using _resource = { [Symbol.asyncDispose]: () => Promise.reject(new Error("the cleanup")) };
    throw new Error("the test");
  });`);
  assertEquals(code, 1);
  for (const problem of ["Error: the cleanup", "Error: the test"]) assertStringIncludes(output, problem);
});
