/**
 * The entries of lists, as a server sends them.
 *
 * @see specification/2026-07-28/schema
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

/** A tool in a server's list. */
export interface ListedTool extends Listed {
  /** JSON Schema of the input. Clients never load a `$ref` from another host. */
  readonly inputSchema: Params;
  /** JSON Schema of the structured output. */
  readonly outputSchema?: Params;
  /** Hints from the server about the tool's behavior. The client does not verify these hints. */
  readonly annotations?: ToolAnnotations;
}

/** A resource in a server's list. */
export interface ListedResource extends Listed {
  /** The URI of the resource. */
  readonly uri: string;
  /** The media type of the resource, such as `text/plain`. */
  readonly mimeType?: string;
  /** The size of the resource in bytes. */
  readonly size?: number;
  /** Hints for clients on how to use the resource. */
  readonly annotations?: Annotations;
}

/** A resource template in a server's list. */
export interface ListedTemplate extends Listed {
  /** The URI template, in the syntax of RFC 6570. */
  readonly uriTemplate: string;
  /** The media type of all resources that match the template. */
  readonly mimeType?: string;
  /** Hints for clients on how to use the resources. */
  readonly annotations?: Annotations;
}

/** A prompt in a server's list. */
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
