/**
 * Validates the structured content of results with the output schemas of the listed tools.
 *
 * @see specification/2026-07-28/server/tools (Output Schema)
 */
import { isObject, type Params, type Result } from "../core/protocol/jsonrpc.ts";
import { type Issue, toText } from "../core/schema/json_schema.ts";
import { toMisfit } from "./wire_checks.ts";

type Check = (value: unknown) => readonly Issue[];

/** The output schemas of a server's tools, from the latest `listTools`. */
export class OutputChecks {
  #schemas = new Map<unknown, Params>();
  readonly #checks = new WeakMap<Params, Check>();
  readonly #find: (name: string) => Params | undefined;

  /** `find` returns the output schema of a tool whose schema is not known from a list. */
  constructor(find: (name: string) => Params | undefined = () => undefined) {
    this.#find = find;
  }

  /** Replaces all schemas with the output schemas in a complete list of tools. */
  learn(tools: readonly Params[]): void {
    this.#schemas = new Map(
      tools.flatMap(({ name, outputSchema }) => isObject(outputSchema) ? [[name, outputSchema]] : []),
    );
  }

  has(name: string): boolean {
    return this.#findSchema(name) !== undefined;
  }

  #findSchema(name: string): Params | undefined {
    return this.#schemas.get(name) ?? this.#find(name);
  }

  /** Called when the server's list of tools has changed. */
  forget(): void {
    this.#schemas.clear();
  }

  /**
   * Accepts any result if no output schema of the tool is known.
   *
   * @throws {McpError} with code 0 if the structured content is missing or does not match the schema.
   */
  async check(name: string, { isError, structuredContent }: Result): Promise<void> {
    const schema = this.#findSchema(name);
    if (!schema || isError === true) return;
    const refuse = (state: string) => toMisfit(`the tool ${name}`, state);
    if (structuredContent === undefined) throw refuse("structuredContent is missing, but the tool has an outputSchema");
    const issues = (await this.#compile(schema))(structuredContent);
    if (!issues.length) return;
    const places = issues.map(({ path, message }) => {
      const place = path && !path.startsWith("[") ? `.${path}` : path;
      return toText({ path: `structuredContent${place}`, message });
    });
    throw refuse(`${places.join("; ")} (outputSchema)`);
  }

  async #compile(schema: Params): Promise<Check> {
    let check = this.#checks.get(schema);
    if (!check) this.#checks.set(schema, check = await compile(schema));
    return check;
  }
}

// Compiles a schema. Ignores `pattern`, because evaluating a server's regular expression could block this process. If
// the schema cannot be compiled, for example because it refers to another document, the returned check accepts every
// result.
async function compile(schema: Params): Promise<Check> {
  const { compileJsonSchema } = await import("../core/schema/json_check.ts");
  try {
    return compileJsonSchema(schema, { ignoresPatterns: true });
  } catch {
    return () => [];
  }
}
