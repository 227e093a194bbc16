// The smallest apps of the frameworks on the frameworks page. `writeProject` writes an app into a folder, as the page
// describes it.
import { cp } from "node:fs/promises";
import config from "../../deno.json" with { type: "json" };
import { NODE_VERSIONS } from "../support/node_versions.ts";
import { root } from "../support/processes.ts";
import type { Behaviour } from "./probe.ts";

/** An app of a framework. */
export interface Project {
  /** npm packages with versions. The first packages are the framework and its adapter, whose versions the page shows. */
  readonly packages: readonly string[];
  /** Number of packages whose versions the page shows. Defaults to 1. */
  readonly shown?: number;
  /** The path of the MCP server, such as `app/mcp/server.ts`. */
  readonly server: string;
  /** The paths of programs in examples/frameworks, by their paths in the app. */
  readonly programs: Readonly<Record<string, string>>;
  /** Further members of package.json. */
  readonly manifest?: object;
  /** The texts of further files, by path: files that each app of the framework has. */
  readonly files?: Readonly<Record<string, string>>;
  /** The arguments of `node` that build the app. `PACKAGES` stands for the folder of the packages. */
  readonly build?: readonly string[];
  /** The arguments of `node` or `bun` that start the app. `PACKAGES` and `PORT` are replaced. */
  readonly start: readonly string[];
  readonly runtime?: "bun";
  /** Variables with which the app is started, in addition to the address. */
  readonly env?: Readonly<Record<string, string>>;
  /** The settings of this app without which behaviours fail. */
  readonly settings?: Partial<Readonly<Record<Behaviour, string>>>;
  /** The behaviours that fail, each with a part of the failure. */
  readonly faults?: Partial<Readonly<Record<Behaviour, string>>>;
}

const ZOD = config.imports.zod.replace("npm:", "");
const HONO_SERVER = "@hono/node-server@2.1.9";
const REACT = ["react@19.3.1", "react-dom@19.3.1"];
const VITE = "vite@8.3.8";
/** Packages for the types of apps with React. Next would install missing packages during the build. */
const TYPES = ["typescript@7.0.2", "@types/node@26.6.6", "@types/react@19.3.0"];

/** Returns the app of a framework that needs no build. */
function toProgram(name: string, packages: readonly string[], rest: Partial<Project> = {}): Project {
  const [server, programs] = ["server.ts", { "main.ts": `${name}.ts` }];
  return { server, programs, start: ["main.ts"], ...rest, packages: [...packages, ZOD] };
}

/** Returns a configuration of Next. The packages are in the folder above the app. */
function toNextConfig(option: string): string {
  return `export default { turbopack: { root: import.meta.dirname + "/.." }, ${option} };`;
}

/** An app of Next on the Node runtime. */
export const next: Project = {
  packages: ["next@16.4.6", ...REACT, ...TYPES, ZOD],
  server: "app/mcp/server.ts",
  programs: { "app/mcp/route.ts": "next_route.ts" },
  files: {
    "tsconfig.json": '{ "compilerOptions": { "strict": true, "skipLibCheck": true } }',
    "next.config.mjs": toNextConfig("cacheComponents: true"), // the default of create-next-app
    "app/layout.tsx":
      "export default ({ children }: { children: React.ReactNode }) => <html><body>{children}</body></html>;",
    "app/page.tsx": 'export default function Page() { return "Hello"; }',
  },
  build: ["PACKAGES/next/dist/bin/next", "build"],
  start: ["PACKAGES/next/dist/bin/next", "start", "-p", "PORT"],
};

const sveltekit: Project = {
  packages: [
    "@sveltejs/kit@3.2.0",
    "@sveltejs/adapter-node@6.0.1",
    "@sveltejs/vite-plugin-svelte@7.3.1",
    "svelte@5.57.3",
    VITE,
    ZOD,
  ],
  shown: 2,
  server: "src/routes/mcp/server.ts",
  programs: { "src/routes/mcp/+server.ts": "sveltekit_route.ts", "vite.config.mjs": "apps/sveltekit.config.mjs" },
  files: {
    "src/app.html": "<html><head>%sveltekit.head%</head><body>%sveltekit.body%</body></html>",
    "src/routes/+page.svelte": "Hello",
  },
  build: ["PACKAGES/vite/bin/vite.js", "build"],
  start: ["build/index.js"],
  env: { BODY_SIZE_LIMIT: "4M" },
  settings: {
    "DELETE": "`csrf.trustedOrigins`",
    "1 MB argument": "`BODY_SIZE_LIMIT=4M`",
    "3.9 MB argument": "`BODY_SIZE_LIMIT=4M`",
  },
};

