/**
 * What a server lists, as a client sees it.
 *
 * @see specification/2026-07-28/schema
 * @module
 */
import type { Params } from "../protocol/jsonrpc.ts";
import type { Annotations, Icon, ToolAnnotations } from "../protocol/types.ts";

/** What all listed things have. */
export interface Listed {
  /** The name for programs. */
  readonly name: string;
  /** The name for people. */
  readonly title?: string;
  /** What it is or does, for a model. */
  readonly description?: string;
  /** Images that stand for it. */
  readonly icons?: readonly Icon[];
  /** Whatever else the server told of it. */
  readonly [key: string]: unknown;
}

/** A tool as a client sees it. */
export interface ListedTool extends Listed {
  /** A JSON Schema. A `$ref` to another host is never followed. */
  readonly inputSchema: Params;
  /** A JSON Schema. */
  readonly outputSchema?: Params;
  /** Hints that nobody has checked. */
  readonly annotations?: ToolAnnotations;
}

/** A resource as a client sees it. */
export interface ListedResource extends Listed {
  /** Its URI. */
  readonly uri: string;
  /** Its media type, such as `text/plain`. */
  readonly mimeType?: string;
  /** Bytes. */
  readonly size?: number;
  /** Hints for clients on how to use it. */
  readonly annotations?: Annotations;
}

/** A resource template as a client sees it. */
export interface ListedTemplate extends Listed {
  /** A URI template of RFC 6570. */
  readonly uriTemplate: string;
  /** The media type of what it stands for. */
  readonly mimeType?: string;
  /** Hints for clients on how to use it. */
  readonly annotations?: Annotations;
}

/** A prompt as a client sees it. */
export interface ListedPrompt extends Listed {
  /** What the prompt is filled in with. */
  readonly arguments?: readonly {
    /** The name for programs. */
    readonly name: string;
    /** The name for people. */
    readonly title?: string;
    /** What it is. */
    readonly description?: string;
    /** Whether the prompt cannot be had without it. */
    readonly required?: boolean;
  }[];
}
