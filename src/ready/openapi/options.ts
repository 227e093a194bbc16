/**
 * The options of an API.
 */
import { isPlain, type KnownOptions } from "../../core/known_options.ts";
import type { ToolAnnotations } from "../../library.ts";
import type { ArgumentChange } from "../../server/handlers/transform.ts";
import type { RequestLimits } from "../http_request.ts";
import { REQUEST_RULES } from "../http_template.ts";
import type { ApiOperation } from "./api_operation.ts";
import type { ApiCredentials } from "./credentials.ts";

/** The kind of handler that an operation becomes. `none` leaves the operation out. */
export type OperationKind = "tool" | "resource" | "template" | "none";

/** How an operation changes for clients. See `transform`. */
export interface OperationChange {
  /** Name for clients. */
  readonly name?: string;
  /** Display name. */
  readonly title?: string;
  /** Description for the model. */
  readonly description?: string;
  /** What to use instead, such as `use find`. The description then begins with this text. */
  readonly deprecated?: string;
  /** Hints about the tool's behavior, which replace the hints from the method one by one. Only for tools. */
  readonly annotations?: ToolAnnotations;
  /**
   * The changes of arguments, by the name of the argument. A path such as `body.options.tenant` names a member of an
   * argument, which can only get a `value`. Only for tools.
   */
  readonly input?: Readonly<Record<string, ArgumentChange>>;
}

/** Options of {@linkcode openapi}. `baseUrl` or `fetch` is required. */
export interface OpenApiOptions extends Pick<RequestLimits, "maxBytes" | "allowPrivate"> {
  /**
   * The URL to which the paths of the document are appended, such as `https://api.example.com/v1`, or a function that
   * returns it for an operation. The `servers` of the document are never used. Without a function, operations for which
   * the document names other servers are left out, because they would get the credentials of the base URL. An operation
   * for which the function returns `undefined` is left out too. With `fetch`, defaults to `http://localhost`.
   */
  readonly baseUrl?: string | URL | ((operation: ApiOperation) => string | URL | undefined);
  /**
   * An app in this process that responds to the requests, such as `app.fetch`. It gets the caller with `principalOf`. By
   * default, requests are sent over the network.
   */
  readonly fetch?: (request: Request) => Response | Promise<Response>;
  /**
   * Returns what an operation becomes. A `resource` has no arguments, and the arguments of a `template` are part of its
   * URI; both are GET operations. By default, all operations are tools.
   */
  readonly as?: (operation: ApiOperation) => OperationKind;
  /**
   * Changes of operations, such as other names, and arguments with fixed values: by the id of the operation, or a
   * function that returns the changes of an operation, or `undefined`.
   */
  readonly transform?:
    | Readonly<Record<string, OperationChange>>
    | ((operation: ApiOperation) => OperationChange | undefined);
  /**
   * The credentials by name of the security scheme, such as `{ github: (ctx) => token }`. If the function
   * returns `undefined`, the call uses the next alternative of the operation, or fails. An operation whose schemes have no
   * credentials is left out. `false` calls operations of the scheme without a credential, such as an app in this process
   * that gets the caller with `principalOf`.
   */
  readonly auth?: ApiCredentials;
  /**
   * Whether structured content matches the schema of the document. `none` does not compare them. `check` omits the
   * structured content if it does not match. `strict` publishes the schema to clients, and the call fails if the content
   * does not match. Defaults to `none`, because many APIs do not respond as they document.
   */
  readonly output?: "none" | "check" | "strict";
  /** Whether the fields of a body are arguments, if no names clash. Defaults to `false`: one argument `body`. */
  readonly flatten?: boolean;
  /** Whether to leave out all operations that can change data. Defaults to `false`. */
  readonly readOnly?: boolean;
  /** Timeout of a request in milliseconds, or a function that returns it for an operation. Defaults to 30,000. */
  readonly timeoutMs?: number | ((operation: ApiOperation) => number | undefined);
}

const CREDENTIALS = {
  test: (value: unknown) =>
    typeof value === "object" && value !== null && isPlain(value) &&
    Object.values(value).every((each) => typeof each === "function" || each === false),
  remedy: "it must be an object with a function for each security scheme",
};

export const OPTIONS: KnownOptions<keyof OpenApiOptions> = {
  names: {
    baseUrl: true,
    fetch: "function",
    as: "function",
    transform: true,
    auth: CREDENTIALS,
    output: ["none", "check", "strict"],
    flatten: "boolean",
    readOnly: "boolean",
    timeoutMs: {
      findProblem: (value) => typeof value === "function" ? undefined : REQUEST_RULES.timeoutMs.findProblem(value),
    },
    maxBytes: REQUEST_RULES.maxBytes,
    allowPrivate: REQUEST_RULES.allowPrivate,
  },
  hints: {
    url: "baseUrl",
    server: "baseUrl",
    headers: "auth",
    token: "auth",
    change: "transform",
  },
  elsewhere: {
    include: 'use as, such as as: ({ tags }) => tags.includes("pets") ? "tool" : "none"',
    exclude: 'use as, such as as: ({ tags }) => tags.includes("admin") ? "none" : "tool"',
    use: 'use group("pets", [openapi(…)], { use: […] })',
    allow: 'use group("pets", [openapi(…)], { allow })',
  },
};
