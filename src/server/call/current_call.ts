/**
 * The call that runs, as seen from asynchronous work that the call has started.
 */
import type { Call } from "./call.ts";

interface CallStorage {
  run<T>(call: Call, run: () => T): T;
  getStore(): Call | undefined;
}

/** The storage is `undefined` until the server reports rejections, because the storage makes calls slower. */
export const current: { storage?: CallStorage } = {};
