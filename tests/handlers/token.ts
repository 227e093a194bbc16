// A worker handler that returns the idempotency token of its call, and a value that differs between runs.
import { exposeWorker } from "../../src/ready/worker/worker.ts";

export default exposeWorker((_input: unknown, { idempotencyToken }) => ({
  token: idempotencyToken,
  run: crypto.randomUUID(),
}));
