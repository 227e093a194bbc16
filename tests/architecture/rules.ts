// The rules for imports between the folders of src/, as a lint plugin. A test runs the plugin instead of `deno lint`,
// so that ignore directives cannot disable a rule.
import config from "../../deno.json" with { type: "json" };

// The rows of src/, from the lowest to the highest. A row can import the rows before it.
const kit = ["src/core/kit"];
const protocol = [...kit, "src/core/protocol"];
const core = [...protocol, "src/core/schema", "src/core"];
// The folders of src/server/ that know neither bytes nor revisions. A folder can import the folders before it.
const inner = ["capacity", "call", "visibility", "engine", "services"].map((folder) => `src/server/${folder}`);
const below = [...core, ...inner];
const CHANNEL = "src/server/transports/channel.ts";
const server = [...below, CHANNEL, "src/server/transports", "src/server"];

/** Folders of src/, each with the other folders that it can import. A key can also be the path of a single file. */
export const folders: Readonly<Record<string, readonly string[]>> = {
  "src/core/kit": [],
  "src/core/protocol": kit,
  "src/core/schema": protocol,
  "src/core": protocol,
  // A client connects to a server in the same process through the channel.
  "src/client": [...core, CHANNEL],
  "src/client/oauth": [...core, "src/client"],
  ...Object.fromEntries(inner.map((folder, at) => [folder, [...core, ...inner.slice(0, at)]])),
  "src/server/handlers": below,
  "src/server/eras": [...below, "src/server/eras/modern"],
  "src/server/eras/client_quirks.ts": below,
  "src/server/eras/legacy": [...below, "src/server/eras/client_quirks.ts"],
  "src/server/eras/modern": [...below, "src/server/eras/client_quirks.ts"],
  [CHANNEL]: below,
  "src/server/transports": [...below, CHANNEL],
  "src/server": [...server, "src/server/handlers", "src/server/eras"],
  "src/library.ts": [...server, "src/server/handlers", "src/server/eras", "src/server/eras/legacy"],
  "src/types.ts": [...below, "src/server/handlers", "src/server", "src/client"],
  "src/host.ts": server,
  "src/layers": [
    ...protocol,
    "src/core",
    "src/server/call",
    "src/server/engine",
    "src/server/handlers",
    "src/library.ts",
    "src/layers/quota",
    "src/layers/planned",
  ],
  "src/layers/planned": [...below, "src/server/handlers"],
  "src/layers/quota": [...below, "src/server/handlers"],
  "src/auth": below,
  "src/auth/oauth": [...below, "src/auth"],
  "src/auth/oauth/proxy": [...below, "src/auth", "src/auth/oauth", "src/stores"],
  "src/stores": below,
  "src/extensions": [...below, "src/server/handlers"],
  "src/extensions/tasks": [
    "src/core",
    "src/server/call",
    "src/library.ts",
    "src/extensions",
    "src/layers",
    "src/stores",
  ],
  "src/extensions/tasks/client": [...core, "src/client"],
  "src/extensions/apps": [...below, "src/server/handlers", "src/library.ts", "src/layers"],
  "src/extensions/skills": ["src/core", "src/library.ts", "src/extensions"],
  "src/extensions/skills/client": [...core, "src/client", "src/extensions/skills"],
  "src/observe": [...server, "src/client"],
  "src/ready/files": [...kit, "src/core"],
  "src/ready": [...below, "src/server/handlers", "src/library.ts", "src/ready/files"],
  "src/ready/discovery": below,
  "src/ready/openapi": [...below, "src/server/handlers", "src/library.ts", "src/ready"],
  "src/ready/search": [...below, "src/server/handlers", "src/library.ts"],
  "src/ready/code": [...below, "src/server/handlers", "src/library.ts", "src/client", "src/ready/search"],
  "src/ready/worker": [...below, "src/server/transports"],
  "src/proxy": [
    ...below,
    "src/server/handlers",
    "src/library.ts",
    "src/client",
    "src/extensions/tasks",
    "src/extensions/tasks/client",
  ],
  "src/web": [...server, "src/core/schema"],
  "src/testing": [...server, "src/client", "src/stores", "src/ready/files"],
  "src/cli": [],
  "src/hand_over.ts": ["src/core"],
  "mod.ts": ["src/library.ts", "src/hand_over.ts"],
};

