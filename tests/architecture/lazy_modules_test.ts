// The library loads only a few modules on demand.
import { assertEquals } from "@std/assert";
import { listSources } from "../support/sources.ts";
import { onDeno } from "../support/on_deno.ts"; // Deno's linter provides the syntax tree.
import { findLoads } from "./rules.ts";

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
  "src/server/handlers/listed.ts": ["src/server/handlers/skipped.ts"],
  "src/server/handlers/resource_methods.ts": ["src/server/handlers/provider_chain.ts"],
  "src/server/handlers/runner_steps.ts": ["src/server/handlers/extension_call.ts"],
  "src/server/handlers/lazy_values.ts": ["src/server/handlers/values.ts"],
  "src/library.ts": ["src/server/eras/legacy/legacy.ts"],
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
