/** Registers a test that Bun skips. The import states the reason. */
export function onDeno(name: string, run: () => void | Promise<void>): void {
  Deno.test({ name, ignore: typeof Deno === "undefined", fn: run });
}
