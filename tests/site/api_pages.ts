// Writes a page about each entry of the library. `deno doc --json` finds the exported names with their comments, and the
// compiler's printer writes their types as the sources do.
import ts from "typescript";
import config from "../../deno.json" with { type: "json" };
import type { SitePage } from "./site_pages.ts";

const root = new URL("../../", import.meta.url);

interface Comment {
  readonly doc?: string;
  readonly tags?: readonly {
    readonly kind: string;
    readonly name?: string;
    readonly doc?: string;
    readonly tsType?: { readonly repr?: string };
  }[];
}

interface Location {
  readonly filename: string;
  /** Counted from 0, as is `col`. */
  readonly line: number;
  readonly col: number;
}

interface Type {
  readonly kind: string;
  readonly value?: unknown;
}

interface Members {
  readonly constructors?: readonly Member[];
  readonly properties?: readonly Member[];
  readonly methods?: readonly Member[];
  readonly indexSignatures?: readonly Member[];
}

interface Member {
  readonly jsDoc?: Comment;
  readonly location: Location;
  readonly accessibility?: string;
  readonly tsType?: Type;
}

interface Declaration {
  readonly location: Location;
  readonly jsDoc?: Comment;
  readonly kind: string;
  readonly def: Members & { readonly tsType?: Type };
}

interface Exported {
  readonly name: string;
  readonly declarations: readonly Declaration[];
}

interface Module {
  readonly module_doc?: Comment;
  readonly symbols: readonly Exported[];
}

const printer = ts.createPrinter({ removeComments: true });
const files = new Map<string, ts.SourceFile>();

function readSource(filename: string): ts.SourceFile {
  const known = files.get(filename);
  if (known) return known;
  const text = Deno.readTextFileSync(new URL(filename));
  const file = ts.createSourceFile(filename, text, ts.ScriptTarget.Latest, true);
  files.set(filename, file);
  return file;
}

/** Returns the outermost declaration or member that begins at a location. */
function findNode({ filename, line, col }: Location): ts.Node {
  const file = readSource(filename);
  const start = ts.getPositionOfLineAndCharacter(file, line, col);
  let node: ts.Node = file;
  while (node === file || node.getStart() !== start || node.kind === ts.SyntaxKind.SyntaxList) {
    const next = node.getChildren().find((child) => child.getStart() <= start && start < child.getEnd());
    if (!next) {
      throw new Error(`Cannot find a declaration in ${filename}:${line + 1}: the compiler reads it differently`);
    }
    node = next;
  }
  return node;
}

const print = (node: ts.Node): string => printer.printNode(ts.EmitHint.Unspecified, node, node.getSourceFile());

/** Writes a declaration or a member as code, without its body, its members and its comments. */
function toSignature(node: ts.Node): string {
  const { factory } = ts;
  if (ts.isFunctionDeclaration(node)) {
    const { modifiers, asteriskToken, name, typeParameters, parameters, type } = node;
    const kept = modifiers?.filter(({ kind }) => kind !== ts.SyntaxKind.ExportKeyword);
    return print(
      factory.updateFunctionDeclaration(node, kept, asteriskToken, name, typeParameters, parameters, type, undefined),
    );
  }
  if (ts.isMethodDeclaration(node)) {
    const { modifiers, asteriskToken, name, questionToken, typeParameters, parameters, type } = node;
    return print(factory.updateMethodDeclaration(
      node,
      modifiers,
      asteriskToken,
      name,
      questionToken,
      typeParameters,
      parameters,
      type,
      undefined,
    ));
  }
  if (ts.isConstructorDeclaration(node)) {
    return print(factory.updateConstructorDeclaration(node, node.modifiers, node.parameters, undefined));
  }
  if (ts.isPropertyDeclaration(node)) {
    const { modifiers, name, questionToken, type } = node;
    return print(factory.updatePropertyDeclaration(node, modifiers, name, questionToken, type, undefined));
  }
  if (ts.isAccessor(node)) return `${node.name.getText()}${node.type ? `: ${print(node.type)}` : ""}`;
  const text = print(node).replace(/^export (?:default )?/, "");
  return ts.isInterfaceDeclaration(node) || ts.isClassDeclaration(node) ? readHead(node) : text;
}

