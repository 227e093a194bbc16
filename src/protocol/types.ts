/**
 * The shapes of the wire that a user of this library touches.
 *
 * @see specification/2026-07-28/schema
 * @module
 */

/** Who a message is for or from. */
export type Role = "user" | "assistant";

/** Hints for a client on how to use or show something. `priority` is 0 (least) to 1 (most important). */
export interface Annotations {
  readonly audience?: readonly Role[];
  readonly priority?: number;
  /** ISO 8601, such as `2025-01-12T15:00:58Z`. */
  readonly lastModified?: string;
}

/** An image that stands for a server, a tool, a resource or a prompt. `src` is an https or data URI. */
export interface Icon {
  readonly src: string;
  readonly mimeType?: string;
  /** Such as `48x48`, or `any` for a scalable format. */
  readonly sizes?: readonly string[];
  readonly theme?: "light" | "dark";
}

/** Name and version of a piece of software. */
export interface Implementation {
  readonly name: string;
  readonly version: string;
  readonly title?: string;
  readonly description?: string;
  readonly websiteUrl?: string;
  readonly icons?: readonly Icon[];
}

/** Free metadata; keys follow the rules of specification/2026-07-28/basic (`_meta`). */
export type Meta = { readonly [key: string]: unknown };

/** Text for a model or a person. */
export interface TextContent {
  readonly type: "text";
  readonly text: string;
  readonly annotations?: Annotations;
  readonly _meta?: Meta;
}

/** An image, base64 encoded. */
export interface ImageContent {
  readonly type: "image";
  readonly data: string;
  readonly mimeType: string;
  readonly annotations?: Annotations;
  readonly _meta?: Meta;
}

/** A sound, base64 encoded. */
export interface AudioContent {
  readonly type: "audio";
  readonly data: string;
  readonly mimeType: string;
  readonly annotations?: Annotations;
  readonly _meta?: Meta;
}

/** A pointer to a resource that the client may read. */
export interface ResourceLink {
  readonly type: "resource_link";
  readonly uri: string;
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly mimeType?: string;
  /** Bytes. */
  readonly size?: number;
  readonly icons?: readonly Icon[];
  readonly annotations?: Annotations;
  readonly _meta?: Meta;
}

/** What a resource holds: `text`, or `blob` in base64. */
export interface ResourceContents {
  readonly uri: string;
  readonly mimeType?: string;
  readonly text?: string;
  readonly blob?: string;
  readonly _meta?: Meta;
}

/** A resource carried inside a message. */
export interface EmbeddedResource {
  readonly type: "resource";
  readonly resource: ResourceContents;
  readonly annotations?: Annotations;
  readonly _meta?: Meta;
}

/** One block of a tool's answer or of a prompt. */
export type Content = TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource;

/** Hints about what a tool does; clients treat them as untrusted. */
export interface ToolAnnotations {
  readonly title?: string;
  readonly readOnlyHint?: boolean;
  readonly destructiveHint?: boolean;
  readonly idempotentHint?: boolean;
  readonly openWorldHint?: boolean;
}

/** A tool's full result, for a handler that wants to say everything itself. */
export interface ToolResult {
  readonly content: readonly Content[];
  readonly structuredContent?: unknown;
  readonly isError?: boolean;
  readonly _meta?: Meta;
}

/** One message of a prompt. */
export interface PromptMessage {
  readonly role: Role;
  readonly content: Content;
}

/** What a client says it can do. */
export interface ClientCapabilities {
  readonly experimental?: Meta;
  readonly roots?: { readonly listChanged?: boolean };
  readonly sampling?: { readonly context?: Meta; readonly tools?: Meta };
  readonly elicitation?: { readonly form?: Meta; readonly url?: Meta };
  readonly extensions?: { readonly [id: string]: unknown };
  readonly [key: string]: unknown;
}

/** Severity of a log message, from RFC 5424. */
export type LogLevel = "debug" | "info" | "notice" | "warning" | "error" | "critical" | "alert" | "emergency";

/** The log levels, least severe first. */
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

/** A directory or file that the client offers. */
export interface Root {
  readonly uri: string;
  readonly name?: string;
  readonly _meta?: Meta;
}

/** A message of a conversation with the client's model. */
export interface SamplingMessage {
  readonly role: Role;
  readonly content: SamplingContent | readonly SamplingContent[];
}

/** What a sampling message holds. */
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

/** What to ask the client's model. @see specification/2026-07-28/client/sampling */
export interface SamplingRequest {
  readonly messages: readonly SamplingMessage[];
  /** Most tokens the client should sample. */
  readonly maxTokens: number;
  readonly systemPrompt?: string;
  /** 0 to 1 and up; the client may ignore it. */
  readonly temperature?: number;
  readonly stopSequences?: readonly string[];
  readonly includeContext?: "none" | "thisServer" | "allServers";
  readonly metadata?: Meta;
  readonly modelPreferences?: {
    readonly hints?: readonly { readonly name?: string }[];
    readonly costPriority?: number;
    readonly speedPriority?: number;
    readonly intelligencePriority?: number;
  };
  readonly tools?: readonly Meta[];
  readonly toolChoice?: { readonly mode?: "auto" | "required" | "none" };
}

/** What the client's model said. */
export interface SamplingResult extends SamplingMessage {
  readonly model: string;
  readonly stopReason?: string;
}
