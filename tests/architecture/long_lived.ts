// Finds the maps, sets and lists of the server that outlive the function call in which they were made, and to which
// something is added later.
import ts from "typescript";

/** A container that can grow. */
export interface Container {
  readonly name: string;
  readonly line: number;
  /** The text after `Bound:` in the comment beside the container, or beside its class. */
  readonly bound?: string;
}

/** The methods that add to a container. */
const GROWING = ["set", "add", "push", "unshift", "splice"];

/** Lists the containers of a source file that can grow as long as an object, a module or a server lives. */
export function listContainers(path: string, text: string): readonly Container[] {
  const file = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
  const grown = listGrown(file);
  const found: Container[] = [];
  const visit = (node: ts.Node): void => {
    const declared = toDeclared(node, grown);
    if (declared) {
      const line = file.getLineAndCharacterOfPosition(node.getStart()).line + 1;
      found.push({ name: declared.name, line, bound: findBound(declared.beside, text) });
    }
    ts.forEachChild(node, visit);
  };
  visit(file);
  return found;
}

interface Declared {
  readonly name: string;
  /** The declaration or statement above which the comment stands. */
  readonly beside: ts.Node;
}

function toDeclared(node: ts.Node, grown: Grown): Declared | undefined {
  if (ts.isPropertyDeclaration(node) && isContainer(node.initializer)) return toField(node.name.getText(), node, grown);
  if (ts.isPropertyAssignment(node) && isContainer(node.initializer, true)) {
    return toField(node.name.getText(), toStatement(node), grown);
  }
  if (ts.isVariableDeclaration(node) && isContainer(node.initializer)) {
    const name = node.name.getText();
    const own = toFunction(node);
    const isLater = (by: ts.Node) => by !== own && by.pos >= (own?.pos ?? 0) && by.end <= (own?.end ?? Infinity);
    const isLongLived = own ? [...grown.byMembers.get(name) ?? []].some(isLater) : grown.names.has(name);
    return isLongLived ? { name, beside: toStatement(node) } : undefined;
  }
  // A container that is made when it is first needed.
  const isLate = ts.isBinaryExpression(node) && node.operatorToken.kind === ts.SyntaxKind.QuestionQuestionEqualsToken;
  if (isLate && ts.isPropertyAccessExpression(node.left) && isContainer(node.right)) {
    const name = node.left.name.text;
    return toField(name, findField(node, name) ?? toStatement(node), grown);
  }
  // A value of a server, such as `state.slot(key, () => new Map())`.
  const isSlot = ts.isArrowFunction(node) && isContainer(toExpression(node.body)) && ts.isCallExpression(node.parent) &&
    ts.isPropertyAccessExpression(node.parent.expression) && node.parent.expression.name.text === "slot";
  if (isSlot) return { name: "slot", beside: toStatement(node) };
}

function toField(name: string, beside: ts.Node, { names }: Grown): Declared | undefined {
  return names.has(name) ? { name, beside } : undefined;
}

function toExpression(node: ts.ConciseBody): ts.Expression | undefined {
  return ts.isBlock(node) ? undefined : node;
}

/**
 * Tests whether a value is a new container. `isMember` excludes lists and copies, because most of those in objects are
 * results.
 */
function isContainer(node: ts.Expression | undefined, isMember = false): boolean {
  if (node && ts.isNewExpression(node)) {
    return ["Map", "Set"].includes(node.expression.getText()) && !(isMember && node.arguments?.length);
  }
  return !isMember && !!node && ts.isArrayLiteralExpression(node) && !node.elements.length;
}

/** The names of fields and variables to which a file adds outside of constructors. */
interface Grown {
  readonly names: ReadonlySet<string>;
  /** The functions that add to a variable and are members of an object, so that they may be called later. */
  readonly byMembers: ReadonlyMap<string, ReadonlySet<ts.Node>>;
}

function listGrown(file: ts.SourceFile): Grown {
  const names = new Set<string>();
  const byMembers = new Map<string, Set<ts.Node>>();
  const aliases = new Map<string, string>();
  const visit = (node: ts.Node): void => {
    if (ts.isConstructorDeclaration(node)) return;
    if (ts.isVariableDeclaration(node) && node.initializer) {
      const name = toName(node.initializer);
      if (name !== undefined && ts.isIdentifier(node.name)) aliases.set(node.name.text, name);
    }
    if (ts.isBindingElement(node)) aliases.set(node.name.getText(), (node.propertyName ?? node.name).getText());
    if (ts.isCallExpression(node) && ts.isPropertyAccessExpression(node.expression)) {
      const { expression, name: method } = node.expression;
      const name = GROWING.includes(method.text) ? toName(expression) : undefined;
      if (name !== undefined) {
        names.add(name);
        for (let by = toFunction(node); by; by = toFunction(by)) {
          if (isMember(by)) byMembers.set(name, (byMembers.get(name) ?? new Set()).add(by));
        }
      }
    }
    ts.forEachChild(node, visit);
  };
  visit(file);
  for (const [alias, name] of aliases) if (names.has(alias)) names.add(name);
  return { names, byMembers };
}

/** Tests whether a function is a member of an object literal. */
function isMember(by: ts.Node): boolean {
  return ts.isObjectLiteralExpression(by.parent) ||
    ts.isPropertyAssignment(by.parent) && ts.isObjectLiteralExpression(by.parent.parent);
}

/** Returns the last name of an expression such as `this.#known` or `session.streams ?? []`. */
function toName(node: ts.Expression): string | undefined {
  if (ts.isParenthesizedExpression(node)) return toName(node.expression);
  if (ts.isBinaryExpression(node)) return toName(node.left);
  if (ts.isPropertyAccessExpression(node)) return node.name.text;
  return ts.isIdentifier(node) ? node.text : undefined;
}

/** Returns the innermost function that contains a node. */
function toFunction(node: ts.Node): ts.SignatureDeclaration | undefined {
  for (let at = node.parent; at; at = at.parent) if (ts.isFunctionLike(at)) return at;
}

function toStatement(node: ts.Node): ts.Node {
  let at = node;
  while (!ts.isStatement(at) && at.parent && !ts.isClassElement(at)) at = at.parent;
  return at;
}

function findField(node: ts.Node, name: string): ts.Node | undefined {
  for (let at = node.parent; at; at = at.parent) {
    if (ts.isClassLike(at)) return at.members.find((member) => member.name?.getText() === name);
  }
}

function findBound(beside: ts.Node, text: string): string | undefined {
  for (let at: ts.Node | undefined = beside; at; at = at.parent) {
    if (at !== beside && !ts.isClassLike(at)) continue;
    for (const { pos, end } of ts.getLeadingCommentRanges(text, at.getFullStart()) ?? []) {
      const [, bound] = /^\/\/ Bound: (.+)\.$/.exec(text.slice(pos, end)) ?? [];
      if (bound !== undefined) return bound;
    }
  }
}
