// Prints why three files cannot run in a worker thread.
import { fakeContext } from "../../src/testing/testing.ts";
import { worker } from "../../src/ready/worker/worker.ts";

for (const name of ["missing", "silent", "broken"]) {
  const run = worker(new URL(`./${name}.ts`, import.meta.url), { idleMs: 0, startMs: 500 });
  const error: unknown = await run(undefined as never, fakeContext()).catch((error) => error);
  console.log(String(error));
}
