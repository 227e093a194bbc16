// The size of a server's bundle, and the packages that a server loads.
import { assert, assertEquals, assertGreater } from "@std/assert";
import { BUNDLE_KIB, weighServer } from "./budget_size.ts";
import { listModules } from "./loaded_modules.ts";
import { onDeno } from "../support/on_deno.ts"; // Only Deno runs this test, because the bundles are the same on every runtime.

onDeno(`an HTTP server with one tool has at most ${BUNDLE_KIB} KiB of minified code`, async () => {
  const { bytes } = await weighServer("mod.ts");
  assertGreater(bytes, 1024, "the bundle contains no server");
  assert(bytes <= BUNDLE_KIB * 1024, `${bytes} bytes exceed the limit by ${bytes - BUNDLE_KIB * 1024}`);
});

for (
  const entry of [
    "mod.ts",
    "src/server/transports/stdio/stdio.ts",
    "src/server/transports/http/sse_2024.ts",
    "src/server/transports/websocket.ts",
    "src/auth/auth.ts",
    "src/testing/testing.ts",
    "src/client/client.ts",
  ]
) {
  onDeno(`${entry} loads no package and no CLI module`, async () => {
    const modules = await listModules(entry);
    assert(modules.length > 1);
    const foreign = (name: string) => name.startsWith("src/cli/") || !name.startsWith("src/") && name !== "mod.ts";
    assertEquals(modules.filter(foreign), []);
  });
}
