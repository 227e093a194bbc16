/**
 * The entries of lists, as a server sends them.
 *
 * @see specification/2026-07-28/schema
 * @module
 */
import type { Params } from "./jsonrpc.ts";
import type { Annotations, Icon, ToolAnnotations } from "./types.ts";

/** Fields that all entries share. */
export interface Listed {
  /** The name for programs. */
  readonly name: string;
  /** The display name for people. */
  readonly title?: string;
  /** Description for a model. */
  readonly description?: string;
  /** The icons of the entry. */
  readonly icons?: readonly Icon[];
  /** Further fields, as the server sent them. */
  readonly [key: string]: unknown;
}

/** A tool of a server. */
export interface ListedTool extends Listed {
  /** JSON Schema of the input. A `$ref` to another host is never followed. */
  readonly inputSchema: Params;
  /** JSON Schema of the structured output. */
  readonly outputSchema?: Params;
  /** Hints of the server. They are not verified. */
  readonly annotations?: ToolAnnotations;
}

/** A resource of a server. */
export interface ListedResource extends Listed {
  /** The URI of the resource. */
  readonly uri: string;
  /** The media type of the resource, such as `text/plain`. */
  readonly mimeType?: string;
  /** The size of the resource in bytes. */
  readonly size?: number;
  /** Hints for clients on how to use it. */
  readonly annotations?: Annotations;
}

/** A resource template of a server. */
export interface ListedTemplate extends Listed {
  /** A URI template of RFC 6570. */
  readonly uriTemplate: string;
  /** The media type of its resources. */
  readonly mimeType?: string;
  /** Hints for clients on how to use it. */
  readonly annotations?: Annotations;
}

/** A prompt of a server. */
export interface ListedPrompt extends Listed {
  /** The arguments that the prompt accepts. */
  readonly arguments?: readonly {
    /** The name for programs. */
    readonly name: string;
    /** The display name for people. */
    readonly title?: string;
    /** The description of the argument. */
    readonly description?: string;
    /** Whether the argument is required. */
    readonly required?: boolean;
  }[];
}
