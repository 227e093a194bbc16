/**
 * Reads a file of a folder, and proves that it lies in it, whatever others do to the folder meanwhile.
 *
 * A path that was checked may lead elsewhere when it is opened: whoever can write to the folder swaps a part of it for
 * a link, and back. Neither runtime opens files relative to a folder that is open, so the path is not trusted but
 * proven. Links and other entries of a folder cannot change without changing the folder's change time, which no program
 * can set. If every folder on the way has the same identity and an older change time before and after the file is
 * opened, then none of them has changed in between, and the open file is the one in the folder.
 *
 * @module
 */
import { platform } from "../platform.ts";
import type { NodeFacts } from "../platform_files.ts";
import { toBelow, toInner } from "../path.ts";
import type { Refusal } from "./folder.ts";

/**
 * Milliseconds by which file systems are behind the clock: they keep change times by its tick, which is at most 10 ms on
 * Linux and 16 ms on Windows. Two changes within one are not told apart.
 */
const TICK_MS = 40;
/** Milliseconds to wait for a folder that changes. */
const PATIENCE_MS = 5000;

/** The first bytes of a file at a path below `root` that has no links. */
export async function readInside(root: string, real: string, most: number): Promise<Uint8Array | Refusal> {
  const inner = toInner(root, real)?.split("/") ?? [];
  const folders = [root, ...inner.slice(0, -1).map((_, i) => toBelow(root, inner.slice(0, i + 1).join("/")))];
  const quietMs = TICK_MS + platform.files.changeTickMs;
  const begin = Date.now();
  for (let start = begin; start - begin < PATIENCE_MS; start = Date.now()) {
    const before = await lookAtAll(folders);
    if (!before) return MISSING;
    const end = Date.now();
    // A time that is to come is that of another machine's clock, and has to be equal all the same.
    const changes = before.map(({ changed }) => changed).filter((changed) => changed <= end);
    const waitMs = Math.max(0, ...changes) + quietMs - start;
    if (waitMs > 0) {
      await new Promise((resolve) => setTimeout(resolve, waitMs));
      continue;
    }
    await using file = await platform.files.open(real);
    const last = await platform.files.lookAt(real);
    // The innermost first: each folder is proven while those around it still are.
    const after = await lookAtAll([...folders].reverse());
    const isSame = after?.reverse().every((facts, i) => isEqual(facts, before[i]));
    if (!isSame) continue; // it has changed just now
    if (last?.kind !== "file" || last.identity !== file.facts.identity) return MISSING;
    return await file.read(most);
  }
  return { state: "its folder changes all the time; try again later" };
}

const MISSING: Refusal = { state: "there is no such file", isMissing: true };

/** One after the other: their order is part of the proof. Nothing if one of them is no folder. */
async function lookAtAll(paths: readonly string[]): Promise<NodeFacts[] | undefined> {
  const all: NodeFacts[] = [];
  for (const path of paths) {
    const facts = await platform.files.lookAt(path);
    if (facts?.kind !== "folder") return;
    all.push(facts);
  }
  return all;
}

function isEqual(a: NodeFacts, b: NodeFacts): boolean {
  return a.identity === b.identity && a.changed === b.changed;
}
