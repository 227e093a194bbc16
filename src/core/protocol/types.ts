/**
 * Protocol types that users of this library see.
 *
 * @see specification/2026-07-28/schema
 */

/** Hints for a client on how to use or show content. */
export interface Annotations {
  /** Intended recipients of the content. */
  readonly audience?: readonly ("user" | "assistant")[];
  /** Importance, from 0 (least important) to 1 (most important). */
  readonly priority?: number;
  /** Time of the last change in ISO 8601, such as `2025-01-12T15:00:58Z`. */
  readonly lastModified?: string;
}

/** An icon of a server, a tool, a resource or a prompt. */
export interface Icon {
  /** An `https:` URL, or a `data:` URI of an image. */
  readonly src: string;
  /** Media type, such as `image/png`. */
  readonly mimeType?: string;
  /** Sizes such as `48x48`, or `any` for a scalable format. */
  readonly sizes?: readonly string[];
  /** The color theme for which the icon is designed. */
  readonly theme?: "light" | "dark";
}

/** Name, version and description of a client or server. */
export interface Implementation {
  /** Name for programs. */
  readonly name: string;
  /** Version, such as `1.0.0`. */
  readonly version: string;
  /** Display name for people. */
  readonly title?: string;
  /** Description in one or two sentences. */
  readonly description?: string;
  /** Page with more information. */
  readonly websiteUrl?: string;
  /** Icons of the program. */
  readonly icons?: readonly Icon[];
}

/** Metadata. The keys must follow the rules in specification/2026-07-28/basic (`_meta`). */
export type Meta = { readonly [key: string]: unknown };

/** Text for a model or a person. */
export interface TextContent {
  /** Kind of content block. */
  readonly type: "text";
  /** The text. */
  readonly text: string;
  /** Hints for clients. */
  readonly annotations?: Annotations;
  /** Metadata. */
  readonly _meta?: Meta;
}

/** An image, encoded in Base64. */
export interface ImageContent {
  /** Kind of content block. */
  readonly type: "image";
  /** Bytes in Base64. */
  readonly data: string;
  /** Media type, such as `image/png`. */
  readonly mimeType: string;
  /** Hints for clients. */
  readonly annotations?: Annotations;
  /** Metadata. */
  readonly _meta?: Meta;
}

/** Audio, encoded in Base64. */
export interface AudioContent {
  /** Kind of content block. */
  readonly type: "audio";
  /** Bytes in Base64. */
  readonly data: string;
  /** Media type, such as `audio/wav`. */
  readonly mimeType: string;
  /** Hints for clients. */
  readonly annotations?: Annotations;
  /** Metadata. */
  readonly _meta?: Meta;
}

/** A link to a resource that the client can read. */
export interface ResourceLink {
  /** Kind of content block. */
  readonly type: "resource_link";
  /** URI of the resource. */
  readonly uri: string;
  /** Name for programs. */
  readonly name: string;
  /** Display name for people. */
  readonly title?: string;
  /** Description in one or two sentences. */
  readonly description?: string;
  /** Media type, such as `text/plain`. */
  readonly mimeType?: string;
  /** Size in bytes. */
  readonly size?: number;
  /** Icons of the resource. */
  readonly icons?: readonly Icon[];
  /** Hints for clients. */
  readonly annotations?: Annotations;
  /** Metadata. */
  readonly _meta?: Meta;
}

/** Contents of a resource: `text`, or `blob` in Base64. */
export interface ResourceContents {
  /** URI of the resource. */
  readonly uri: string;
  /** Media type, such as `text/plain`. */
  readonly mimeType?: string;
  /** Text contents. */
  readonly text?: string;
  /** Binary contents in Base64. */
  readonly blob?: string;
  /** Metadata. */
  readonly _meta?: Meta;
}

/** A resource embedded in a message. */
export interface EmbeddedResource {
  /** Kind of content block. */
  readonly type: "resource";
  /** Contents of the resource. */
  readonly resource: ResourceContents;
  /** Hints for clients. */
  readonly annotations?: Annotations;
  /** Metadata. */
  readonly _meta?: Meta;
}

/** One content block of a tool result or a prompt. */
export type Content = TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource;

