// Every test file is in one tier, every task of deno.json runs in a step or by hand, and a run reports each failure.
import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import config from "../../deno.json" with { type: "json" };
import { type LastRun, toAge } from "../support/last_run.ts";
import { BY_HAND, listSteps } from "../support/step_list.ts";
import { runStep, type Step, type Verdict } from "../support/steps.ts";
import { readCases } from "../support/test_report.ts";
import { listTests, LONG, SLOW, toTier, WAITING } from "../support/tiers.ts";
import { until } from "../support/behaviour.ts";
import { onDeno } from "../support/on_deno.ts"; // Only Deno runs the steps.

const root = new URL("../../", import.meta.url).pathname;

onDeno(
  "every test file is in exactly one tier, and runs on both runtimes in that tier or in the long tier",
  async () => {
    const tests = await listTests();
    assert(tests.length > 150, "the test did not find the test files");
    for (const entry of [...Object.keys(SLOW), ...Object.keys(LONG)]) {
      assert(
        tests.some((path) => entry.endsWith("/") ? path.startsWith(entry) : path === entry),
        `${entry} matches no test file`,
      );
    }
    assertEquals(
      WAITING.map((path) => [path, tests.includes(path), toTier(path)]),
      WAITING.map((path) => [path, true, "fast"]),
    );
    const steps = await listSteps();
    for (const path of tests) {
      const found = steps.filter(({ files, tier }) => files?.includes(path) && [toTier(path), "long"].includes(tier));
      const runtimes = new Set(found.map(({ command }) => command[0]));
      assertEquals([...runtimes].sort(), ["bun", "deno"], path);
      assert(found.some(({ tier }) => tier === toTier(path)), path);
      if (toTier(path) !== "fast") {
        assertEquals(
          steps.some(({ files, name }) => files?.includes(path) && ["test", "test:bun"].includes(name)),
          false,
        );
      }
    }
  },
);

onDeno("every task in deno.json runs in a tier, or is listed with the reason why it is run manually", async () => {
  const steps = (await listSteps()).map(({ name }) => name.split(" ")[0]);
  const known = [...steps, ...Object.keys(BY_HAND)];
  assertEquals(Object.keys(config.tasks).filter((name) => !known.includes(name)), []);
  assertEquals(Object.keys(BY_HAND).filter((name) => !(name in config.tasks)), []);
});

