/**
 * Checks the claims of tokens against the author's schema, so that handlers read typed claims.
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

/** Checks the claims of tokens from the given issuers. */
export class TypedClaims {
  readonly #schema?: CompiledSchema;
  readonly #issuers: ReadonlyMap<string, unknown>;
  /** Claims that were checked. Copies of a principal with another expiry share the same object. */
  readonly #checked = new WeakSet<object>();

  /**
   * Creates the checks. `issuers` contains the issuers by name.
   *
   * @throws {TypeError} if `schema` is not a schema.
   */
  constructor(schema: Schema | undefined, issuers: ReadonlyMap<string, unknown>) {
    this.#issuers = issuers;
    if (schema === undefined) return;
    this.#schema = compileSchema(withJson(schema), { use: "input", place: "the claims of oauth()" });
    // Load the code for JSON Schema now, because `read` must check the claims of another process's caller
    // synchronously.
    if (this.#schema.isRaw) void Promise.resolve(this.#schema.validate({})).catch(() => {});
  }

  /**
   * Returns the claims of a token as the schema outputs them.
   *
   * @throws {InvalidToken} (as a rejection) if the claims do not match the schema. Its `detail` contains the reason;
   * its message does not.
   */
  async check(claims: Claims): Promise<Claims> {
    const checked = await this.#schema?.validate(claims) ?? { value: claims };
    if (checked.problem !== undefined) {
      throw new InvalidToken("the claims of the token are not accepted", checked.problem);
    }
    if (isObject(checked.value) && isJson(checked.value)) return checked.value;
    throw new TypeError("Cannot use the claims of a token: the schema did not return a JSON object; return an object");
  }

  /** Marks the claims of a principal as checked. */
  add({ claims }: OAuthPrincipal): void {
    this.#checked.add(claims);
  }

  /**
   * Returns a principal whose claims match the schema, or `undefined` if its id does not belong to one of these
   * issuers. Checks the claims again if the principal comes from another process or from a test.
   *
   * @throws {TypeError} if the claims do not match the schema.
   */
  read(principal: Principal): OAuthPrincipal | undefined {
    const issuer = readIssuer(principal.id);
    if (issuer === undefined || !this.#issuers.has(issuer)) return;
    const { id, claims = {} } = principal;
    if (isObject(claims) && this.#checked.has(claims)) return principal as OAuthPrincipal; // Safe: from `oauth()`.
    const refuse = (state: string) => new TypeError(`Cannot read the claims of ${quote(id)}: ${state}`);
    if (!isObject(claims)) throw refuse("they are not an object; pass on the claims of ctx.principal");
    const checked = this.#schema?.validate(claims) ?? { value: claims };
    if (isPromiseLike(checked)) {
      throw refuse(
        "their schema is asynchronous, but this check is synchronous; use a synchronous Standard Schema",
      );
    }
    if (checked.problem !== undefined) throw refuse(`they do not match the schema: ${checked.problem}`);
    if (!isObject(checked.value)) throw refuse("the schema did not return an object; return an object");
    return Object.freeze({ ...principal, issuer, claims: checked.value });
  }
}

// Adds a placeholder for JSON Schema, because clients never see this schema.
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

// Claims must be JSON, because tasks store them, and because the cache counts their characters.
function isJson(claims: Claims): boolean {
  try {
    return JSON.stringify(claims) !== undefined;
  } catch {
    return false;
  }
}
