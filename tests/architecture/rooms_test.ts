// The library loads only a few parts on demand. Each such part, a "room", is loaded as a whole.
import { assertEquals } from "@std/assert";
import { listSources } from "../support/sources.ts";
import { findLoads } from "./rules.ts";

const root = new URL("../../", import.meta.url);
const ignore = typeof Deno === "undefined"; // Deno's linter provides the syntax tree.

/**
 * By file, the rooms that the file loads on demand. Loading each room at startup would take at least 3 ms, or would
 * require a package. Routes, development reports, reports of ignored questions, reads of resources by handlers, checks of the author's values, sealed
 * values, `admit` and the limitation to some revisions are exceptions: few servers use them, and they must not enlarge the
 * bundles of other servers.
 */
const rooms: Readonly<Record<string, readonly string[]>> = {
  "src/auth/oauth/access_token.ts": ["src/auth/oauth/token_requests.ts"],
  "src/core/call/call.ts": ["src/core/call/forward.ts"],
  "src/core/call/sealer.ts": ["src/core/call/cipher.ts"],
  "src/core/call/wire_room.ts": ["src/core/call/wire_check.ts"],
  "src/core/scheduler.ts": ["src/core/call/ignored_questions.ts"],
  "src/core/services/lazy_container.ts": ["src/core/services/service_container.ts"],
  "src/eras/legacy/http_sessions.ts": ["src/eras/legacy/session.ts"],
  "src/eras/eras.ts": ["src/eras/narrow_era.ts", "src/eras/modern/modern.ts"],
  "src/handlers/extension_lives.ts": ["src/core/server_part.ts"],
  "src/handlers/handler_layers.ts": ["src/handlers/extension_call.ts"],
  "src/handlers/layer.ts": ["src/handlers/idempotent_call.ts"],
  "src/handlers/value_room.ts": ["src/handlers/values.ts"],
  "src/library.ts": ["src/eras/legacy/legacy.ts"],
  "src/mount.ts": ["src/server/routes.ts"],
  "src/schema/schema_compiler.ts": ["src/schema/schema_room.ts"],
  "src/server/core.ts": ["src/core/admission.ts"],
  "src/server/server.ts": [
    "src/server/routes.ts",
    "src/core/inner_read.ts",
    "src/transports/http/http_authenticator.ts",
    "src/transports/http/path_router.ts",
    "src/core/call/development.ts",
  ],
  "src/transports/http/lazy_endpoint.ts": ["src/transports/http/fetch.ts"],
};

Deno.test({
  name: "the library loads only the listed rooms on demand",
  ignore,
  async fn() {
    const found: Record<string, readonly string[]> = {};
    for (const path of await listSources("src/")) {
      if (["src/cli/", "src/host.ts", "src/client/", "src/testing/"].some((folder) => path.startsWith(folder))) {
        continue;
      }
      const loads = findLoads(path, await Deno.readTextFile(new URL(path, root)));
      if (loads.length) found[path] = loads;
    }
    assertEquals(found, rooms);
  },
});
