/**
 * Checks the claims of tokens against the schema in `oauth({ claims })`, so that handlers receive typed claims.
 */
import { quote } from "../../core/protocol/errors.ts";
import { isObject } from "../../core/protocol/jsonrpc.ts";
import { isPromiseLike } from "../../core/protocol/promises.ts";
import type { CompiledSchema, Schema, StandardSchema } from "../../core/schema/schema.ts";
import { compileSchema } from "../../core/schema/schema_compiler.ts";
import type { Principal } from "../../server/call/context.ts";
import { type Claims, type OAuthPrincipal, readIssuer } from "./caller.ts";
import { InvalidToken } from "./claims.ts";

/** Without a schema, accepts all claims. */
export class TypedClaims {
  readonly #schema?: CompiledSchema;
  readonly #issuers: ReadonlyMap<string, unknown>;
  /** The claims objects that this process has checked. Copies of a principal share the claims object. */
  readonly #checked = new WeakSet<object>();

  /**
   * The keys of `issuers` are the names of the trusted issuers.
   *
   * @throws {TypeError} if `schema` is not a schema.
   */
  constructor(schema: Schema | undefined, issuers: ReadonlyMap<string, unknown>) {
    this.#issuers = issuers;
    if (schema === undefined) return;
    this.#schema = compileSchema(withJson(schema), { use: "input", place: "the claims of oauth()" });
    // Load the code for JSON Schema now, because `read` checks claims from other processes synchronously.
    if (this.#schema.isRaw) void Promise.resolve(this.#schema.validate({})).catch(() => {});
  }

  /**
   * Returns the output of the schema for the claims of a token.
   *
   * @throws {InvalidToken} (as a rejection) if the claims do not match the schema. Only the `detail` of the error
   * contains the reason.
   */
  async check(claims: Claims): Promise<Claims> {
    const checked = await this.#schema?.validate(claims) ?? { value: claims };
    if (checked.problem !== undefined) {
      throw new InvalidToken("the claims of the token are not accepted", checked.problem);
    }
    if (isObject(checked.value) && isJson(checked.value)) return checked.value;
    throw new TypeError(
      "Cannot use the claims of a token: the schema did not return a JSON object; make the schema return a JSON object",
    );
  }

  /** Marks the claims of a principal as checked, so that `read` does not check them again. */
  add({ claims }: OAuthPrincipal): void {
    this.#checked.add(claims);
  }

  /**
   * Returns the principal with claims that match the schema. Returns `undefined` if the principal's id does not contain
   * one of the issuers. Checks the claims again if the principal comes from another process or from a test.
   *
   * @throws {TypeError} if the claims do not match the schema.
   */
  read(principal: Principal): OAuthPrincipal | undefined {
    const issuer = readIssuer(principal.id);
    if (issuer === undefined || !this.#issuers.has(issuer)) return;
    const { id, claims = {} } = principal;
    if (isObject(claims) && this.#checked.has(claims)) return principal as OAuthPrincipal; // The cast is safe, because `oauth()` created the principal.
    const refuse = (state: string) => new TypeError(`Cannot read the claims of ${quote(id)}: ${state}`);
    if (!isObject(claims)) throw refuse("the claims are not an object; set claims to an object of claims");
    const checked = this.#schema?.validate(claims) ?? { value: claims };
    if (isPromiseLike(checked)) {
      throw refuse(
        "the schema is asynchronous, but this check is synchronous; use a synchronous Standard Schema",
      );
    }
    if (checked.problem !== undefined) throw refuse(`the claims do not match the schema: ${checked.problem}`);
    if (!isObject(checked.value)) throw refuse("the schema did not return an object; make the schema return an object");
    return Object.freeze({ ...principal, issuer, claims: checked.value });
  }
}

// Adds a placeholder for the schema's JSON Schema: `compileSchema` requires it, but clients never see this schema.
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

// Tests whether claims can be serialized as JSON: tasks store claims, and the token cache counts the characters of
// their JSON.
function isJson(claims: Claims): boolean {
  try {
    return JSON.stringify(claims) !== undefined;
  } catch {
    return false;
  }
}
