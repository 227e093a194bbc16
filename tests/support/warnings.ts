// Collects the output of `console.warn`.

/** The warning about a blocked event loop, which any test can get on a busy machine. */
const BLOCKED = /blocks the event loop/;

/**
 * Runs a function, and returns the warnings that the function printed. Without `blocked`, leaves out the warning about a
 * blocked event loop.
 */
export async function collectWarnings(
  run: () => unknown,
  { blocked = false }: { readonly blocked?: boolean } = {},
): Promise<string[]> {
  const warnings: string[] = [];
  const { warn } = console;
  console.warn = (text: string) => {
    if (blocked || !BLOCKED.test(text)) warnings.push(text);
  };
  try {
    await run();
  } finally {
    console.warn = warn;
  }
  return warnings;
}
