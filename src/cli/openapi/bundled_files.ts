/**
 * Puts the files to which a document refers into the document, because a server reads one document and no other files.
 */
import { isObject } from "../../core/kit/json.ts";
import { decodePercent } from "../../core/kit/url_text.ts";
import { Folder, isUnavailable } from "../../ready/files/confined_folder.ts";
import { isAbsolute, joinPath, toAbsolutePath, toBaseName, toFolder, toRelativePath } from "../../ready/files/path.ts";
import { checkJson } from "../../ready/openapi/json_copy.ts";
import { MAX_DOCUMENT_BYTES, parseDocument } from "../config/api_document.ts";
import { platform } from "../platform.ts";

/** The member of a document with the files to which it refers, by their path. */
const FILES = "x-mcp-files";

export interface BundledDocument {
  readonly document: object;
  /** Whether the document contains other files. */
  readonly isBundled: boolean;
}

/**
 * Adds the files to which a document refers, directly or through other files, if they are in the folder of the document
 * or below it. All other references stay as they are. `path` is the absolute path of the document.
 *
 * @throws {TypeError} if a file is neither JSON nor YAML, or all files together have more than 50 MB.
 */
export async function bundleFiles(document: object, path: string): Promise<BundledDocument> {
  const bundle = new Bundle(path);
  // Such as an anchor of YAML that contains itself.
  checkJson(document);
  const copy = await bundle.add(document);
  return { document: copy, isBundled: copy !== document };
}

class Bundle {
  readonly #folder: string;
  readonly #name: string;
  /** The files by their path relative to the folder. `undefined` for a file that cannot be read. */
  readonly #files = new Map<string, object | undefined>();
  #bytes = 0;

  constructor(path: string) {
    this.#folder = toFolder(path);
    this.#name = toBaseName(path);
  }

  async add(document: object): Promise<object> {
    const root = await platform.files.resolve(this.#folder);
    if (root === undefined) return document;
    const folder = new Folder({ root, exclude: [], maxBytes: MAX_DOCUMENT_BYTES });
    this.#list(document, this.#name);
    // The files that the loop finds are visited too.
    for (const [name] of this.#files) {
      const bytes = await folder.read(name);
      if (isUnavailable(bytes)) continue;
      this.#bytes += bytes.length;
      if (this.#bytes > MAX_DOCUMENT_BYTES) throw new TypeError("its files have more than 50 MB; remove parts of them");
      const file = parseFile(bytes, name);
      this.#files.set(name, file);
      this.#list(file, name);
    }
    const files = [...this.#files].filter(([, file]) => file !== undefined);
    if (!files.length) return document;
    const rewritten = files.map(([name, file]) => [name, this.#rewrite(file, name)] as const);
    const copy = Object(this.#rewrite(document, this.#name));
    // A document that was written before can contain other files.
    return { ...copy, [FILES]: { ...Object(copy[FILES]), ...Object.fromEntries(rewritten) } };
  }

  /** Lists the files to which the references of a value in the file `from` lead. */
  #list(value: unknown, from: string): void {
    if (typeof value !== "object" || value === null) return;
    for (const [key, part] of Object.entries(value)) {
      if (key !== "$ref" || typeof part !== "string") {
        this.#list(part, from);
        continue;
      }
      const { name } = this.#read(part, from);
      if (name !== undefined && name !== this.#name && !this.#files.has(name)) this.#files.set(name, undefined);
    }
  }

  /** Returns a copy of a value in the file `from`, whose references lead to the added files. */
  #rewrite(value: unknown, from: string): unknown {
    if (Array.isArray(value)) return value.map((item) => this.#rewrite(item, from));
    if (!isObject(value)) return value;
    return Object.fromEntries(
      Object.entries(value).map(([key, part]) => [
        key,
        key === "$ref" && typeof part === "string" ? this.#toRef(part, from) : this.#rewrite(part, from),
      ]),
    );
  }

  #toRef(ref: string, from: string): string {
    const { name, pointer } = this.#read(ref, from);
    if (name === this.#name) return `#${pointer}`;
    if (name === undefined || !this.#files.get(name) || !/^(\/|$)/.test(pointer)) return ref;
    return `#/${FILES}/${encodeURIComponent(name.replaceAll("~", "~0").replaceAll("/", "~1"))}${pointer}`;
  }

  /** Splits a reference in the file `from`. `name` is the path in the folder, or `undefined` if the file is elsewhere. */
  #read(ref: string, from: string): { readonly name?: string; readonly pointer: string } {
    const [file, pointer = ""] = ref.split("#", 2);
    if (!file) return { name: from, pointer };
    if (/^[a-z][a-z\d+.-]*:|^\/\//i.test(file) || isAbsolute(file)) return { pointer };
    const plain = file.split("?", 1)[0];
    const path = (decodePercent(plain) ?? plain).replaceAll("\\", "/");
    const base = joinPath(this.#folder, from.includes("/") ? toFolder(from) : "");
    return { name: toRelativePath(this.#folder, toAbsolutePath(joinPath(base, path), () => "/", false)), pointer };
  }
}

function parseFile(bytes: Uint8Array, name: string): object {
  try {
    const file = parseDocument(bytes);
    checkJson(file);
    return file;
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw new TypeError(`${name}: ${error.message}`, { cause: error });
  }
}