/**
 * The modules that the CLI can import in addition to its own: published entries, and modules made for the CLI.
 * `src/library.ts` is the entry `.` without starting a program. `src/client/bridge_lines.ts` forwards messages below
 * the level of the public client, and `src/client/lock_file.ts` reads and compares lists. The CLI reads the schemas of any server like the library.
 */
export const OPEN: readonly string[] = [
  ...Object.values(config.exports).map((path) => path.slice("./".length)),
  ...[
    "src/library.ts",
    "src/host.ts",
    "src/client/bridge_lines.ts",
    "src/client/lock_file.ts",
    "src/core/kit/",
    "src/ready/",
  ],
  ...["src/core/schema/form_answer.ts", "src/core/schema/walker.ts"],
];

/** The folder of the inspector page, whose modules run in a browser, and the other modules that it can import. */
const PAGE = "src/cli/inspector/browser/";
const OPEN_TO_PAGE = [
  PAGE,
  "src/core/kit/",
  "src/core/schema/",
  "src/core/protocol/header_value.ts",
  "src/core/protocol/uri_template.ts",
];
const PACKAGES_OF_PAGE = ["marked"];

/** By folder, the packages that the folder can import. All other folders import no packages. */
const packages: Readonly<Record<string, readonly string[]>> = {
  "src/auth/oauth": ["jose", "oauth4webapi"],
  "src/auth/oauth/proxy": ["jose"],
  "src/client/oauth": ["jose", "oauth4webapi"],
  "src/observe": ["@opentelemetry/api"],
  "src/extensions/skills": ["yaml"],
  "src/ready/openapi": ["@scalar/openapi-upgrader"],
  "src/cli": ["zod", "acorn", "yaml", "jsonc-parser", "smol-toml"],
};

// Words for eras are allowed in these folders. Apps are included, because they have their own protocol revisions, and the
// script for pages, because it is a client of one revision.
const eraFolders = [
  "src/extensions/apps/",
  "src/web/browser/",
  "src/web/script.ts",
  "src/server/eras/",
  "src/testing/",
  "src/client/",
  "src/proxy/",
  "src/cli/",
  "src/library.ts",
];
const eraWord = /legacy|modern|\b20\d\d-\d\d-\d\d\b/gi;
const specPage = /\bspecification\/20\d\d-\d\d-\d\d\b/g;
const runtimeWords = ["process", "Buffer"];
const runtimeFiles = ["src/core/runtime.ts", "src/cli/", "src/server/transports/stdio/stdout_guard.ts"];
const runtimeGlobals = ["Deno", "Bun"];
const globalFiles = ["src/core/runtime.ts", "src/cli/runtime_globals.ts"];

/** The program of a child process, which imports an optional package. */
const PROGRAM_CHILD = "src/ready/code/program_child.ts";

/** Returns the longest folder name that contains the path. */
function findFolder(path: string): string | undefined {
  return Object.keys(folders).filter((folder) => path === folder || path.startsWith(folder + "/"))
    .sort((a, b) => b.length - a.length)[0];
}

/** Returns the reason why a file must not import a specifier, or `undefined` if the import is allowed. */
function refuseImport(path: string, specifier: string): string | undefined {
  const folder = findFolder(path);
  if (!folder) return "lies in no folder of src/";
  if (!/^\.\.?\//.test(specifier)) {
    if (path.startsWith(PAGE)) {
      return PACKAGES_OF_PAGE.includes(specifier) ? undefined : `imports the package ${specifier}`;
    }
    const mayImport = packages[folder]?.includes(specifier) || folder === "src/cli" && specifier.startsWith("node:");
    return mayImport ? undefined : `imports the package ${specifier}`;
  }
  const target = toTarget(path, specifier);
  const targetFolder = findFolder(target);
  if (folder === "src/cli") {
    const open = path.startsWith(PAGE) ? OPEN_TO_PAGE : [...OPEN, "src/cli/"];
    const isOpen = open.some((each) => each.endsWith("/") ? target.startsWith(each) : target === each);
    return isOpen ? undefined : `${folder} imports ${target}, which is not open to it`;
  }
  if (targetFolder === folder || (targetFolder && folders[folder].includes(targetFolder))) return undefined;
  return `${folder} imports ${targetFolder ?? target}`;
}

