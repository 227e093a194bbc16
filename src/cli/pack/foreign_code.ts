/**
 * Finds code in a bundle that Node cannot run: the globals `Deno` and `Bun`, and imports of these runtimes.
 *
 * @module
 */
import { type Node, parse } from "acorn";
import type { Params } from "../../client/client.ts";
import { isObject } from "../../kit/json.ts";
import { GLOBAL_NAMES } from "../runtime_globals.ts";

/** A place in a file of the author. Line and column start at 1. */
export interface Place {
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

/** A use of something that Node does not have. */
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
 * Lists what the author's modules in a bundle use of Deno and Bun, in the order of the bundle. A module that tests
 * `typeof Deno`, or declares the name itself, may use it, because it has a way for other runtimes. Packages may use
 * everything: they are written for several runtimes. `toPlace` returns `undefined` for their code.
 */
export function findForeignUses(
  code: string,
  toPlace: (line: number, column: number) => Place | undefined,
): ForeignUse[] {
  const found: Found[] = [];

  function visit(node: Node, parent: Node, key: string): void {
    const each = classify(node, parent, key);
    if (each) {
      // Lines start at 1, and columns at 0.
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

/** What a node says about Deno and Bun. */
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