const nuxt: Project = {
  packages: ["nuxt@4.5.2", HONO_SERVER, "vue@3.5.45", ZOD],
  server: "server/mcp.ts",
  programs: { "server/routes/mcp.ts": "apps/nuxt_route.ts" },
  files: { "app/app.vue": "<template>Hello</template>", "nuxt.config.ts": "export default { telemetry: false };" },
  build: ["PACKAGES/nuxt/bin/nuxt.mjs", "build"],
  start: [".output/server/index.mjs"],
  settings: { "disconnect": "`fromNodeMiddleware`" },
};

const astro: Project = {
  packages: ["astro@7.3.5", "@astrojs/node@11.1.6", ZOD],
  shown: 2,
  server: "src/server.ts",
  programs: { "src/pages/mcp.ts": "apps/astro_route.ts", "astro.config.mjs": "apps/astro.config.mjs" },
  files: { "src/pages/index.astro": "Hello" },
  build: ["PACKAGES/astro/bin/astro.mjs", "build"],
  start: ["dist/server/entry.mjs"],
  settings: { "DELETE": "`security.checkOrigin: false`" },
};

/** The apps by the names that `deno task frameworks` takes. */
export const projects: Readonly<Record<string, Project>> = {
  next,
  "next-edge": {
    ...next,
    programs: { "app/mcp/route.ts": "next_edge_route.ts" },
    files: { ...next.files, "next.config.mjs": toNextConfig("") },
  },
  sveltekit,
  nuxt,
  "nitro": {
    packages: ["nitro@3.0.0", ZOD],
    // Nitro takes a file server.ts for the entry of the app.
    server: "mcp.ts",
    programs: { "routes/mcp.ts": "apps/nitro_route.ts" },
    build: ["PACKAGES/nitro/dist/cli/index.mjs", "build"],
    start: [".output/server/index.mjs"],
  },
  astro,
  "react-router": {
    packages: [
      "react-router@8.4.0",
      "@react-router/serve@8.4.0",
      "@react-router/dev@8.4.0",
      "@react-router/node@8.4.0",
      ...REACT,
      VITE,
      "isbot@5.2.3",
      ZOD,
    ],
    shown: 2,
    server: "app/server.ts",
    manifest: { dependencies: { isbot: "5" } }, // Otherwise the build installs this package.
    programs: { "app/mcp.ts": "react_router_route.ts" },
    files: {
      "vite.config.ts": `import { reactRouter } from "@react-router/dev/vite";
export default { plugins: [reactRouter()] };`,
      "app/routes.ts": `import { index, route } from "@react-router/dev/routes";
export default [index("home.tsx"), route("mcp", "mcp.ts")];`,
      "app/home.tsx": 'export default () => "Hello";',
      "app/root.tsx": `import { Outlet, Scripts } from "react-router";
export default () => <html><body><Outlet /><Scripts /></body></html>;`,
    },
    build: ["PACKAGES/@react-router/dev/bin.cjs", "build"],
    start: ["PACKAGES/@react-router/serve/bin.cjs", "build/server/index.js"],
  },
  "tanstack-start": {
    packages: [
      "@tanstack/react-start@1.169.5",
      "srvx@1.0.8",
      "@tanstack/react-router@1.170.46",
      "@vitejs/plugin-react@6.3.0",
      ...REACT,
      VITE,
      ZOD,
    ],
    shown: 2,
    // TanStack Start takes a file src/server.ts for the entry of the app.
    server: "src/mcp.ts",
    programs: { "src/routes/mcp.ts": "apps/tanstack_route.ts" },
    files: {
      "vite.config.ts": `import { tanstackStart } from "@tanstack/react-start/plugin/vite";
import react from "@vitejs/plugin-react";
export default { plugins: [tanstackStart(), react()] };`,
      "src/router.tsx": `import { createRouter } from "@tanstack/react-router";
import { routeTree } from "./routeTree.gen";
export const getRouter = () => createRouter({ routeTree });`,
      "src/routes/__root.tsx": `import { createRootRoute, HeadContent, Outlet, Scripts } from "@tanstack/react-router";
export const Route = createRootRoute({
  component: () => <html><head><HeadContent /></head><body><Outlet /><Scripts /></body></html>,
});`,
      "src/routes/index.tsx": `import { createFileRoute } from "@tanstack/react-router";
export const Route = createFileRoute("/")({ component: () => "Hello" });`,
    },
    build: ["PACKAGES/vite/bin/vite.js", "build"],
    start: [
      "PACKAGES/srvx/bin/srvx.mjs",
      "serve",
      "--prod",
      "--static",
      "../client",
      "--entry",
      "dist/server/server.js",
    ],
  },
  "hono": toProgram("hono_node", ["hono@4.13.19", HONO_SERVER], { shown: 2 }),
  "express": toProgram("express", ["express@5.3.0", HONO_SERVER], { shown: 2 }),
  "fastify": toProgram("fastify", ["fastify@5.12.8", HONO_SERVER], { shown: 2 }),
  "koa": toProgram("apps/koa", ["koa@3.3.0", HONO_SERVER], { shown: 2 }),
  "elysia": toProgram("elysia", ["elysia@1.4.30"], { runtime: "bun" }),
  "elysia-node": toProgram("apps/elysia_node", ["elysia@1.4.30", "@elysiajs/node@1.4.5"], { shown: 2 }),
  "h3": toProgram("h3", ["h3@2.0.8"]),
  "srvx": toProgram("srvx", ["srvx@1.0.8"]),
};