/** Returns the path of the imported file. */
function toTarget(path: string, specifier: string): string {
  return new URL(specifier, `file:///${path}`).pathname.slice(1);
}

type Context = Deno.lint.RuleContext;

function rule(create: (context: Context) => Deno.lint.LintVisitor): Deno.lint.Rule {
  return { create };
}

/**
 * Creates visitors that call `visit` for each specifier that a file imports or re-exports: values, types, and literal
 * `import()`.
 */
function visitImports(visit: (specifier: string, node: Deno.lint.Node) => void): Deno.lint.LintVisitor {
  return {
    "ImportDeclaration > Literal, ExportNamedDeclaration > Literal, ExportAllDeclaration > Literal, TSImportType Literal"(
      node: Deno.lint.StringLiteral,
    ) {
      visit(node.value, node);
    },
    ImportExpression({ source }) {
      if (source.type === "Literal" && typeof source.value === "string") visit(source.value, source);
      if (source.type === "TemplateLiteral" && source.quasis.length === 1) visit(source.quasis[0].cooked, source);
    },
  };
}

const importDirection = rule((context) =>
  visitImports((specifier, node) => {
    const message = refuseImport(context.filename, specifier);
    if (message) context.report({ node, message });
  })
);

/**
 * Reports an `import()` with a computed specifier, because the other rules cannot check it. Only the CLI can load files
 * by such a specifier.
 */
const computedImport = rule((context) => ({
  ImportExpression(node) {
    const isAllowed = [
      "src/cli/",
      "src/core/node_listener.ts",
      "src/ready/discovery/",
      PROGRAM_CHILD,
      "src/hand_over.ts",
    ]
      .some((start) => context.filename.startsWith(start));
    if (node.source.type !== "Literal" && !isAllowed) {
      context.report({ node, message: "imports a computed name" });
    }
  },
}));

const eraWords = rule((context) => ({
  Program() {
    if (context.filename === "mod.ts" || eraFolders.some((folder) => context.filename.startsWith(folder))) return;
    const { sourceCode } = context;
    const blank = (text: string) => text.replace(specPage, (page) => " ".repeat(page.length));
    let text = sourceCode.text;
    for (const { range: [start, end] } of sourceCode.getAllComments()) {
      text = text.slice(0, start) + blank(text.slice(start, end)) + text.slice(end);
    }
    for (const { 0: word, index } of text.matchAll(eraWord)) {
      context.report({ range: [index, index + word.length], message: `says the era word "${word}"` });
    }
  },
}));

const runtimeNames = rule((context) => {
  const mayUse = runtimeFiles.some((start) => context.filename.startsWith(start));
  const allowed = mayUse ? [] : runtimeWords;
  return {
    Identifier(node) {
      if (allowed.includes(node.name)) context.report({ node, message: `names ${node.name}` });
    },
    Literal(node) {
      if (typeof node.value !== "string") return;
      const { value } = node;
      if (!mayUse && value.startsWith("node:") || allowed.includes(value)) {
        context.report({ node, message: `names ${value}` });
      }
    },
  };
});

/**
 * Allows the types of `Deno` and `Bun` only in one file of the library and one file of the CLI, which look up these
 * globals.
 */
const runtimeGlobal = rule((context) => {
  if (globalFiles.includes(context.filename)) return {};
  return {
    Identifier(node) {
      if (runtimeGlobals.includes(node.name)) context.report({ node, message: `names ${node.name}` });
    },
    Literal(node) {
      if (runtimeGlobals.includes(String(node.value))) context.report({ node, message: `names ${node.value}` });
    },
    // The cast declares the type of a global that some platforms lack.
    "TSAsExpression > Identifier[name='globalThis']"(node: Deno.lint.Identifier) {
      context.report({ node, message: "types globalThis" });
    },
  };
});

const anyType = rule((context) => ({
  TSAnyKeyword(node) {
    context.report({ node, message: "uses the type any" });
  },
}));

