// Collects the output of `console.warn`.

/** Warnings that any test can get on a busy machine. */
const TIMED = /blocks the event loop|the handler takes \d+ ms before/;
/** The part of another warning that any test can get on a busy machine. */
const TIMED_PART = / and takes \d+ ms(?= before)/;

/**
 * Runs a function, and returns the warnings that the function printed. Without `timed`, leaves out what depends on the
 * duration of the function.
 */
export async function collectWarnings(
  run: () => unknown,
  { timed = false }: { readonly timed?: boolean } = {},
): Promise<string[]> {
  const warnings: string[] = [];
  const { warn } = console;
  console.warn = (text: string) => {
    if (timed) warnings.push(text);
    else if (!TIMED.test(text)) warnings.push(text.replace(TIMED_PART, ""));
  };
  try {
    await run();
  } finally {
    console.warn = warn;
  }
  return warnings;
}
