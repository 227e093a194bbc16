/**
 * APIs with an OpenAPI document.
 */
import { type Api, type ApiOperation, openapi, type OpenApiOptions } from "../../ready/openapi/openapi.ts";
import { suggestName } from "../client/name_lookup.ts";
import { type KeyPath, type ToProblem, withPath } from "../../ready/problem.ts";
import { parseTemplate, type ReadEnv } from "../../ready/template.ts";
import { readDocument } from "./api_document.ts";
import type { ApiConfig } from "./schema.ts";

export interface ApiEntryOptions {
  /** The absolute path of the document. */
  readonly path: string;
  readonly readEnv: ReadEnv;
  readonly toProblem: ToProblem;
}

export async function apiHandler(config: ApiConfig, { path, readEnv, toProblem }: ApiEntryOptions): Promise<Api> {
  const document: ConfigDocument = await readDocument(path);
  const fill = (text: string, path: KeyPath) =>
    withPath(
      () =>
        parseTemplate(text, readEnv).fill((name) => {
          throw new TypeError(`{{${name}}} stands for an argument, which this text cannot contain; remove it`);
        }),
      toProblem,
      path,
    );
  const credentials = Object.entries(config.auth ?? {}).map(([name, text]) =>
    [name, fill(text, ["auth", name])] as const
  );
  const schemes = listSchemes(document) ?? addSchemes(document, credentials.map(([name]) => name));
  for (const [name] of credentials) {
    if (!schemes.includes(name)) throw toProblem(["auth", name], explainUnknown("security scheme", name, schemes));
  }
  const selection = new Selection(config);
  const api = openapi(document, {
    baseUrl: fill(config.baseUrl, ["baseUrl"]),
    // Without the credential, operations that have another security scheme use this scheme.
    auth: Object.fromEntries(credentials.flatMap(([name, text]) => text ? [[name, () => text] as const] : [])),
    as: selection.as,
    readOnly: config.readOnly,
    allowPrivate: config.allowPrivate,
  });
  selection.check(toProblem);
  if (api.handlers.length) return api;
  const missing = credentials.find(([, text]) => !text);
  const reason = api.operations.find(({ reason }) => reason !== undefined)?.reason ?? "no operation is selected";
  const state = missing ? `the credential for ${missing[0]} is empty; set its environment variable` : reason;
  throw toProblem([], `no operation of the document can be served: ${state}`);
}

/** Selects the operations that match all lists of a config file. */
class Selection {
  readonly as: OpenApiOptions["as"];
  readonly #config: ApiConfig;
  readonly #tags = new Set<string>();
  readonly #ids = new Set<string>();

  constructor(config: ApiConfig) {
    this.#config = config;
    const { tags, methods, operations } = config;
    // Without a selection, the server checks whether a search is necessary.
    if (tags ?? methods ?? operations) this.as = (operation) => this.#isSelected(operation) ? "tool" : "none";
  }

  #isSelected({ id, method, tags }: ApiOperation): boolean {
    const { tags: onlyTags, methods, operations } = this.#config;
    this.#ids.add(id);
    for (const tag of tags) this.#tags.add(tag);
    return (!onlyTags || tags.some((tag) => onlyTags.includes(tag))) &&
      (!methods || methods.some((each) => each === method)) &&
      (!operations || operations.includes(id));
  }

  /** Throws if a list contains a name that the document does not have. */
  check(toProblem: ToProblem): void {
    const { tags = [], operations = [] } = this.#config;
    const lists = [["tags", tags, this.#tags, "tag"], ["operations", operations, this.#ids, "operationId"]] as const;
    for (const [key, names, known, word] of lists) {
      const unknown = names.findIndex((name) => !known.has(name));
      if (unknown >= 0) throw toProblem([key, unknown], explainUnknown(word, names[unknown], [...known]));
    }
  }
}

function explainUnknown(word: string, name: string, known: readonly string[]): string {
  const remedy = suggestName(name, known, known.length ? undefined : "remove it");
  return `the document has no ${word} ${name}; ${remedy}`;
}

/**
 * Returns the names of the security schemes in a document of any version. Returns `undefined` if a document that can
 * have HTTP schemes has no schemes.
 */
function listSchemes({ openapi: version, components, securityDefinitions }: ConfigDocument): string[] | undefined {
  const schemes = version === undefined ? securityDefinitions ?? {} : components?.securitySchemes;
  const names = Object.keys(Object(schemes));
  return names.length || version === undefined ? names : undefined;
}

/** Adds the HTTP schemes with these names to a document that has no schemes. Returns the names that can be added. */
function addSchemes(document: ConfigDocument, names: readonly string[]): readonly string[] {
  const added = HTTP_SCHEMES.filter((scheme) => names.includes(scheme));
  if (!added.length) return HTTP_SCHEMES;
  document.components = {
    ...Object(document.components),
    securitySchemes: Object.fromEntries(added.map((scheme) => [scheme, { type: "http", scheme }])),
  };
  document.security = added.map((scheme) => ({ [scheme]: [] }));
  return HTTP_SCHEMES;
}

const HTTP_SCHEMES = ["bearer", "basic"];

/** The members of a document that say which credentials the API needs. */
interface ConfigDocument {
  readonly openapi?: unknown;
  readonly securityDefinitions?: unknown;
  components?: { readonly securitySchemes?: unknown };
  security?: unknown;
}
