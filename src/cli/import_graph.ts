/**
 * The files that a server file imports. `mcp --watch` watches them, and loads changed files again.
 *
 * @module
 */
import { onImport } from "./platform_imports.ts";

/** This library, which does not change while it runs. */
const LIBRARY = [new URL("../", import.meta.url).href, new URL("../../mod.", import.meta.url).href];

/** Follows imports from its creation on. */
export class ImportGraph {
  /** The files that each file imports. Imports that a file no longer has stay, because they do no harm. */
  readonly #imports = new Map<string, Set<string>>();
  readonly #versions = new Map<string, number>();
  #version = 0;

  /** Starts to follow the imports of this process. */
  constructor() {
    onImport((file, importer) => {
      if (LIBRARY.some((start) => file.startsWith(start))) return 0;
      const imports = this.#imports.get(importer) ?? new Set();
      this.#imports.set(importer, imports.add(file));
      return this.#versions.get(file) ?? 0;
    });
  }

  /** The URLs of a file and all files that it imports, directly or not. */
  list(file: string): readonly string[] {
    const found = new Set([file]);
    for (const each of found) for (const next of this.#imports.get(each) ?? []) found.add(next);
    return [...found];
  }

  /**
   * Makes the next import of these files load changed files again, and the files that import them. Other files keep
   * their state.
   */
  renew(entries: readonly string[], changed: readonly string[]): void {
    this.#version++;
    const files = new Set(entries.flatMap((entry) => this.list(entry)));
    for (const file of files) {
      if (this.list(file).some((each) => changed.includes(each))) this.#versions.set(file, this.#version);
    }
  }
}
