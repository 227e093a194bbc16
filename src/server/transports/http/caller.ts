/**
 * The identified caller of an HTTP request.
 */
import type { Principal, ReadPathParams } from "../../call/context.ts";
import type { SeenRequest } from "../../call/link.ts";
import type { ConnectionInfo } from "./access.ts";
import type { PathValues } from "./path_template.ts";

export interface Place {
  /** The concrete path of the endpoint, normalized. */
  readonly path: string;
  /** The parameters from the path, percent-decoded but not converted. */
  readonly values: PathValues;
  /** Returns the parameters as the schema has converted them. */
  readonly pathParams: ReadPathParams;
}

export interface Known<P extends Place = Place> {
  readonly principal?: Principal;
  /** The request without its credentials. Set if the server has authenticated the request. */
  readonly seen?: SeenRequest;
  readonly place?: P;
}

const NOTHING = {};

/** The caller of a request that passed all checks. Created once per request. */
export class Caller<P extends Place = Place> implements Known<P> {
  readonly request: Request;
  /** The second argument that was passed to `fetch`. */
  readonly info: ConnectionInfo | undefined;
  readonly headers: Headers;
  readonly principal?: Principal;
  readonly seen?: SeenRequest;
  readonly place?: P;

  constructor(request: Request, info: ConnectionInfo | undefined, { principal, seen, place }: Known<P> = NOTHING) {
    this.request = request;
    this.info = info;
    this.headers = request.headers;
    this.principal = principal;
    this.seen = seen;
    this.place = place;
  }
}
