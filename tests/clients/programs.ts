// Runs a client in an environment of its own, which contains no variable of the person who runs the tests. Deno only.

/** The end of a program. */
export interface Ended {
  readonly code: number;
  readonly isLate: boolean;
  readonly output: string;
}

/** Where and how to run a program. */
export interface ProgramOptions {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly seconds: number;
}

/** Runs a program until it ends, or kills it after some seconds. */
export async function runProgram(words: readonly string[], { cwd, env, seconds }: ProgramOptions): Promise<Ended> {
  const [command, ...args] = words;
  const child = new Deno.Command(command, {
    ...{ args, cwd, env, clearEnv: true },
    ...{ stdin: "null", stdout: "piped", stderr: "piped" },
  }).spawn();
  let isLate = false;
  const alarm = setTimeout(() => {
    isLate = true;
    child.kill("SIGKILL");
  }, seconds * 1000);
  const pieces: string[] = [];
  const read = async (stream: ReadableStream<Uint8Array>) => {
    for await (const text of stream.pipeThrough(new TextDecoderStream())) pieces.push(text);
  };
  const reading = Promise.all([read(child.stdout), read(child.stderr)]).catch(() => {});
  const { code } = await child.status;
  clearTimeout(alarm);
  // Fixed wait: the output does not end while a process that the client has started is running.
  await Promise.race([reading, new Promise((resolve) => setTimeout(resolve, 1000))]);
  return { code, isLate, output: pieces.join("") };
}

/** Returns the environment of a client: an empty home, and the programs that clients start. */
export function toEnvironment(
  { home, path }: { readonly home: string; readonly path: readonly string[] },
): Readonly<Record<string, string>> {
  return {
    HOME: home,
    USER: "tester",
    PATH: [...path, "/usr/local/bin", "/usr/bin", "/bin"].join(":"),
    SHELL: "/bin/sh",
    LANG: "C.UTF-8",
    TERM: "dumb",
    NO_COLOR: "1",
    CI: "1",
    TMPDIR: `${home}/tmp`,
  };
}