/** Returns the first line of an interface or a class, with its type parameters. */
function readHead(node: ts.InterfaceDeclaration | ts.ClassDeclaration): string {
  const parameters = node.typeParameters?.map(print).join(", ");
  const parents = node.heritageClauses?.map((clause) => ` ${print(clause).trim()}`).join("") ?? "";
  const word = ts.isInterfaceDeclaration(node) ? "interface" : "class";
  return `${word} ${node.name?.text}${parameters ? `<${parameters}>` : ""}${parents}`;
}

/** Returns the signature of a constant. If its type is declared in the same file, the type follows, with its comments. */
function toConstant(node: ts.Node): string {
  const declaration = ts.isVariableDeclaration(node) ? node : node.parent;
  if (!ts.isVariableDeclaration(declaration) || !declaration.type) return print(node);
  const head = `const ${declaration.name.getText()}: ${print(declaration.type)}`;
  const name = ts.isTypeReferenceNode(declaration.type) ? declaration.type.typeName.getText() : "";
  const type = node.getSourceFile().statements.find((statement) =>
    (ts.isInterfaceDeclaration(statement) || ts.isTypeAliasDeclaration(statement)) && statement.name.text === name
  );
  return type ? `${head}\n\n${type.getText().replace(/^export /, "")}` : head;
}

function listMembers(members: Members): readonly Member[] {
  const { constructors = [], properties = [], methods = [], indexSignatures = [] } = members;
  return [...constructors, ...properties, ...indexSignatures, ...methods].filter((member) =>
    member.accessibility !== "private"
  );
}

const toLiteral = (type: Type | undefined): Members | undefined =>
  type?.kind === "typeLiteral" ? type.value as Members : undefined;

/** Writes the pages of all entries, in the order of deno.json. */
class Writer {
  /** By exported name and location, the page and the anchor that describe it. */
  readonly #places = new Map<string, { readonly path: string; readonly anchor: string }>();
  readonly #names = new Map<string, { readonly path: string; readonly anchor: string }>();

