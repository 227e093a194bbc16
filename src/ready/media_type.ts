/**
 * Maps file name extensions to media types, and detects text files.
 */

const TYPES: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries({
    "text/plain": "txt log conf ini env gitignore",
    "text/markdown": "md markdown",
    "text/html": "html htm",
    "text/css": "css",
    "text/csv": "csv",
    "text/tab-separated-values": "tsv",
    "text/javascript": "js mjs cjs jsx",
    "text/typescript": "ts mts cts tsx",
    "text/x-python": "py",
    "text/x-rust": "rs",
    "text/x-go": "go",
    "text/x-java": "java",
    "text/x-c": "c h",
    "text/x-c++": "cpp cc hpp",
    "text/x-shellscript": "sh bash",
    "text/x-sql": "sql",
    "text/calendar": "ics",
    "application/json": "json jsonc",
    "application/jsonl": "jsonl ndjson",
    "application/yaml": "yaml yml",
    "application/toml": "toml",
    "application/xml": "xml xsl",
    "application/pdf": "pdf",
    "application/zip": "zip",
    "application/gzip": "gz tgz",
    "application/wasm": "wasm",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "image/png": "png",
    "image/jpeg": "jpg jpeg",
    "image/gif": "gif",
    "image/webp": "webp",
    "image/avif": "avif",
    "image/svg+xml": "svg",
    "image/x-icon": "ico",
    "audio/mpeg": "mp3",
    "audio/wav": "wav",
    "audio/ogg": "ogg oga",
    "audio/flac": "flac",
    "video/mp4": "mp4",
    "video/webm": "webm",
    "font/woff2": "woff2",
  }).flatMap(([type, extensions]) => extensions.split(" ").map((extension) => [extension, type])),
);

/** Returns `undefined` if the extension is unknown. */
export function toMediaType(name: string): string | undefined {
  const extension = /\.([^./]+)$/.exec(name)?.[1].toLowerCase() ?? "";
  return Object.hasOwn(TYPES, extension) ? TYPES[extension] : undefined;
}

/** Returns the media type of a response, in lower case and without parameters. Returns "" if there is none. */
export function readMediaType(response: Response): string {
  return (response.headers.get("content-type") ?? "").split(";")[0].trim().toLowerCase();
}

/** Decodes bytes as UTF-8. Returns `undefined` if the bytes are not text. */
export function decodeText(bytes: Uint8Array): string | undefined {
  if (bytes.includes(0)) return;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return;
  }
}
