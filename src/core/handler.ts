/**
 * What users register, and the features their handlers belong to.
 *
 * @module
 */
import type { Result } from "../protocol/jsonrpc.ts";
import type { HeaderParam } from "../schema/header_params.ts";
import type { Call } from "./call.ts";
import type { Core } from "./core.ts";

/** A tool, a resource or a prompt: an object made by one of the factories. */
export interface Handler {
  /**
   * What it is part of.
   *
   * @internal
   */
  readonly feature: Feature;
  /** Unique within its feature. */
  readonly key: string;
  /**
   * Handlers of other features that come and go with this one.
   *
   * @internal
   */
  readonly also?: readonly Handler[];
}

/** A capability of a server and the methods that come with it. */
export interface Feature {
  /** The capability's name on the wire, such as `tools`. */
  readonly name: string;
  /** Makes the methods out of all handlers of this feature; throws if they cannot stand together. */
  compile(handlers: readonly Handler[], core: Core): Compiled;
}

/** A feature that is ready to serve. */
export interface Compiled {
  /** What the server declares, by capability. */
  readonly capabilities: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly methods: Readonly<Record<string, Method>>;
}

/** What answers one method. */
export interface Method {
  run(call: Call): Result | Promise<Result>;
  /** The parameter that names what the call is about, and that intermediaries see in a header. */
  readonly subject?: "name" | "uri";
  /** Further parameters that intermediaries see in headers. */
  mirrored?(params: Result): readonly HeaderParam[];
  /** Whether a handler may ask the client something. */
  readonly asks?: boolean;
  /** Whether a result is the same object as long as nothing changes, so that its text can be kept. */
  readonly stable?: boolean;
}
