/**
 * Finds schemas that apply themselves to the same value. A validator cannot run such schemas, but documents use them for
 * inheritance: a base schema lists its variants, and each variant includes the base schema.
 */
import { isObject } from "../../core/kit/json.ts";
import { eachSubschema, followRef } from "../../core/schema/walker.ts";
import type { ApiDocument } from "./document.ts";

/** How a schema applies another schema to the same value: in any case (`all`), or depending on the value (`some`). */
export type Kind = "all" | "some";

/**
 * The keywords that apply schemas to the same value, with the kind of the schemas. `not` and `if` are left out, because
 * they would refuse valid values if a part of them is replaced.
 */
export const IN_PLACE: Readonly<Record<string, Kind>> = {
  allOf: "all",
  anyOf: "some",
  oneOf: "some",
  dependentSchemas: "some",
};

interface Edge {
  readonly target: string;
  readonly kind: Kind;
}

/** The loops of a document, which are computed when they are first needed. */
export class Loops {
  readonly #document: ApiDocument;
  readonly #edges = new Map<string, readonly Edge[]>();
  /** By kind of the references that are followed, the loop of each schema. */
  readonly #loops = { all: new Map<string, number>(), some: new Map<string, number>(), any: new Map<string, number>() };
  #count = 0;

  constructor(document: ApiDocument) {
    this.#document = document;
  }

  /** Whether the schema at a pointer depends on the value in choosing other schemas. */
  hasVariants(pointer: string): boolean {
    return this.#list(pointer).some(({ kind }) => kind === "some");
  }

  /** `kind` limits the loop to references of this kind. */
  isIn(source: string, target: string, kind: Kind | "any"): boolean {
    return source === target || this.#find(source, kind) === this.#find(target, kind);
  }

  #list(pointer: string): readonly Edge[] {
    const known = this.#edges.get(pointer);
    if (known) return known;
    const edges: Edge[] = [];
    addEdges(followRef(this.#document.root, pointer), "all", edges);
    this.#edges.set(pointer, edges);
    return edges;
  }

  /** Returns the number of the loop to which a schema belongs, by Tarjan's algorithm, without recursion. */
  #find(start: string, kind: Kind | "any"): number {
    const loops = this.#loops[kind];
    const found = loops.get(start);
    if (found !== undefined) return found;
    const order = new Map<string, { readonly at: number; low: number }>();
    const open: string[] = [];
    const isOpen = new Set<string>();
    const follow = (pointer: string) =>
      this.#list(pointer).filter((edge) => kind === "any" || edge.kind === kind).map(({ target }) => target);
    const enter = (pointer: string) => {
      order.set(pointer, { at: order.size, low: order.size });
      open.push(pointer);
      isOpen.add(pointer);
      return { pointer, targets: follow(pointer), next: 0 };
    };
    const steps = [enter(start)];
    for (let step = steps.at(-1); step; step = steps.at(-1)) {
      const entry = order.get(step.pointer)!; // Set by `enter`.
      const target = step.targets[step.next++];
      if (target !== undefined) {
        if (loops.has(target)) continue;
        const seen = order.get(target);
        if (!seen) steps.push(enter(target));
        else if (isOpen.has(target)) entry.low = Math.min(entry.low, seen.at);
        continue;
      }
      steps.pop();
      const parent = steps.at(-1);
      const above = parent && order.get(parent.pointer);
      if (above) above.low = Math.min(above.low, entry.low);
      if (entry.low !== entry.at) continue;
      const number = this.#count++;
      for (let last = open.pop(); last !== undefined; last = last === step.pointer ? undefined : open.pop()) {
        isOpen.delete(last);
        loops.set(last, number);
      }
    }
    return loops.get(start)!; // Set in the last step.
  }
}

function addEdges(schema: unknown, kind: Kind, edges: Edge[]): void {
  if (!isObject(schema)) return;
  if (typeof schema.$ref === "string") edges.push({ target: schema.$ref, kind });
  eachSubschema(schema, (part, key) => {
    if (Object.hasOwn(IN_PLACE, key)) addEdges(part, IN_PLACE[key] === "some" ? "some" : kind, edges);
  });
}
