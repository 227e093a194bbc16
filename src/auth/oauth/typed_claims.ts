/**
 * Checks the claims of tokens by the schema of the author, so that handlers read them with their types.
 *
 * @module
 */
import { quote } from "../../protocol/errors.ts";
import { isObject } from "../../protocol/jsonrpc.ts";
import { isPromiseLike } from "../../protocol/promises.ts";
import type { CompiledSchema, Schema, StandardSchema } from "../../schema/schema.ts";
import { compileSchema } from "../../schema/schema_compiler.ts";
import type { Principal } from "../../core/call/context.ts";
import { type Claims, type OAuthPrincipal, readIssuer } from "./caller.ts";
import { InvalidToken } from "./claims.ts";

/** Checks the claims of the tokens of some issuers. */
export class TypedClaims {
  readonly #schema?: CompiledSchema;
  readonly #issuers: ReadonlyMap<string, unknown>;
  /** Claims that were checked. Copies of a principal with another expiry share them. */
  readonly #checked = new WeakSet<object>();

  /**
   * Creates the checks. `issuers` has the issuers by their names.
   *
   * @throws {TypeError} if the schema is none.
   */
  constructor(schema: Schema | undefined, issuers: ReadonlyMap<string, unknown>) {
    this.#issuers = issuers;
    if (schema === undefined) return;
    this.#schema = compileSchema(withJson(schema), { use: "input", place: "the claims of oauth()" });
    // The code for JSON Schema loads on demand. A caller of another process is read synchronously.
    if (this.#schema.isRaw) void Promise.resolve(this.#schema.validate({})).catch(() => {});
  }

  /**
   * Returns the claims of a token as the schema outputs them.
   *
   * @throws {InvalidToken} (as a rejection) if they do not fit. Its message does not tell why, and its `detail` does.
   */
  async check(claims: Claims): Promise<Claims> {
    const checked = await this.#schema?.validate(claims) ?? { value: claims };
    if (checked.problem !== undefined) {
      throw new InvalidToken("the claims of the token are not accepted", checked.problem);
    }
    if (isObject(checked.value) && isJson(checked.value)) return checked.value;
    throw new TypeError("Cannot use the claims of a token: their schema has not made an object of JSON; return one");
  }

  /** Marks the claims of a principal as checked. */
  add({ claims }: OAuthPrincipal): void {
    this.#checked.add(claims);
  }

  /**
   * Returns a principal with the claims of the schema, or `undefined` if no token of these issuers stands for it. Checks
   * claims again if another process or a test has passed the principal on.
   *
   * @throws {TypeError} if the claims do not fit.
   */
  read(principal: Principal): OAuthPrincipal | undefined {
    const issuer = readIssuer(principal.id);
    if (issuer === undefined || !this.#issuers.has(issuer)) return;
    const { id, claims = {} } = principal;
    if (isObject(claims) && this.#checked.has(claims)) return principal as OAuthPrincipal; // Made by `oauth()`.
    const refuse = (state: string) => new TypeError(`Cannot read the claims of ${quote(id)}: ${state}`);
    if (!isObject(claims)) throw refuse("they are not an object; pass on those of ctx.principal");
    const checked = this.#schema?.validate(claims) ?? { value: claims };
    if (isPromiseLike(checked)) {
      throw refuse(
        "their schema is asynchronous, and the caller comes from elsewhere; use a synchronous Standard Schema",
      );
    }
    if (checked.problem !== undefined) throw refuse(`they do not fit: ${checked.problem}`);
    if (!isObject(checked.value)) throw refuse("the schema has made no object of them; return an object");
    return Object.freeze({ ...principal, issuer, claims: checked.value });
  }
}

// Clients never see the schema, so it needs no JSON Schema.
function withJson(schema: Schema): Schema {
  if (!isStandard(schema) || schema["~standard"].jsonSchema) return schema;
  const { version, vendor, validate } = schema["~standard"];
  const toJson = () => ({ type: "object" });
  const standard: StandardSchema["~standard"] = {
    version,
    vendor,
    validate: (value) => validate.call(schema["~standard"], value),
    jsonSchema: { input: toJson, output: toJson },
  };
  return { "~standard": standard };
}

function isStandard(schema: Schema): schema is StandardSchema {
  return "~standard" in Object(schema);
}

// Tasks store claims, and a cache counts their characters.
function isJson(claims: Claims): boolean {
  try {
    return JSON.stringify(claims) !== undefined;
  } catch {
    return false;
  }
}
