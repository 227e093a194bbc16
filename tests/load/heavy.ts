// Exposes a function that computes in a worker thread, for the load program.
import { exposeWorker } from "../../src/ready/worker/worker.ts";

export default exposeWorker(async ({ job, ms }: { readonly job: string; readonly ms: number }, { signal }) => {
  const end = performance.now() + ms;
  if (job === "crash") {
    setTimeout(() => {
      throw new Error("thrown on purpose");
    });
    await new Promise(() => {});
  }
  if (job === "spin") { while (performance.now() < end); }
  if (job === "poll") { while (performance.now() < end) signal.throwIfAborted(); }
  return job;
});
