// The configuration of an Astro app with an MCP server.
import node from "@astrojs/node";
import { defineConfig } from "astro/config";

export default defineConfig({
  adapter: node({ mode: "standalone" }),
  security: { checkOrigin: false }, // Otherwise Astro refuses DELETE, which ends a session.
});
