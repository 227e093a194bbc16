// Runs the named tasks of deno.json in order, prints one line for each, and stops at the first failure with its whole
// output.

/** The counts of a test runner, such as "212 passed, 3 ignored". */
function toCounts(output: string): string {
  const counts = [...output.matchAll(/(\d+) (passed|pass|ignored|skip|filtered out)\b/g)];
  return counts.map(([, count, word]) => `${count} ${word}`).filter((text) => !text.startsWith("0 ")).join(", ");
}

for (const task of Deno.args) {
  const start = performance.now();
  const { code, stdout, stderr } = await new Deno.Command("deno", {
    args: ["task", "--quiet", task],
    env: { NO_COLOR: "1" },
  }).output();
  const output = new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr);
  const seconds = ((performance.now() - start) / 1000).toFixed(1);
  if (code !== 0) {
    console.error(output);
    console.error(`FAILED ${task} (${seconds} s): run it alone with "deno task ${task}"`);
    Deno.exit(code);
  }
  console.log(`ok ${task} (${seconds} s) ${toCounts(output)}`.trimEnd());
}