const castReason = rule((context) => {
  const { sourceCode } = context;
  const toLine = (offset: number) => sourceCode.text.slice(0, offset).split("\n").length;
  const isReason = ({ type, value }: Deno.lint.LineComment | Deno.lint.BlockComment) =>
    !(type === "Block" && value.startsWith("*")) && !/^\s*(deno-|@?ts-|$)/.test(value);
  return {
    TSAsExpression(node) {
      if (/\bas\s+const$/.test(sourceCode.text.slice(...node.range))) return;
      const lines = [toLine(node.range[0]), toLine(node.typeAnnotation.range[0])];
      const reasoned = sourceCode.getAllComments().filter(isReason).some(({ range }) =>
        lines.includes(toLine(range[0])) || lines.includes(toLine(range[1]) + 1)
      );
      if (!reasoned) context.report({ node, message: "casts with `as` and gives no reason" });
    },
    TSTypeAssertion(node) {
      context.report({ node, message: "casts with `<T>`: write `as T` and the reason" });
    },
  };
});

/**
 * The files of the core for calls. Only they can write the fields of a call. A class of an era can also write its own
 * fields through `this`.
 */
const callFiles = ["src/server/call/", "src/server/engine/pipeline.ts", "src/server/engine/scheduler.ts"];

/**
 * Other files must use the methods of a call, whose names state why the call changes. The rule recognizes a call by the
 * name of its variable.
 */
const callField = rule((context) => {
  if (!context.filename.startsWith("src/") || callFiles.some((start) => context.filename.startsWith(start))) return {};
  const check = (node: Deno.lint.Node) => {
    if (node.type !== "MemberExpression") return;
    const { object } = node;
    const named = object.type === "MemberExpression" ? object.property : object;
    const name = named.type === "Identifier" || named.type === "PrivateIdentifier" ? named.name : "";
    if (/(call|^inner|^outer)$/i.test(name)) context.report({ node, message: `writes a field of ${name}` });
  };
  return {
    AssignmentExpression: ({ left }) => check(left),
    UpdateExpression: ({ argument }) => check(argument),
    UnaryExpression({ operator, argument }) {
      if (operator === "delete") check(argument);
    },
  };
});

/** Only the library can read the internal state of its objects. */
const internalKey = rule((context) => {
  if (!context.filename.startsWith("src/cli/")) return {};
  return {
    Identifier(node) {
      if (node.name === "INTERNALS") context.report({ node, message: "uses the key of internal state" });
    },
    Literal(node) {
      if (node.value === "mcp.internals") context.report({ node, message: "uses the key of internal state" });
    },
  };
});

const plugin: Deno.lint.Plugin = {
  name: "architecture",
  rules: {
    "import-direction": importDirection,
    "computed-import": computedImport,
    "era-word": eraWords,
    "runtime-name": runtimeNames,
    "runtime-global": runtimeGlobal,
    "any-type": anyType,
    "cast-reason": castReason,
    "call-field": callField,
    "internal-key": internalKey,
  },
};

/**
 * Returns the violations in one file, as `architecture/<rule> <path>:<line> <what>`. `path` is relative to the project.
 */
export function findViolations(path: string, source: string): string[] {
  return Deno.lint.runPlugin(plugin, path, source).map(({ id, message, range }) => {
    const line = source.slice(0, range[0]).split("\n").length;
    return `${id} ${path}:${line} ${message}`;
  });
}

/** Runs visitors on the syntax tree of one file. */
export function visitFile(path: string, source: string, visitor: Deno.lint.LintVisitor): void {
  Deno.lint.runPlugin({ name: "visit", rules: { visit: rule(() => visitor) } }, path, source);
}

/** Returns the project files that a file imports: values, types, and literal `import()`. */
export function findImports(path: string, source: string): readonly string[] {
  const imports = new Set<string>();
  visitFile(
    path,
    source,
    visitImports((specifier) => {
      if (specifier.startsWith(".")) imports.add(toTarget(path, specifier));
    }),
  );
  return [...imports];
}

/** Returns the project files that a file loads on demand, with a literal `import()`. */
export function findLoads(path: string, source: string): readonly string[] {
  const loads: string[] = [];
  visitFile(path, source, {
    ImportExpression({ source }) {
      if (source.type === "Literal" && typeof source.value === "string") loads.push(toTarget(path, source.value));
    },
  });
  return loads;
}
