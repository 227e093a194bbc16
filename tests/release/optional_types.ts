// Adapts declarations to projects with the compiler option `exactOptionalPropertyTypes`, which `tsc --init` sets. With this
// option, an optional member whose type lacks `undefined` refuses a value such as `process.env.SECRET`, and a class whose
// member can be `undefined` does not implement an interface with this member as optional. The library treats `undefined`
// like a missing member, so the sources use the shorter form.
import ts from "typescript";

/** Adds `undefined` to the types of all optional members in a declaration file. */
export function addUndefined(source: string): string {
  const file = ts.createSourceFile("source.d.ts", source, ts.ScriptTarget.ESNext, true);
  const inserts: (readonly [at: number, text: string])[] = [];
  const visit = (node: ts.Node): void => {
    if ((ts.isPropertySignature(node) || ts.isPropertyDeclaration(node)) && node.questionToken && node.type) {
      const needsParentheses = ts.isFunctionTypeNode(node.type) || ts.isConstructorTypeNode(node.type) ||
        ts.isConditionalTypeNode(node.type);
      if (needsParentheses) inserts.push([node.type.getStart(file), "("]);
      inserts.push([node.type.end, `${needsParentheses ? ")" : ""} | undefined`]);
    }
    // A pattern such as `{ input?: infer I }` must stay the same, because `undefined` would change what is inferred.
    if (!ts.isConditionalTypeNode(node)) return ts.forEachChild(node, visit);
    for (const part of [node.checkType, node.trueType, node.falseType]) visit(part);
  };
  visit(file);
  let [text, last] = ["", 0];
  for (const [at, insert] of inserts.sort(([one], [other]) => one - other)) {
    text += source.slice(last, at) + insert;
    last = at;
  }
  return text + source.slice(last);
}
