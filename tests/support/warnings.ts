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
  /**
   * Warnings of which a part depends on time. A slow handler may cause such a warning in addition to the same without
   * it.
   */
  const parts = new Set<string>();
  const { warn } = console;
  console.warn = (text: string) => {
    if (timed) return void warnings.push(text);
    if (TIMED.test(text)) return;
    const plain = text.replace(TIMED_PART, "");
    if (plain !== text) parts.add(plain);
    if (!parts.has(plain) || !warnings.includes(plain)) warnings.push(plain);
  };
  try {
    await run();
  } finally {
    console.warn = warn;
  }
  return warnings;
}
