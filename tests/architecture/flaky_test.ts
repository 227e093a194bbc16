// A failure by chance is neither a failure of a run nor hidden: the slow tier repeats a failed test, and reports it.
import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { isAboutRaces, RACES, runRepeatedly } from "../support/flaky.ts";
import { listSteps } from "../support/step_list.ts";
import type { Verdict } from "../support/steps.ts";
import { listTests } from "../support/tiers.ts";
import { onDeno } from "../support/on_deno.ts"; // Only Deno runs the steps.

/** Runs a test file as a step, and repeats failed tests with `isRepeated`. `FOLDER` in the source is its folder. */
async function runTests(source: string, { isRepeated = false } = {}): Promise<Verdict> {
  const folder = await Deno.makeTempDir();
  try {
    await Deno.writeTextFile(`${folder}/x_test.ts`, source.replaceAll("FOLDER", folder));
    const options = ["--quiet", "--no-check", "-A", "--reporter=dot", "--junit-path=REPORT"];
    const command = ["deno", "test", ...options, `${folder}/`];
    return await runRepeatedly({ name: "x", kind: "report", command, again: "again", minutes: 1, isRepeated });
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** Returns a test that counts its runs by folders, and fails in the runs for which a condition on `run` holds. */
function toFailing(condition: string, name = "sometimes fails"): string {
  return `Deno.test(${JSON.stringify(name)}, async () => {
    let run = 1;
    while (await Deno.mkdir("FOLDER/run" + run).then(() => false, () => true)) run++;
    if (${condition}) throw new Error("boom in run " + run);
  });`;
}

onDeno(
  "a failed test that passes when it is repeated is flaky: the step succeeds, and reports both outputs",
  async () => {
    const { passed, failures, flaky: [found] } = await runTests(toFailing("run === 1"), { isRepeated: true });
    assertEquals([passed, failures], [1, []]);
    assertMatch(
      found.line,
      /^- \S+x_test\.ts: "sometimes fails" on Deno \(\d{4}-\d\d-\d\d; passed 10 of 10 repetitions\)$/,
    );
    assertStringIncludes(found.outputs[0], "boom in run 1");
    assertEquals(found.outputs[1].includes("boom"), false);
    const twice = await runTests(toFailing("run === 1 || run === 4"), { isRepeated: true });
    assertEquals([twice.passed, twice.failures], [1, []]);
    assertStringIncludes(twice.flaky[0].outputs[1], "boom in run 4");
  },
);

onDeno("a failed test of the step for Node is repeated alone, unless it is about races", async () => {
  const folder = await Deno.makeTempDir();
  const { command, runtime } = (await listSteps()).find(({ name }) => name === "test:node --newest --differing")!;
  const run = async (name: string) => {
    const file = `${folder}/${name}_test.ts`;
    await Deno.writeTextFile(
      file,
      `import { mkdirSync } from "node:fs";
        __denoTest("passes (${name})", () => {});
        __denoTest("fails (${name})", () => {
          if (mkdirSync(${JSON.stringify(`${folder}/${name}`)}, { recursive: true })) throw new Error("boom");
        });`,
    );
    const step = { name, kind: "report", command: [...command, file], again: "", minutes: 2, runtime } as const;
    return await runRepeatedly({ ...step, isRepeated: true });
  };
  const { passed, failures, flaky: [found] } = await run("first");
  assertEquals([passed, failures], [2, []]);
  assertMatch(found.line, /first_test\.ts: "fails \(first\)" on Node \(\S+; passed 10 of 10 repetitions\)$/);
  assertStringIncludes(found.outputs[0], "boom");
  assertMatch(found.outputs[1], /^1 passed, 0 failed/m);
  const once = await run("once");
  assertEquals([once.passed, once.failures.length, once.flaky], [1, 1, []]);
  assertStringIncludes(once.failures[0], 'deno task test:node --filter "fails (once)"');
  await Deno.remove(folder, { recursive: true });
});

onDeno("a test that fails in every second run fails the step, and so does a test that fails alone", async () => {
  for (const condition of ["run % 2 === 1", "true"]) {
    const { passed, failures, flaky } = await runTests(toFailing(condition), { isRepeated: true });
    assertEquals([passed, failures.length, flaky], [0, 1, []]);
  }
});

onDeno("a test about races is not repeated, and neither is a test of a step that repeats nothing", async () => {
  const tests = await listTests();
  for (const path of RACES) {
    assert(tests.some((each) => each.startsWith(path)), `${path} matches no test file`);
    assert(isAboutRaces({ file: path.endsWith("/") ? `${path}x_test.ts` : path, name: "a" }));
  }
  assert(isAboutRaces({ file: "tests/cli/x_test.ts", name: "an effect happens exactly once" }));
  assert(!isAboutRaces({ file: "tests/cli/x_test.ts", name: "the output names the concert" }));
  const source = toFailing("run === 1", "runs the handler once");
  assertEquals((await runTests(source, { isRepeated: true })).failures.length, 1);
  assertEquals((await runTests(toFailing("run === 1"))).failures.length, 1);
  for (const { name, tier, isRepeated } of await listSteps()) {
    if (tier !== "slow" || name.startsWith("load:")) assert(!isRepeated, name);
  }
});

onDeno("if many tests of a step fail, none is repeated", async () => {
  const names = ["a", "b", "c", "d", "e", "f"];
  const { failures, flaky } = await runTests(names.map((name) => toFailing("run <= 6", name)).join("\n"), {
    isRepeated: true,
  });
  assertEquals([failures.length, flaky], [6, []]);
});

onDeno("a step that is not a test file is repeated once as a whole", async () => {
  const folder = await Deno.makeTempDir();
  const run = async (script: string) => {
    const command = ["sh", "-c", script];
    const step = {
      name: "suite",
      kind: "count",
      command,
      again: "deno task suite",
      minutes: 1,
      isRepeated: true,
    } as const;
    return await runRepeatedly(step);
  };
  const first = await run(
    `[ -e ${folder}/ran ] && echo 2 passed, 0 failed || { touch ${folder}/ran; echo 1 passed, 1 failed; exit 1; }`,
  );
  assertEquals([first.passed, first.failures], [2, []]);
  assertMatch(first.flaky[0].line, /^- deno task suite /);
  const broken = await run("echo 1 passed, 1 failed; exit 1");
  assertEquals([broken.failures.length, broken.flaky], [1, []]);
  await Deno.remove(folder, { recursive: true });
});
