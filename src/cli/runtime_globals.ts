/**
 * The globals of Deno and Bun. The command line uses these globals where `node:` modules would need additional
 * permissions or would delay a served file. All other files of the command line use the globals through this file.
 */
import type { Stats } from "node:fs";

/** The parts of the global `Bun` that the command line uses. */
export interface BunGlobal {
  readonly version: string;
  readonly argv: readonly string[];
  readonly stdin: { stat(): Promise<Stats> };
  file(path: string): { stat(): Promise<Stats> };
  /** Adds a plugin to the module loader of this process. */
  plugin(plugin: { readonly name: string; setup(build: BunPluginBuild): void }): void;
  /** Bundles files. Throws an error that lists the problems in the files. */
  build(options: {
    readonly entrypoints: readonly string[];
    readonly target: "node";
    readonly minify: boolean;
    readonly sourcemap: "external";
    readonly external: readonly string[];
    readonly plugins: readonly BundlerPlugin[];
  }): Promise<{ readonly outputs: readonly { readonly kind: string; text(): Promise<string> }[] }>;
  /** Resolves a specifier against a folder. Throws if the specifier cannot be resolved. */
  resolveSync(specifier: string, folder: string): string;
  serve(options: {
    readonly hostname: string;
    readonly port: number;
    readonly fetch: (request: Request, info: object) => Promise<Response>;
    /** The idle timeout of connections, in seconds. */
    readonly idleTimeout: number;
  }): { readonly port: number; stop(): Promise<void> };
}

/** A bundler plugin, in the form that Bun and esbuild have in common. */
export interface BundlerPlugin {
  readonly name: string;
  setup(build: Pick<BunPluginBuild, "onResolve">): void;
}

/** The part of a Bun plugin that resolves imports. */
export interface BunPluginBuild {
  module(name: string, load: () => Promise<{ readonly exports: unknown; readonly loader: "object" }>): void;
  onResolve(
    options: { readonly filter: RegExp },
    resolve: (args: { readonly path: string; readonly importer: string }) => { readonly path: string } | undefined,
  ): void;
}

/** The names of the globals that Node does not have. */
export const GLOBAL_NAMES: readonly string[] = ["Deno", "Bun"];

// The cast is safe, because both globals are declared as optional.
const globals = globalThis as { readonly Deno?: typeof Deno; readonly Bun?: BunGlobal };

/** The global `Deno`, or `undefined` on other runtimes. */
export const deno: typeof Deno | undefined = globals.Deno;

/** The global `Bun`, or `undefined` on other runtimes. */
export const bun: BunGlobal | undefined = globals.Bun;
