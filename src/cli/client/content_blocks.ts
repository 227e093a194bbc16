/**
 * Converts content blocks and resource contents to text for the terminal, and saves their binary data.
 */
import { toState } from "../../core/kit/error_state.ts";
import { fromBase64 } from "../../core/kit/base64.ts";
import type { Params } from "../../client/client.ts";
import { isObject } from "../../core/kit/json.ts";
import { platform } from "../platform.ts";
import { isCreated } from "../platform_files.ts";
import { toFolder } from "../../ready/files/path.ts";
import { CliError } from "../cli_error.ts";
import { toSize } from "./listing_text.ts";
import { reportLine } from "./terminal_output.ts";
import { toLine } from "./terminal_text.ts";

export interface PrintableContent {
  readonly text: string;
  /** The data of binary content. `text` describes the data. */
  readonly bytes?: Uint8Array;
}

/** Converts a content block of a tool result or a prompt message to text, and to bytes if the block is binary. */
export function toPrintableBlock(block: unknown): PrintableContent {
  if (!isObject(block)) return { text: JSON.stringify(block) ?? "" };
  const { type, text, data, mimeType, resource, uri } = block;
  if (type === "text" && typeof text === "string") return { text };
  if ((type === "image" || type === "audio") && typeof data === "string") return toBinary(type, data, mimeType);
  if (type === "resource" && isObject(resource)) return toPrintableResource(resource);
  if (type === "resource_link" && typeof uri === "string") {
    const details = [block.name, mimeType, block.description].filter((each) => typeof each === "string");
    return { text: [`[link] ${toLine(uri, 2000)}`, ...details.map((each) => toLine(each))].join("  ") };
  }
  return { text: JSON.stringify(block) };
}

/** Converts the contents of a resource to text, and to bytes if the contents are binary. */
export function toPrintableResource({ text, blob, mimeType, uri }: Params): PrintableContent {
  if (typeof text === "string") return { text };
  if (typeof blob === "string") return toBinary(toLine(uri ?? "resource", 200), blob, mimeType);
  return { text: "" };
}

function toBinary(name: string, data: string, mimeType: unknown): PrintableContent {
  const bytes = fromBase64(data);
  const type = toLine(mimeType ?? "of unknown type", 100);
  if (!bytes) return { text: `[${name} ${type}, invalid base64]` };
  return { text: `[${name} ${type}, ${toSize(bytes.length)}]`, bytes };
}

/**
 * Checks whether a file can be written. Commands call this function before the request, so that no result is lost.
 *
 * @throws {CliError} if the path is a folder, or if the folder of the file does not exist.
 */
export async function checkOutput(file: string): Promise<void> {
  const path = platform.toPath(file);
  const folder = toFolder(path);
  // Without read permission, skip the check: a clearer error message does not justify a permission prompt.
  if (!platform.mayRead(path) || !platform.mayRead(folder)) return;
  const info = await platform.files.stat(path).catch(() => undefined);
  if (info?.kind === "folder") throw new CliError(`Cannot write ${file}: it is a folder; name a file in it`);
  if (info || await platform.files.stat(folder).catch(() => undefined)) return;
  throw new CliError(`Cannot write ${file}: there is no folder ${folder}; create it first`);
}

/**
 * Saves binary contents, each to a separate file. If no content is binary, saves the text to one file. Replaces only the
 * file that the user has named. Other files get a free name, because the server decides how many there are.
 */
export async function saveContents(contents: readonly PrintableContent[], file: string): Promise<void> {
  const binaries = contents.flatMap(({ bytes }) => bytes ?? []);
  if (!binaries.length) binaries.push(new TextEncoder().encode(contents.map(({ text }) => text).join("\n")));
  let number = 1;
  for (const bytes of binaries) {
    let path = "";
    do path = toNumbered(file, number++); while (!await save(path, bytes, path !== file));
    reportLine(`Wrote ${path}: ${toSize(bytes.length)}`);
  }
}

function toNumbered(file: string, number: number): string {
  return number === 1 ? file : file.replace(/(\.[^./]*)?$/, `-${number}$1`);
}

/** Writes a file. Returns `false` if it must be a new file, and exists. */
async function save(path: string, bytes: Uint8Array, isNew: boolean): Promise<boolean> {
  try {
    return await isCreated(platform.files.write(platform.toPath(path), bytes, { isNew }));
  } catch (error) {
    throw new CliError(`Cannot write ${path}: ${toState(error)}; choose another file`);
  }
}
