// Finds cycles in a graph of imports.

/** The imports of each file. A file that is not a key is not part of the graph. */
export type ImportGraph = ReadonlyMap<string, readonly string[]>;

/**
 * Finds the groups of files in which each file imports every other file, directly or through other files. For each
 * group, returns the imports within the group as `<file> imports <file>`, in the order of the graph.
 */
export function findCircles(graph: ImportGraph): readonly (readonly string[])[] {
  const reached = new Map([...graph.keys()].map((path) => [path, findReached(graph, path)]));
  const isCircle = (from: string, to: string) => reached.get(from)?.has(to) && reached.get(to)?.has(from);
  const seen = new Set<string>();
  const circles: string[][] = [];
  for (const start of graph.keys()) {
    if (seen.has(start) || !isCircle(start, start)) continue;
    const members = [...graph.keys()].filter((path) => isCircle(start, path));
    members.forEach((path) => seen.add(path));
    circles.push(
      members.flatMap((path) =>
        (graph.get(path) ?? []).filter((target) => members.includes(target)).map((target) =>
          `${path} imports ${target}`
        )
      ),
    );
  }
  return circles;
}

/**
 * Returns the files that a file imports, directly or through other files. The file itself is included only if it is
 * part of a cycle.
 */
function findReached(graph: ImportGraph, path: string): ReadonlySet<string> {
  const reached = new Set(graph.get(path));
  for (const each of reached) for (const target of graph.get(each) ?? []) reached.add(target);
  return reached;
}
