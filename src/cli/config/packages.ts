/**
 * The two packages that config files need: zod, which checks them, and the JSONC parser of Deno's standard library.
 *
 * Deno fetches what a program could ever import when it starts. These are imported by names that it cannot see, so that
 * whoever serves no config file needs no package.
 *
 * @module
 */
import { host } from "../host.ts";
import { Problem } from "../problem.ts";

/** What each runtime calls them. The versions are those of `deno.json`. */
export const PACKAGES = {
  zod: { deno: "npm:zod@^4", bun: "zod" },
  jsonc: { deno: "npm:deno-std@1.4.0/jsonc/mod.js", bun: "deno-std/jsonc/mod.js" },
} as const;

/** The schema library. */
export const { z }: typeof import("npm:zod@^4") = await importPackage("zod");

/** The parser of JSON with comments. */
export const { parse }: { readonly parse: (text: string) => unknown } = await importPackage("jsonc");

async function importPackage<Module>(name: keyof typeof PACKAGES): Promise<Module> {
  const specifier = PACKAGES[name][host.runtime];
  try {
    return await import(specifier);
  } catch (error) {
    const remedy = host.runtime === "bun" ? "install both with `bun add zod deno-std`" : "connect to fetch it once";
    const state = error instanceof Error ? error.message : String(error);
    throw new Problem(`Cannot read config files without the package ${specifier}: ${state}; ${remedy}`);
  }
}
