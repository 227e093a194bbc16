/**
 * Finds code in a bundle that Node cannot run: uses of the globals `Deno` and `Bun`, and imports that only these
 * runtimes support.
 */
import { type Node, parse } from "acorn";
import type { Params } from "../../client/client.ts";
import { isObject } from "../../core/kit/json.ts";
import { GLOBAL_NAMES } from "../runtime_globals.ts";

/** A place in one of the author's files. `line` and `column` start at 1. */
export interface Place {
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

/** A use of a global or a module that Node does not have. */
export interface ForeignUse {
  /** The global or the imported module, such as `Deno` or `bun:sqlite`. */
  readonly name: string;
  readonly place: Place;
}

/** Modules that Node cannot load. */
const MODULES = /^(?:bun(?::|$)|jsr:|npm:|https?:)/;

interface Found {
  readonly name: string;
  readonly place: Place;
  readonly kind: "use" | "test" | "declaration";
}

/**
 * Lists the uses of Deno and Bun in the author's modules of a bundle, in the order of the bundle. Does not list uses in
 * a module that tests `typeof Deno` or declares the name itself, because such a module has code for other runtimes.
 * Does not list uses in packages, because packages are written for several runtimes; `toPlace` returns `undefined` for
 * their code.
 */
export function findForeignUses(
  code: string,
  toPlace: (line: number, column: number) => Place | undefined,
): ForeignUse[] {
  const found: Found[] = [];

  function visit(node: Node, parent: Node, key: string): void {
    const each = classify(node, parent, key);
    if (each) {
      // In the syntax tree, lines start at 1, and columns at 0.
      const { line, column } = node.loc?.start ?? { line: 1, column: 0 };
      const place = toPlace(line, column);
      if (place) found.push({ ...each, place });
    }
    for (const [key, value] of Object.entries(node)) {
      for (const child of Array.isArray(value) ? value : [value]) if (isNode(child)) visit(child, node, key);
    }
  }

  const program = parse(code, { ecmaVersion: "latest", sourceType: "module", locations: true, allowHashBang: true });
  visit(program, program, "");
  const isPrepared = ({ name, place }: Found) =>
    found.some((other) => other.kind !== "use" && other.name === name && other.place.file === place.file);
  return found.filter((each) => each.kind === "use" && !isPrepared(each));
}

function isNode(value: unknown): value is Node {
  return isObject(value) && typeof value.type === "string" && "loc" in value;
}

/** Returns how a node refers to `Deno` or `Bun`, or `undefined` if the node does not refer to them. */
function classify(node: Node, parent: Node, key: string): Pick<Found, "name" | "kind"> | undefined {
  const { name, value }: Params = { ...node };
  const above: Params = { ...parent };
  if (node.type === "Literal" && key === "source" && typeof value === "string" && MODULES.test(value)) {
    return { name: value, kind: "use" };
  }
  if (node.type !== "Identifier" || typeof name !== "string" || !GLOBAL_NAMES.includes(name)) return;
  const isName = (key === "property" || key === "key") && !above.computed;
  if (isName || key === "label" || key === "imported" || key === "exported") return;
  if (parent.type === "UnaryExpression" && above.operator === "typeof") return { name, kind: "test" };
  return { name, kind: key === "id" || key === "params" || key === "param" || key === "local" ? "declaration" : "use" };
}
