// The published documents of the tests, which npm packages contain. The packages are installed into a cache folder.
import { gunzipSync } from "node:zlib";
import { parse } from "yaml";
import { findPackages } from "../support/npm_packages.ts";

interface PublishedPackage {
  readonly name: string;
  readonly version: string;
  readonly license: string;
  /** The files with documents. A folder stands for all JSON files in it. */
  readonly files: readonly string[];
}

/** The packages, with their licenses. */
export const PACKAGES: readonly PublishedPackage[] = [
  {
    name: "@octokit/openapi",
    version: "23.0.2",
    license: "MIT",
    files: ["generated/api.github.com.json", "generated/ghec.json", "generated/ghes-3.19.json"],
  },
  {
    name: "kubernetes-client",
    version: "9.0.0",
    license: "MIT; the document Apache-2.0",
    files: ["lib/specs/swagger-1.13.json.gz"],
  },
  { name: "@directus/specs", version: "15.2.0", license: "MSCL-1.0-GPL", files: ["dist/openapi.json"] },
  { name: "@blockfrost/openapi", version: "0.1.93", license: "MIT", files: ["openapi.yaml"] },
  { name: "@readme/oas-examples", version: "8.2.2", license: "MIT", files: ["2.0/json", "3.0/json", "3.1/json"] },
];

/** A document with its name, such as `@octokit/openapi/generated/api.github.com.json`. */
export interface PublishedDocument {
  readonly name: string;
  /** The file of the document. It may be compressed. */
  readonly file: string;
  readonly read: () => Promise<Record<string, unknown>>;
}

/** Installs the packages, and lists their documents. Returns the reason if they cannot be installed. */
export async function findDocuments(): Promise<readonly PublishedDocument[] | { readonly missing: string }> {
  const found = await findPackages("openapi", PACKAGES.map(({ name, version }) => `${name}@${version}`));
  if ("missing" in found) return found;
  const documents: PublishedDocument[] = [];
  for (const { name, files } of PACKAGES) {
    for (const file of files) {
      const path = `${found.folder}/node_modules/${name}/${file}`;
      const paths = /\.\w+$/.test(file) && !/\/json$/.test(file) ? [file] : await listJson(path, file);
      for (const each of paths) {
        const whole = `${found.folder}/node_modules/${name}/${each}`;
        documents.push({ name: `${name}/${each}`, file: whole, read: () => readDocument(whole) });
      }
    }
  }
  return documents;
}

async function listJson(folder: string, name: string): Promise<readonly string[]> {
  const files: string[] = [];
  for await (const entry of Deno.readDir(folder)) if (entry.name.endsWith(".json")) files.push(`${name}/${entry.name}`);
  return files.sort();
}

async function readDocument(path: string): Promise<Record<string, unknown>> {
  const bytes = await Deno.readFile(path);
  const text = new TextDecoder().decode(path.endsWith(".gz") ? gunzipSync(bytes) : bytes);
  return path.endsWith(".yaml") ? parse(text) : JSON.parse(text);
}