const REFUSED = "HTTP 403";

/**
 * Apps without the settings that the page names, which show that the settings are still needed. They are probed together
 * with the apps, but are not part of the record.
 */
export const withoutSettings: Readonly<Record<string, Project>> = {
  "sveltekit-defaults": {
    ...sveltekit,
    programs: { "src/routes/mcp/+server.ts": "sveltekit_route.ts" },
    files: {
      ...sveltekit.files,
      "vite.config.js": `import adapter from "@sveltejs/adapter-node";
import { sveltekit } from "@sveltejs/kit/vite";
export default { plugins: [sveltekit({ adapter: adapter() })] };`,
    },
    env: {},
    settings: {},
    faults: { "DELETE": REFUSED, "1 MB argument": "BODY_SIZE_LIMIT", "3.9 MB argument": "BODY_SIZE_LIMIT" },
  },
  "astro-defaults": {
    ...astro,
    programs: { "src/pages/mcp.ts": "apps/astro_route.ts" },
    files: {
      ...astro.files,
      "astro.config.mjs": `import node from "@astrojs/node";
export default { adapter: node({ mode: "standalone" }) };`,
    },
    settings: {},
    faults: { "DELETE": REFUSED },
  },
  "nuxt-web": {
    ...nuxt,
    programs: {},
    files: {
      ...nuxt.files,
      "server/routes/mcp.ts": `import { defineEventHandler, toWebRequest } from "h3";
import { mcp } from "../mcp.ts";
export default defineEventHandler((event) => mcp.fetch(toWebRequest(event)));`,
    },
    settings: {},
    faults: { "disconnect": "was not cancelled" },
  },
};

/** The version of Node that builds and starts the apps. */
export const NODE: string = NODE_VERSIONS[1];

/** Variables for builds and apps: no telemetry, no prompts. */
export const ENV: Readonly<Record<string, string>> = {
  ASTRO_TELEMETRY_DISABLED: "1",
  CI: "1",
  NEXT_TELEMETRY_DISABLED: "1",
  NUXT_TELEMETRY_DISABLED: "1",
};

/**
 * Returns a program of examples/frameworks as the page shows it. The compiler options of Next reject the extension `.ts`
 * in imports, which Deno needs.
 */
export function toShown(name: string, text: string): string {
  return /(^|\/)next_/.test(name) ? text.replace("./server.ts", "./server") : text;
}

/** Writes an app into a folder. `server` is the text of the MCP server, and `library` a folder with the npm package. */
export async function writeProject(
  project: Project,
  { folder, server, library }: { readonly folder: string; readonly server: string; readonly library: string },
): Promise<void> {
  const write = async (path: string, text: string) => {
    await Deno.mkdir(`${folder}/${path}`.replace(/\/[^/]*$/, ""), { recursive: true });
    await Deno.writeTextFile(`${folder}/${path}`, text);
  };
  await write("package.json", JSON.stringify({ name: "site", private: true, type: "module", ...project.manifest }));
  await write(project.server, server);
  for (const [path, text] of Object.entries(project.files ?? {})) await write(path, text);
  for (const [path, name] of Object.entries(project.programs)) {
    await write(path, toShown(name, await Deno.readTextFile(`${root}examples/frameworks/${name}`)));
  }
  await cp(library, `${folder}/node_modules/${config.name}`, { recursive: true });
}
