/**
 * The globals of Deno and Bun. The command line uses them where `node:` modules would need another permission, or would
 * load while clients wait for a served file. No other file of the command line uses these globals.
 *
 * @module
 */
import type { Stats } from "node:fs";

/** The parts of `Bun` that the command line uses. */
export interface BunGlobal {
  readonly version: string;
  readonly argv: readonly string[];
  readonly stdin: { stat(): Promise<Stats> };
  file(path: string): { stat(): Promise<Stats> };
  /** Adds a plugin to the module loader of this process. */
  plugin(plugin: { readonly name: string; setup(build: BunPluginBuild): void }): void;
  /** Bundles files. Throws an error that contains the problems of the files. */
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
    /** Idle timeout in seconds. */
    readonly idleTimeout: number;
  }): { readonly port: number; stop(): Promise<void> };
}

/** A plugin of a bundler, in the form that Bun and esbuild share. */
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

/** The names of these globals, which Node does not have. */
export const GLOBAL_NAMES: readonly string[] = ["Deno", "Bun"];

// The cast is safe, because each runtime has only its own global, so both globals are optional.
const globals = globalThis as { readonly Deno?: typeof Deno; readonly Bun?: BunGlobal };

/** The global `Deno`, or `undefined` on other runtimes. */
export const deno: typeof Deno | undefined = globals.Deno;

/** The global `Bun`, or `undefined` on other runtimes. */
export const bun: BunGlobal | undefined = globals.Bun;
