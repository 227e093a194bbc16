// The configuration of a SvelteKit app with an MCP server, in the file vite.config.js.
import adapter from "@sveltejs/adapter-node";
import { sveltekit } from "@sveltejs/kit/vite";

export default {
  // Without `trustedOrigins`, SvelteKit refuses DELETE, which ends a session.
  plugins: [sveltekit({ adapter: adapter(), csrf: { trustedOrigins: ["*"] } })],
};