/** Runs a test file as a step */
async function runTests(source: string): Promise<Verdict> {
  const folder = await Deno.makeTempDir();
  try {
    await Deno.writeTextFile(`${folder}/x_test.ts`, source);
    const options = ["--quiet", "--no-check", "-A", "--reporter=dot", "--junit-path=REPORT"];
    const command = ["deno", "test", ...options, `${folder}/`];
    return await runStep({ name: "x", kind: "report", command, again: "again", minutes: 1 });
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

Deno.test("the age of the long series is printed, and is a warning if a step is older than 14 days, missing or red", () => {
  const run = { revision: "abc", passed: 9, failed: 0, skipped: 1, seconds: 2, lines: [] };
  const runs = (failed: number): LastRun => ({
    machine: "",
    steps: { b: { ...run, date: "2026-11-02", failed }, a: { ...run, date: "2026-11-01", revision: "old" } },
  });
  const age = (day: string, { names = ["a", "b"], failed = 0 } = {}) => toAge(runs(failed), names, Date.parse(day));
  assertMatch(age("2026-11-15"), /^2 of 2 steps .* the first 14 days ago, at old: 18 passed, 0 failed$/);
  assertMatch(age("2026-11-16"), /^Warning: .* 15 days ago/);
  assertMatch(age("2026-11-15", { names: ["a", "b", "c"] }), /^Warning: 2 of 3 steps/);
  assertMatch(age("2026-11-15", { failed: 1 }), /^Warning: .* 1 failed/);
  assertMatch(toAge(undefined, ["a"]), /^Warning: /);
});

onDeno("an interrupted run names the running step, and ends it", async () => {
  const args = ["run", "-A", "--no-check", "tests/support/ok.ts", "--only", "check"];
  const child = new Deno.Command("deno", { args, cwd: root, stdout: "piped", stderr: "null" }).spawn();
  await until(async () => (await listProcesses(child.pid)).length > 1, "the step runs");
  const steps = await listProcesses(child.pid);
  child.kill("SIGTERM");
  const { code, stdout } = await child.output();
  assertEquals(code, 130);
  assertMatch(new TextDecoder().decode(stdout), /^Interrupted in check$/m);
  await until(async () => {
    const left = await Promise.all(steps.map(isRunning));
    return left.every((each) => !each);
  }, "the processes of the step have ended");
});

/** Returns the ids of the processes that a process has started, directly or not. */
async function listProcesses(pid: number): Promise<readonly number[]> {
  const text = await Deno.readTextFile(`/proc/${pid}/task/${pid}/children`).catch(() => "");
  const own = text.trim().split(" ").filter(Boolean).map(Number);
  return [...own, ...(await Promise.all(own.map(listProcesses))).flat()];
}

async function isRunning(pid: number): Promise<boolean> {
  const status = await Deno.readTextFile(`/proc/${pid}/stat`).catch(() => "");
  return status !== "" && !/\) Z /.test(status);
}

onDeno("a step counts its tests, and prints each failed test with the command that runs this test alone", async () => {
  const { passed, skipped, failures, skips } = await runTests(`
      Deno.test("good", async (t) => { await t.step("part", () => {}); });
      Deno.test("left out", { ignore: true }, () => {});
      Deno.test("bad <1>", () => { throw new Error("boom"); });
      Deno.test("bad 2", async (t) => { await t.step("part", () => { throw new Error("boom"); }); });
    `);
  assertEquals([passed, skipped, skips, failures.length], [1, 1, ["left out"], 2]);
  assertMatch(failures[0], /^x: bad <1>\n {4}deno test -A --no-check --filter "bad <1>" \S*x_test\.ts$/);
  assertMatch(failures[1], /^x: bad 2\n/);
});

onDeno("a step fails if it runs no test, if a file cannot be loaded, and if it exceeds its time limit", async () => {
  assertEquals((await runTests("export {};")).failures, ["x: again (it ran no test)"]);
  assertEquals((await runTests(`throw new Error("boom");`)).failures.length, 1);
  const late: Step = { name: "x", kind: "check", command: ["sleep", "60"], again: "again", minutes: 0.001 };
  assertEquals((await runStep(late)).failures, ["x: again"]);
});

onDeno("a step that prints its counts passes or fails according to these counts and its exit code", async () => {
  const judge = async (script: string) => {
    const command = ["sh", "-c", script];
    const verdict = await runStep({ name: "x", kind: "count", command, again: "again", minutes: 1 });
    return [verdict.passed, verdict.failures.length, verdict.skipped];
  };
  assertEquals(await judge("echo 3 passed, 0 failed, 2 skipped"), [3, 0, 2]);
  assertEquals(await judge("echo 3 passed, 2 failed; exit 1"), [3, 2, 0]);
  assertEquals(await judge("echo 3 passed, 2 failed"), [3, 2, 0]);
  assertEquals(await judge("echo 3 passed, 0 failed; exit 1"), [3, 1, 0]);
  assertEquals(await judge("echo 0 passed, 0 failed"), [0, 1, 0]);
  assertEquals(await judge("echo ok"), [0, 1, 0]);
});

onDeno("a step's standard output and standard error are recorded in the order in which they were written", async () => {
  const command = ["sh", "-c", "echo a; echo b >&2; echo c; echo d >&2"];
  const { output } = await runStep({ name: "x", kind: "check", command, again: "again", minutes: 1 });
  assertEquals(output, "a\nb\nc\nd\n");
});

Deno.test("a JUnit report is read on both runtimes", () => {
  const deno = `<testcase name="a &quot;b&quot; &gt; early" classname="./x_test.ts" time="0.5" line="1" col="6" />
    <testcase name="a &quot;b&quot;" classname="./x_test.ts" time="0.5" line="1" col="6">
    </testcase>
    <testcase name="a &quot;b&quot; &gt; part" classname="./x_test.ts" time="0.5" line="1" col="6"></testcase>`;
  assertEquals(readCases(deno), [{ name: 'a "b"', file: "x_test.ts", state: "passed", seconds: 0.5 }]);
  const bun = `<testcase name="a" classname="" time="0" file="y_test.ts" line="60" assertions="0">
    <failure type="Error" message="boom">boom&#10;</failure></testcase>
    <testcase name="b" classname="" time="0" file="y_test.ts" line="60"><skipped /></testcase>
    <testcase name="c" classname="" time="0" file="y_test.ts" line="60" />`;
  const states = readCases(bun).map(({ name, state }) => `${name} ${state}`).join(", ");
  assertStringIncludes(states, "a failed, b skipped, c passed");
});