/** Hints about what a tool does. Clients must treat these hints as untrusted. */
export interface ToolAnnotations {
  /** Display name for people. */
  readonly title?: string;
  /** The tool changes no state. */
  readonly readOnlyHint?: boolean;
  /** The tool may delete or overwrite data. Meaningful only if `readOnlyHint` is not `true`. */
  readonly destructiveHint?: boolean;
  /** Repeating a call with the same arguments has no further effect. */
  readonly idempotentHint?: boolean;
  /** The tool interacts with the outside world, such as the web. */
  readonly openWorldHint?: boolean;
}

/** The full result of a tool, for a handler that sets every field itself. */
export interface ToolResult {
  /** Content blocks. */
  readonly content: readonly Content[];
  /** The result as a JSON value, for programs. */
  readonly structuredContent?: unknown;
  /** Whether the tool failed. */
  readonly isError?: boolean;
  /** Metadata. */
  readonly _meta?: Meta;
}

/** One message of a prompt. */
export interface PromptMessage {
  /** Sender of the message. */
  readonly role: "user" | "assistant";
  /** Content block. */
  readonly content: Content;
}

/** Capabilities that a client declares. */
export interface ClientCapabilities {
  /** Capabilities that the specification does not define, keyed by name. */
  readonly experimental?: Meta;
  /** The client lists the directories and files on which servers can work (roots). */
  readonly roots?: { readonly listChanged?: boolean };
  /** Servers can send requests to the client's model (sampling). */
  readonly sampling?: { readonly context?: Meta; readonly tools?: Meta };
  /** The client can ask its user for input (elicitation). An empty object stands for `form`. */
  readonly elicitation?: { readonly form?: Meta; readonly url?: Meta };
  /** Settings of the extensions that the client supports, keyed by id. */
  readonly extensions?: { readonly [id: string]: unknown };
  /** Other capabilities. */
  readonly [key: string]: unknown;
}

/** Severity of a log message, as in RFC 5424. */
export type LogLevel = "debug" | "info" | "notice" | "warning" | "error" | "critical" | "alert" | "emergency";

/** Log levels from least to most severe. */
export const LOG_LEVELS: readonly LogLevel[] = [
  "debug",
  "info",
  "notice",
  "warning",
  "error",
  "critical",
  "alert",
  "emergency",
];

/** A directory or file that the client offers to servers. */
export interface Root {
  /** URI, usually `file:`. */
  readonly uri: string;
  /** Display name for people. */
  readonly name?: string;
  /** Metadata. */
  readonly _meta?: Meta;
}

/** A message in a conversation with the client's model. */
export interface SamplingMessage {
  /** Sender of the message. */
  readonly role: "user" | "assistant";
  /** Content blocks. */
  readonly content: SamplingContent | readonly SamplingContent[];
}

/** Content of a sampling message. */
export type SamplingContent =
  | TextContent
  | ImageContent
  | AudioContent
  | {
    readonly type: "tool_use";
    readonly id: string;
    readonly name: string;
    readonly input: Meta;
  }
  | {
    readonly type: "tool_result";
    readonly toolUseId: string;
    readonly content: readonly Content[];
    readonly structuredContent?: unknown;
    readonly isError?: boolean;
  };

/**
 * A sampling request to the client's model.
 *
 * @see specification/2026-07-28/client/sampling
 */
export interface SamplingRequest {
  /** Conversation so far. */
  readonly messages: readonly SamplingMessage[];
  /** Maximum number of tokens to sample. */
  readonly maxTokens: number;
  /** System prompt. */
  readonly systemPrompt?: string;
  /** Sampling temperature. The client may ignore this value. */
  readonly temperature?: number;
  /** Texts at which the model stops generating. */
  readonly stopSequences?: readonly string[];
  /** The servers whose context the client should add to the prompt. Values except `none` are deprecated. */
  readonly includeContext?: "none" | "thisServer" | "allServers";
  /** Metadata for the model's provider. */
  readonly metadata?: Meta;
  /** The server's preferences for a model. The client chooses the model. */
  readonly modelPreferences?: {
    readonly hints?: readonly { readonly name?: string }[];
    readonly costPriority?: number;
    readonly speedPriority?: number;
    readonly intelligencePriority?: number;
  };
  /** Tools that the model may use. */
  readonly tools?: readonly Meta[];
  /** Whether the model must use a tool. */
  readonly toolChoice?: { readonly mode?: "auto" | "required" | "none" };
}

/** The response from the client's model. */
export interface SamplingResult extends SamplingMessage {
  /** Name of the model. */
  readonly model: string;
  /** The reason why the model stopped, such as `endTurn`. */
  readonly stopReason?: string;
}
