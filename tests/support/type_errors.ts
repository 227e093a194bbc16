// Programs with a mistake, and the compiler's errors for them. One run of the compiler checks all programs of a test.
import { assert, assertEquals, assertStringIncludes } from "@std/assert";

const isDeno = navigator.userAgent.startsWith("Deno");
const config = new URL("../../deno.json", import.meta.url).pathname;

/** A program with a mistake. */
export interface Mistake {
  readonly name: string;
  /** An expression with the mistake. */
  readonly code: string;
  /** A line of the compiler's error message. */
  readonly line: string;
  /** The maximum number of lines of the error message. */
  readonly most: number;
}

/** Registers a test for each mistake. `head` is the code before the expression, such as imports. */
export function testTypeErrors(head: string, mistakes: readonly Mistake[]): void {
  let checking: ReturnType<typeof check> | undefined;
  for (const [at, { name, line, most }] of mistakes.entries()) {
    Deno.test({
      name: `the compiler names ${name}`,
      // Deno type-checks the code.
      ignore: !isDeno,
      async fn() {
        const { errors, text } = await (checking ??= check(head, mistakes));
        const [error] = errors.filter((each) => each.includes(`/mistake${at}.ts:`));
        assert(error, `no error:\n${text}`);
        assertStringIncludes(error, line);
        // The lines of the message end with a full stop, and the code follows them.
        assert(!error.split("\n")[most]?.endsWith("."), `the message has more than ${most} lines:\n${error}`);
      },
    });
  }
  Deno.test({
    name: "the compiler finds one error for each mistake",
    ignore: !isDeno,
    async fn() {
      const { errors, text } = await (checking ??= check(head, mistakes));
      assertEquals(errors.length, mistakes.length, text);
    },
  });
}

async function check(head: string, mistakes: readonly Mistake[]) {
  const folder = await Deno.makeTempDir();
  try {
    const files = mistakes.map((_mistake, at) => `${folder}/mistake${at}.ts`);
    for (const [at, { code }] of mistakes.entries()) {
      await Deno.writeTextFile(files[at], `${head}\nexport const x = ${code}`);
    }
    const { stderr } = await new Deno.Command(Deno.execPath(), {
      args: ["check", "--quiet", "--config", config, ...files],
      env: { NO_COLOR: "1" },
    }).output();
    const text = new TextDecoder().decode(stderr);
    return { errors: text.split(/^(?=TS\d+ \[ERROR\]: )/m).filter((each) => each.startsWith("TS")), text };
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}
