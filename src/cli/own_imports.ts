/**
 * Finds the remedy if a user's file imports an entry point or a name that this package does not have.
 */
import { findSuggestion } from "../core/kit/suggestions.ts";
import { toPlain } from "./client/terminal_text.ts";
import { listEntries } from "./own_entries.ts";
import { platform } from "./platform.ts";
import { NAME } from "./version.ts";

/** Messages of the runtimes about a name that a module does not export. */
const MISSING_NAMES = [
  /module '(?<module>[^']+)' does not provide an export named '(?<name>[^']+)'/,
  /^Export named '(?<name>[^']+)' not found in module '(?<module>[^']+)'/,
  /^Missing '(?<name>default)' export in module '(?<module>[^']+)'/,
];

/** Messages of the runtimes about a missing entry point of this package. */
const MISSING_ENTRIES = [
  "Package subpath '\\./(?<entry>[^']+)' is not defined by \"exports\" in .*[\\\\/]NAME[\\\\/]package\\.json",
  "^Unknown export '\\./(?<entry>[^']+)' for 'NAME[@']",
  "^Loading unprepared module: file:\\S*/NAME/(?<entry>[\\w/-]+)",
].map((source) => new RegExp(source.replace("NAME", NAME)));

/** The message of Bun and Node about an entry point, which names only the package and the importing file. */
const MISSING_PACKAGE = new RegExp(`^Cannot find package '${NAME}' imported from (?<file>.+)$`, "m");

/** Matches the specifier of an entry point in a source file. */
const SPECIFIER = new RegExp(`["'](?:jsr:|npm:)?/?${NAME}(?:@[^/"']+)?/(?<entry>[\\w/-]+)["']`, "g");

/** Matches the specifier of this package or of an entry point. */
const OWN = new RegExp(`^(?:jsr:|npm:)?/?${NAME}(?:@[^/]+)?(?<entry>/.+)?$`);

type Entries = Awaited<ReturnType<typeof listEntries>>;

/** Returns the remedy, or `undefined` if the error is about something else. */
export async function findImportRemedy(error: unknown): Promise<string | undefined> {
  if (!(error instanceof Error)) return;
  const message = toPlain(error.message);
  const entries = await listEntries();
  const missing = match(MISSING_NAMES, message);
  if (missing) return await explainName(missing, entries);
  const wrong = match(MISSING_ENTRIES, message)?.entry ?? await findWrongEntry(message, entries);
  return wrong === undefined ? undefined : explainEntry(wrong, entries.map(([name]) => name));
}

function match(patterns: readonly RegExp[], text: string): Readonly<Record<string, string>> | undefined {
  return patterns.map((pattern) => pattern.exec(text)?.groups).find((groups) => groups !== undefined);
}

/** Finds the first unknown entry point that the file named in a message imports. */
async function findWrongEntry(message: string, entries: Entries): Promise<string | undefined> {
  const { file } = MISSING_PACKAGE.exec(message)?.groups ?? {};
  if (file === undefined || !platform.mayRead(file)) return;
  const text = new TextDecoder().decode(await platform.files.read(file, MAX_BYTES));
  const named = [...text.matchAll(SPECIFIER)].map(({ groups }) => groups?.entry);
  return named.find((each) => each !== undefined && !entries.some(([name]) => name === `${NAME}/${each}`));
}

/** Maximum number of bytes of a source file that are read. */
const MAX_BYTES = 1024 * 1024;

function explainEntry(wrong: string, names: readonly string[]): string {
  const suggestion = names.find((name) => name.endsWith(`/${wrong}`)) ?? findSuggestion(`${NAME}/${wrong}`, names);
  const remedy = suggestion === undefined ? `the entries are ${names.join(", ")}` : `did you mean ${suggestion}?`;
  return `The package has no entry ${NAME}/${wrong}; ${remedy}`;
}

async function explainName(
  { module = "", name = "" }: Readonly<Record<string, string>>,
  entries: Entries,
): Promise<string | undefined> {
  const own = OWN.exec(module);
  const asked = own ? NAME + (own.groups?.entry ?? "") : entries.find(([, file]) => isSameFile(file, module))?.[0];
  if (asked === undefined) return;
  if (name === "default") return `${asked} has no default export; import names, such as { createServer }.`;
  const exported = await listExports(entries);
  const [found] = exported.find(([, names]) => names.includes(name)) ?? [];
  if (found !== undefined) return `Import ${name} from ${found}.`;
  const near = findSuggestion(name, exported.find(([entry]) => entry === asked)?.[1] ?? []);
  if (near !== undefined) return `Did you mean ${near}?`;
  // Types begin with a capital letter, and must not lead to a function.
  const isType = /^[A-Z]/.test(name);
  const all = exported.flatMap(([, names]) => names).filter((each) => /^[A-Z]/.test(each) === isType);
  const other = findSuggestion(name, all);
  if (other === undefined) return isType ? `If ${name} is a type, write import { type ${name} }.` : undefined;
  return `Did you mean ${other} from ${exported.find(([, names]) => names.includes(other))?.[0]}?`;
}

function isSameFile(url: string, module: string): boolean {
  return url === module || decodeURIComponent(new URL(url).pathname) === module;
}

/** Loads all entry points. Leaves out entry points that need a package which is not installed. */
async function listExports(entries: Entries): Promise<readonly (readonly [entry: string, names: readonly string[]])[]> {
  const loaded = await Promise.allSettled(entries.map(([, file]) => import(file)));
  return loaded.map((each, at) =>
    [entries[at][0], each.status === "fulfilled" ? Object.keys(each.value) : []] as const
  );
}
