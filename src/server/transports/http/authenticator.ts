/**
 * Types that the HTTP endpoint shares with the authenticator, whose code loads only for servers with `auth`.
 */
import type { ReadPathParams } from "../../call/context.ts";
import type { Engine } from "../../engine/era.ts";
import type { TransportName } from "../../call/observer.ts";
import type { AccessOptions } from "./access.ts";
import type { Place } from "./caller.ts";
import type { PathValues } from "./path_template.ts";

/** Validates and converts path parameters. Resolves to `undefined` if the parameters are invalid. */
export type OpenPathParams = (values: PathValues) => Promise<ReadPathParams | undefined>;

/** The endpoint through which a request reached the authenticator. */
export interface EnterOptions<P extends Place = Place> {
  readonly transport: TransportName;
  /** The concrete path, if the server's path has parameters. */
  readonly place?: P;
}

export interface AuthenticatorParts {
  readonly engine: Engine;
  readonly path: string;
  readonly proxies: readonly string[];
  /** The hosts and origins of the server, for pages. */
  readonly access: AccessOptions;
}
