/**
 * The settings that the user of a packed server enters, and that the server reads as environment variables.
 */
import { UsageError } from "../cli_error.ts";

const TYPES = ["string", "secret", "file", "directory", "number", "boolean"] as const;

export interface Setting {
  /** The name of the environment variable that contains the value. */
  readonly name: string;
  readonly type: typeof TYPES[number];
  readonly description: string;
  /** `undefined` if the user must enter a value. The empty string if the user may leave the setting empty. */
  readonly preset?: string;
}

/** The form `NAME:TYPE=DEFAULT # DESCRIPTION`. Only the name is required. */
const FORM = /^(\w+)(?::(\w+))?(?:=(.*?))?(?:\s+#\s*(.+?))?\s*$/;

/**
 * Reads the values of `--ask`.
 *
 * @throws {UsageError} if a value is not a setting.
 */
export function readSettings(words: readonly string[]): readonly Setting[] {
  const settings = words.map(readSetting);
  const twice = settings.find(({ name }, i) => settings.findIndex((other) => other.name === name) !== i);
  if (twice) {
    throw new UsageError(
      `Cannot ask for ${twice.name} twice: two --ask options declare this setting; remove one of the two`,
    );
  }
  return settings;
}

function readSetting(word: string): Setting {
  const [, name, typeName = "string", preset, description] = FORM.exec(word) ?? [];
  if (name === undefined || /^\d/.test(name)) {
    throw new UsageError(
      `Cannot read --ask ${word}: it is not a setting; write --ask NAME, or "NAME:TYPE=DEFAULT # DESCRIPTION"`,
    );
  }
  const type = TYPES.find((each) => each === typeName);
  if (!type) {
    throw new UsageError(`Cannot ask for ${name}: ${typeName} is not a type; write one of ${TYPES.join(", ")}`);
  }
  if (type === "number" && preset && !Number.isFinite(Number(preset))) {
    throw new UsageError(`Cannot ask for ${name}: the default ${preset} is not a number; write a number`);
  }
  if (type === "boolean" && preset && preset !== "true" && preset !== "false") {
    throw new UsageError(`Cannot ask for ${name}: the default ${preset} is not a boolean; write true or false`);
  }
  // Reject an empty path, because Node does not accept an empty path in the flag that grants read permission.
  if (isPath(type) && preset === "") {
    throw new UsageError(
      `Cannot ask for ${name}: the default of a ${type} cannot be empty; write a default, or remove the =`,
    );
  }
  const text = description ?? `The environment variable ${name} of the server`;
  return { name, type, description: text, ...preset !== undefined && { preset } };
}

function isPath(type: Setting["type"]): boolean {
  return type === "file" || type === "directory";
}

/** The values of `--allow` other than `write=NAME`, with the corresponding Node flags. */
const KINDS = { run: "--allow-child-process", worker: "--allow-worker" } as const;

/**
 * Returns the Node flags that permit the server to read its own folder and the paths that the user chooses, and that
 * grant the permissions from `--allow`.
 *
 * @throws {UsageError} if a value of `--allow` is not a permission.
 */
export function toNodeFlags(settings: readonly Setting[], allowed: readonly string[]): readonly string[] {
  const paths = settings.filter(({ type }) => isPath(type));
  const reads = ["${__dirname}", ...paths.map(({ name }) => toReference(name))];
  const flags = allowed.map((word) => {
    const [kind, name] = word.split("=");
    if (kind === "write" && paths.some((each) => each.name === name)) return `--allow-fs-write=${toReference(name)}`;
    const flag = Object.entries(KINDS).find(([each]) => each === word)?.[1];
    if (flag !== undefined) return flag;
    throw new UsageError(
      `Cannot allow ${word}: it is not a permission; write run, worker, or write=NAME with the name of a ` +
        "file or directory that --ask asks for",
    );
  });
  return ["--permission", ...reads.map((path) => `--allow-fs-read=${path}`), ...new Set(flags)];
}

/** Returns the text with which a manifest refers to a setting. */
export function toReference(name: string): string {
  return `\${user_config.${name}}`;
}

/** The values from which `toLauncher` builds the module that starts a packed server. */
export interface LauncherParts {
  readonly name: string;
  readonly settings: readonly Setting[];
  /** The specifiers of the server's file, of this library, and of the library's stdio transport. */
  readonly file: string;
  readonly library: string;
  readonly stdio: string;
}

/** Returns the module that starts a packed server. The module runs before the author's code. */
export function toLauncher({ name, settings, file, library, stdio }: LauncherParts): string {
  const required = settings.filter(({ preset }) => preset === undefined).map((each) => each.name);
  // Treat an empty value and an unexpanded `${user_config.…}` reference as missing, because clients pass such values
  // for a setting without a value.
  return `import { serveStdio } from ${JSON.stringify(stdio)};
import { createServer } from ${JSON.stringify(library)};
for (const name of ${JSON.stringify(settings.map((each) => each.name))}) {
  if (["", "\${user_config." + name + "}"].includes(process.env[name])) delete process.env[name];
}
const missing = ${JSON.stringify(required)}.filter((name) => process.env[name] === undefined);
if (missing.length) {
  console.error("Cannot start " + ${
    JSON.stringify(name)
  } + ": " + missing.join(", ") + " is not set; enter it in the " +
    "settings of the extension, or set the environment variable");
  process.exit(2);
}
console.log = console.info = console.debug = console.error;
const { default: found } = await import(${JSON.stringify(file)});
const exported = await found;
const server = Array.isArray(exported)
  ? createServer({ name: ${JSON.stringify(name)}, version: "0.0.0", handlers: exported })
  : exported;
const closed = new AbortController();
for (const name of ["SIGINT", "SIGTERM"]) process.once(name, () => closed.abort());
await server.ready?.();
await serveStdio(server, { signal: closed.signal, exit: false });
await server.close();
process.exit(0);
`;
}
