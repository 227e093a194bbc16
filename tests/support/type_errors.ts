// Checks the compiler's errors for programs with a mistake. The compiler runs once for all programs of a test file.
import { assert, assertEquals, assertStringIncludes } from "@std/assert";

const isDeno = navigator.userAgent.startsWith("Deno");
const config = new URL("../../deno.json", import.meta.url).pathname;

/** A program with a mistake. */
export interface Mistake {
  readonly name: string;
  /** An expression with the mistake. */
  readonly code: string;
  /** A line that the compiler's error message must contain. */
  readonly line: string;
  /** The maximum number of lines in the error message. */
  readonly most: number;
}

/** Registers a test for each mistake. `head` is the code before each expression, such as imports. */
export function testTypeErrors(head: string, mistakes: readonly Mistake[]): void {
  let checking: ReturnType<typeof check> | undefined;
  for (const [at, { name, line, most }] of mistakes.entries()) {
    Deno.test({
      name: `the compiler names ${name}`,
      // Only Deno can type-check the code here.
      ignore: !isDeno,
      async fn() {
        const { errors, text } = await (checking ??= check(head, mistakes));
        const [error] = errors.filter((each) => each.includes(`/mistake${at}.ts:`));
        assert(error, `no error:\n${text}`);
        assertStringIncludes(error, line);
        // Each line of the message ends with a full stop. After the message, the error shows the code.
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
