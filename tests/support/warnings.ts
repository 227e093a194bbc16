// Collects the output of `console.warn`.

/** Runs a function, and returns the warnings that the function printed. */
export async function collectWarnings(run: () => unknown): Promise<string[]> {
  const warnings: string[] = [];
  const { warn } = console;
  console.warn = (text: string) => void warnings.push(text);
  try {
    await run();
  } finally {
    console.warn = warn;
  }
  return warnings;
}
