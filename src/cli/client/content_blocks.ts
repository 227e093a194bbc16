/**
 * Content as text, and the bytes in it.
 *
 * @module
 */
import { fromBase64 } from "../../protocol/base64.ts";
import { isObject, type Params } from "../../protocol/jsonrpc.ts";
import { platform } from "../platform.ts";
import { Problem } from "../problem.ts";
import { toSize } from "./listing_text.ts";
import { toLine } from "./terminal_text.ts";
import { tellLine } from "./terminal_output.ts";

/** A piece of content. */
export interface Piece {
  /** What is shown of it. */
  readonly text: string;
  /** What is in it, if that is not the text. */
  readonly bytes?: Uint8Array;
}

/** What to show of a content block. */
export function toPiece(block: unknown): Piece {
  if (!isObject(block)) return { text: JSON.stringify(block) ?? "" };
  const { type, text, data, mimeType, resource, uri } = block;
  if (type === "text" && typeof text === "string") return { text };
  if ((type === "image" || type === "audio") && typeof data === "string") return toBinary(type, data, mimeType);
  if (type === "resource" && isObject(resource)) return toContent(resource);
  if (type === "resource_link" && typeof uri === "string") {
    const facts = [block.name, mimeType, block.description].filter((fact) => typeof fact === "string");
    return { text: [`[link] ${toLine(uri, 2000)}`, ...facts.map((fact) => toLine(fact))].join("  ") };
  }
  return { text: JSON.stringify(block) };
}

/** What to show of what a resource holds. */
export function toContent({ text, blob, mimeType, uri }: Params): Piece {
  if (typeof text === "string") return { text };
  if (typeof blob === "string") return toBinary(toLine(uri ?? "resource", 200), blob, mimeType);
  return { text: "" };
}

function toBinary(kind: string, data: string, mimeType: unknown): Piece {
  const bytes = fromBase64(data);
  const type = toLine(mimeType ?? "of no type", 100);
  if (!bytes) return { text: `[${kind} ${type}, which is not base64]` };
  return { text: `[${kind} ${type}, ${toSize(bytes.length)}]`, bytes };
}

/** Writes the bytes of all pieces that have some, each to a file, or else the text of all of them to one. */
export async function savePieces(pieces: readonly Piece[], file: string): Promise<void> {
  const contents = pieces.flatMap(({ bytes }) => bytes ?? []);
  if (!contents.length) contents.push(new TextEncoder().encode(pieces.map(({ text }) => text).join("\n")));
  for (const [i, content] of contents.entries()) {
    const path = i ? file.replace(/(\.[^./]*)?$/, `-${i + 1}$1`) : file;
    try {
      await platform.files.write(platform.toPath(path), content);
    } catch (error) {
      throw new Problem(`Cannot write ${path}: ${error instanceof Error ? error.message : error}; choose another file`);
    }
    tellLine(`Wrote ${path}: ${toSize(content.length)}`);
  }
}
