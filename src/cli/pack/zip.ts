/**
 * Writes zip archives. The same files always result in the same bytes, because the entries are sorted, and all entries
 * have the same date and mode.
 */

/** The earliest date in the zip format, which is 1 January 1980. */
const DATE = 0x21;
/** Bit 11 of the flags: the name is in UTF-8. */
const UTF8 = 0x800;
const DEFLATE = 8;
/** Version 2.0 of the zip format. */
const VERSION = 20;
/** The operating system of the entries: Unix, which defines the meaning of `MODE`. */
const UNIX = 3 << 8;
/** The mode of a file that its owner may write and all users may read, in the upper half of the attributes. */
const MODE = 0o100644 * 0x10000;

/** Packs files into a zip archive. The keys of the map are the paths in the archive. */
export function writeZip(files: ReadonlyMap<string, Uint8Array>): Uint8Array<ArrayBuffer> {
  const { crc32, deflateRawSync } = process.getBuiltinModule("zlib");
  const parts: Uint8Array<ArrayBuffer>[] = [];
  const directory: Uint8Array<ArrayBuffer>[] = [];
  let offset = 0;
  for (const [path, bytes] of [...files].sort(([a], [b]) => a < b ? -1 : 1)) {
    const name = new TextEncoder().encode(path);
    const packed = new Uint8Array(deflateRawSync(bytes));
    const common = [
      ...[toShort(VERSION), toShort(UTF8), toShort(DEFLATE), toShort(0), toShort(DATE)],
      ...[toLong(crc32(bytes)), toLong(packed.length), toLong(bytes.length), toShort(name.length), toShort(0)],
    ];
    const local = concatenate([toLong(0x04034b50), ...common, name, packed]);
    directory.push(concatenate([
      ...[toLong(0x02014b50), toShort(VERSION | UNIX), ...common],
      ...[toShort(0), toShort(0), toShort(0), toLong(MODE), toLong(offset), name],
    ]));
    parts.push(local);
    offset += local.length;
  }
  const index = concatenate(directory);
  const count = toShort(files.size);
  const end = [
    toLong(0x06054b50),
    toShort(0),
    toShort(0),
    count,
    count,
    toLong(index.length),
    toLong(offset),
    toShort(0),
  ];
  return concatenate([...parts, index, ...end]);
}

function toShort(value: number): Uint8Array<ArrayBuffer> {
  return Uint8Array.of(value, value >> 8);
}

function toLong(value: number): Uint8Array<ArrayBuffer> {
  return Uint8Array.of(value, value >> 8, value >> 16, value >> 24);
}

function concatenate(parts: readonly Uint8Array<ArrayBuffer>[]): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
