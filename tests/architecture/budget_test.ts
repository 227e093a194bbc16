// The size of a server's bundle, and the packages that a server loads.
import { assert, assertEquals, assertGreater } from "@std/assert";
import { BUNDLE_KIB, weighServer } from "./budget_size.ts";
import { listModules } from "./loaded_modules.ts";
import { onDeno } from "../support/on_deno.ts";
import { listSources } from "../support/sources.ts";
import { findLoads } from "./rules.ts";

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

// The library loads only a few modules on demand.

const root = new URL("../../", import.meta.url);
/**
 * By file, the modules that the file loads on demand. Loading each module at startup would take at least 3 ms, or would
 * require a package. Routes, development reports, reports of ignored questions, reads of resources by handlers, checks of the author's values, sealed
 * values, `admit`, the limitation to some revisions, entries of other servers that cannot be served, several providers of
 * one scheme, and what providers of tools remember are exceptions: few servers use them, and they must not enlarge the
 * bundles of other servers.
 */
const lazyModules: Readonly<Record<string, readonly string[]>> = {
  "src/auth/oauth/access_token.ts": ["src/auth/oauth/token_requests.ts"],
  "src/server/call/call.ts": ["src/server/call/forward.ts"],
  "src/server/call/sealer.ts": ["src/server/call/cipher.ts"],
  "src/server/call/lazy_wire_check.ts": ["src/server/call/wire_check.ts"],
  "src/server/engine/scheduler.ts": ["src/server/call/ignored_questions.ts"],
  "src/server/services/service_container.ts": ["src/server/services/service_handles.ts"],
  "src/server/services/lazy_container.ts": ["src/server/services/service_container.ts"],
  "src/server/eras/legacy/http_sessions.ts": ["src/server/eras/legacy/session.ts"],
  "src/server/eras/eras.ts": ["src/server/eras/narrow_era.ts", "src/server/eras/modern/modern.ts"],
  "src/server/handlers/completion.ts": ["src/server/handlers/open_providers.ts"],
  "src/server/handlers/extension_lives.ts": ["src/server/engine/server_part.ts"],
  "src/server/handlers/layer.ts": ["src/server/handlers/idempotent_call.ts"],
  "src/layers/planned/planned.ts": ["src/server/handlers/planned_call.ts"],
  "src/server/handlers/listed.ts": ["src/server/handlers/skipped.ts"],
  "src/server/handlers/resource_methods.ts": ["src/server/handlers/provider_chain.ts"],
  "src/server/handlers/runner_steps.ts": ["src/server/handlers/set_member.ts", "src/server/handlers/extension_call.ts"],
  "src/server/handlers/lazy_values.ts": ["src/server/handlers/values.ts"],
  "src/library.ts": ["src/server/eras/legacy/legacy.ts"],
  "src/proxy/proxy.ts": ["src/proxy/upstream_tasks.ts"],
  "src/ready/code/code_mode.ts": [
    "src/ready/code/process_sandbox.ts",
    "src/ready/code/program.ts",
    "src/ready/code/declarations.ts",
  ],
  "src/proxy/parked_calls.ts": ["src/proxy/parked_routes.ts"],
  "src/server/mount.ts": ["src/server/routes.ts"],
  "src/core/schema/schema_compiler.ts": ["src/core/schema/schema_checks.ts"],
  "src/server/create_core.ts": ["src/server/engine/admission.ts"],
  "src/server/server.ts": [
    "src/server/routes.ts",
    "src/server/engine/grant.ts",
    "src/server/engine/inner_methods.ts",
    "src/server/transports/http/http_authenticator.ts",
    "src/server/transports/http/path_router.ts",
    "src/server/call/development.ts",
  ],
  "src/server/transports/http/lazy_endpoint.ts": ["src/server/transports/http/fetch.ts"],
};

onDeno("the library loads only the listed modules on demand", async () => {
  const found: Record<string, readonly string[]> = {};
  for (const path of await listSources("src/")) {
    if (["src/cli/", "src/host.ts", "src/client/", "src/testing/"].some((folder) => path.startsWith(folder))) {
      continue;
    }
    const loads = findLoads(path, await Deno.readTextFile(new URL(path, root)));
    if (loads.length) found[path] = loads;
  }
  assertEquals(found, lazyModules);
});
