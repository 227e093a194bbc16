/**
 * Loads the checks of values from the server's author. Most results need no checks, because the library created them.
 */
import { LazyModule } from "../../core/protocol/lazy_module.ts";

export const lazyWireCheck: LazyModule<typeof import("./wire_check.ts")> = new LazyModule(() =>
  import("./wire_check.ts")
);
