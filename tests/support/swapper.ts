// Keeps replacing a file and a folder with links to the outside, and back, at the given interval, until it is killed.
import process from "node:process";
import { renameSync } from "node:fs";

const [folder = "", ms = "0"] = process.argv.slice(2);
const rest = new Int32Array(new SharedArrayBuffer(4));

function swap(name: string): void {
  renameSync(`${folder}/${name}`, `${folder}/${name}.inside`);
  renameSync(`${folder}/${name}.link`, `${folder}/${name}`);
  if (Number(ms)) Atomics.wait(rest, 0, 0, Math.random() * Number(ms));
  renameSync(`${folder}/${name}`, `${folder}/${name}.link`);
  renameSync(`${folder}/${name}.inside`, `${folder}/${name}`);
}

console.log("swapping");
while (true) {
  swap("sub");
  swap("file.txt");
  // The random wait is sometimes long enough for a read between two swaps.
  if (Number(ms)) Atomics.wait(rest, 0, 0, Math.random() * 8 * Number(ms));
}