  constructor(modules: readonly (readonly [key: string, module: Module])[]) {
    for (const [key, { symbols }] of modules) {
      const used = new Map<string, number>();
      for (const symbol of symbols) {
        if (this.#places.has(toId(symbol))) continue;
        const slug = symbol.name.toLowerCase();
        const count = used.get(slug) ?? 0;
        used.set(slug, count + 1);
        const place = { path: toPath(key), anchor: count ? `${slug}-${count}` : slug };
        this.#places.set(toId(symbol), place);
        if (!this.#names.has(symbol.name)) this.#names.set(symbol.name, place);
      }
    }
  }

  write(key: string, { module_doc, symbols }: Module): SitePage {
    const path = toPath(key);
    const title = toName(key);
    const own = symbols.filter((symbol) => this.#places.get(toId(symbol))?.path === path);
    const others = symbols.filter((symbol) => !own.includes(symbol));
    const links = others.map((symbol) => {
      const place = this.#places.get(toId(symbol));
      return `[\`${symbol.name}\`](${place?.path.replace("api/", "")}#${place?.anchor})`;
    });
    const parts = [
      `# ${title}`,
      this.#toText(path, module_doc),
      links.length ? `This entry also exports ${links.join(", ")}.` : "",
      ...own.map((symbol) => this.#writeSymbol(path, symbol)),
    ];
    return { path, title, markdown: parts.filter(Boolean).join("\n\n") + "\n" };
  }

  #writeSymbol(path: string, { name, declarations }: Exported): string {
    const parts = declarations.map(({ location, kind, jsDoc, def }) => {
      const node = findNode(location);
      const literal = toLiteral(def.tsType);
      const members = listMembers(literal ?? def);
      const signature = kind === "variable"
        ? toConstant(node)
        : kind === "namespace"
        ? node.getText().replace(/^export declare /, "")
        : kind === "typeAlias" && literal && members.length && ts.isTypeAliasDeclaration(node)
        ? `type ${node.name.text}${toParameters(node)} = { … }`
        : toSignature(node);
      const list = members.map((member) => this.#writeMember(path, member, "")).join("\n");
      return [`\`\`\`ts\n${signature}\n\`\`\``, this.#toText(path, jsDoc), list].filter(Boolean).join("\n\n");
    });
    return `## ${name}\n\n${parts.join("\n\n")}`;
  }

  #writeMember(path: string, { location, jsDoc, tsType }: Member, indent: string): string {
    const node = findNode(location);
    const nested = listMembers(toLiteral(tsType) ?? {}).filter((member) => member.jsDoc);
    const type = (node as ts.PropertySignature).type;
    const whole = toSignature(node);
    const short = nested.length && type ? whole.replace(print(type), "{ … }") : whole;
    const code = short.replace(/\s+/g, " ").replace(/;$/, "").replace(/^readonly /, "");
    const text = this.#toText(path, jsDoc);
    const inner = nested.map((member) => this.#writeMember(path, member, "  ")).join("\n");
    const body = [text && `\`${code}\`: ${text}` || `\`${code}\``, inner].filter(Boolean).join("\n\n");
    const [first, ...rest] = body.split("\n");
    return [`${indent}- ${first}`, ...rest.map((line) => line && `${indent}  ${line}`)].join("\n");
  }

  /** Returns a comment as Markdown, with its tags. */
  #toText(path: string, { doc = "", tags = [] }: Comment = {}): string {
    const parts = [doc.trim()];
    for (const { kind, name, doc = "", tsType } of tags) {
      const text = doc.trim();
      if (kind === "throws") parts.push(`Throws${tsType?.repr ? ` \`${tsType.repr}\`` : ""} ${text}`);
      else if (kind === "see") parts.push(`See ${/^https?:\S+$/.test(text) ? `<${text}>` : text}.`);
      else if (kind === "param") parts.push(`\`${name}\`: ${text}`);
      else if (kind === "example") parts.push(text);
      else if (text) parts.push(`${kind.charAt(0).toUpperCase()}${kind.slice(1)}: ${text}`);
    }
    return parts.filter(Boolean).join("\n\n").replace(/\{@link(?:code|plain)? ([^}\s]+)[^}]*\}/g, (_, name: string) => {
      const place = this.#names.get(name.split(".")[0]);
      if (!place) return `\`${name}\``;
      const target = place.path === path ? "" : place.path.replace("api/", "");
      return `[\`${name}\`](${target}#${place.anchor})`;
    });
  }
}

function toParameters({ typeParameters }: ts.TypeAliasDeclaration): string {
  return typeParameters ? `<${typeParameters.map(print).join(", ")}>` : "";
}

function toId({ name, declarations: [first] }: Exported): string {
  return `${name} ${first.location.filename}:${first.location.line}`;
}

/** Returns the path of the page about an entry, such as `./client/oauth`. */
function toPath(key: string): string {
  return `api/${key === "." ? "mcp" : key.slice("./".length).replaceAll("/", "-")}.md`;
}

/** Returns the specifier of an entry, such as `@x/mcp/client/oauth`. */
function toName(key: string): string {
  return config.name + key.slice(1);
}

/** Returns the pages about the entries of the library, in the order of deno.json. */
export async function writeApiPages(): Promise<readonly SitePage[]> {
  const entries = Object.entries(config.exports);
  const { success, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["doc", "--json", ...entries.map(([, path]) => path)],
    cwd: root,
    env: { NO_COLOR: "1" },
  }).output();
  if (!success) throw new Error(`Cannot read the entries: ${new TextDecoder().decode(stderr)}`);
  const { nodes }: { nodes: Readonly<Record<string, Module>> } = JSON.parse(new TextDecoder().decode(stdout));
  const modules = entries.map(([key, path]) => [key, nodes[new URL(path, root).href]] as const);
  const writer = new Writer(modules);
  return modules.map(([key, module]) => writer.write(key, module));
}
