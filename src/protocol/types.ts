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
  /** Whom it is for. */
  readonly audience?: readonly Role[];
  /** 0 (least) to 1 (most important). */
  readonly priority?: number;
  /** ISO 8601, such as `2025-01-12T15:00:58Z`. */
  readonly lastModified?: string;
}

/** An image that stands for a server, a tool, a resource or a prompt. `src` is an https or data URI. */
export interface Icon {
  /** An https or data URI. */
  readonly src: string;
  /** Its media type, such as `text/plain`. */
  readonly mimeType?: string;
  /** Such as `48x48`, or `any` for a scalable format. */
  readonly sizes?: readonly string[];
  /** The background it is made for. */
  readonly theme?: "light" | "dark";
}

/** Name and version of a piece of software. */
export interface Implementation {
  /** The name for programs. */
  readonly name: string;
  /** Its version, such as `1.0.0`. */
  readonly version: string;
  /** The name for people. */
  readonly title?: string;
  /** What it is, in a sentence or two. */
  readonly description?: string;
  /** Where people read more. */
  readonly websiteUrl?: string;
  /** Images that stand for it. */
  readonly icons?: readonly Icon[];
}

/** Free metadata; keys follow the rules of specification/2026-07-28/basic (`_meta`). */
export type Meta = { readonly [key: string]: unknown };

/** Text for a model or a person. */
export interface TextContent {
  /** Which kind it is. */
  readonly type: "text";
  /** The text. */
  readonly text: string;
  /** Hints for clients on how to use it. */
  readonly annotations?: Annotations;
  /** Free metadata. */
  readonly _meta?: Meta;
}

/** An image, base64 encoded. */
export interface ImageContent {
  /** Which kind it is. */
  readonly type: "image";
  /** The bytes in base64. */
  readonly data: string;
  /** Its media type, such as `text/plain`. */
  readonly mimeType: string;
  /** Hints for clients on how to use it. */
  readonly annotations?: Annotations;
  /** Free metadata. */
  readonly _meta?: Meta;
}

/** A sound, base64 encoded. */
export interface AudioContent {
  /** Which kind it is. */
  readonly type: "audio";
  /** The bytes in base64. */
  readonly data: string;
  /** Its media type, such as `text/plain`. */
  readonly mimeType: string;
  /** Hints for clients on how to use it. */
  readonly annotations?: Annotations;
  /** Free metadata. */
  readonly _meta?: Meta;
}

/** A pointer to a resource that the client may read. */
export interface ResourceLink {
  /** Which kind it is. */
  readonly type: "resource_link";
  /** Its URI. */
  readonly uri: string;
  /** The name for programs. */
  readonly name: string;
  /** The name for people. */
  readonly title?: string;
  /** What it is, in a sentence or two. */
  readonly description?: string;
  /** Its media type, such as `text/plain`. */
  readonly mimeType?: string;
  /** Bytes. */
  readonly size?: number;
  /** Images that stand for it. */
  readonly icons?: readonly Icon[];
  /** Hints for clients on how to use it. */
  readonly annotations?: Annotations;
  /** Free metadata. */
  readonly _meta?: Meta;
}

/** What a resource holds: `text`, or `blob` in base64. */
export interface ResourceContents {
  /** Its URI. */
  readonly uri: string;
  /** Its media type, such as `text/plain`. */
  readonly mimeType?: string;
  /** The text. */
  readonly text?: string;
  /** The bytes in base64. */
  readonly blob?: string;
  /** Free metadata. */
  readonly _meta?: Meta;
}

/** A resource carried inside a message. */
export interface EmbeddedResource {
  /** Which kind it is. */
  readonly type: "resource";
  /** What it holds. */
  readonly resource: ResourceContents;
  /** Hints for clients on how to use it. */
  readonly annotations?: Annotations;
  /** Free metadata. */
  readonly _meta?: Meta;
}

/** One block of a tool's answer or of a prompt. */
export type Content = TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource;

/** Hints about what a tool does; clients treat them as untrusted. */
export interface ToolAnnotations {
  /** The name for people. */
  readonly title?: string;
  /** It changes nothing. */
  readonly readOnlyHint?: boolean;
  /** It may destroy something; only told of tools that change something. */
  readonly destructiveHint?: boolean;
  /** Calling it again changes nothing more. */
  readonly idempotentHint?: boolean;
  /** It deals with a world outside, such as the web. */
  readonly openWorldHint?: boolean;
}

/** A tool's full result, for a handler that wants to say everything itself. */
export interface ToolResult {
  /** The content blocks. */
  readonly content: readonly Content[];
  /** The same as JSON, for programs. */
  readonly structuredContent?: unknown;
  /** Whether the tool failed. */
  readonly isError?: boolean;
  /** Free metadata. */
  readonly _meta?: Meta;
}

/** One message of a prompt. */
export interface PromptMessage {
  /** Who says it. */
  readonly role: Role;
  /** The content blocks. */
  readonly content: Content;
}

/** What a client says it can do. */
export interface ClientCapabilities {
  /** What no specification describes. */
  readonly experimental?: Meta;
  /** Directories and files it offers. */
  readonly roots?: { readonly listChanged?: boolean };
  /** Its model can be asked. */
  readonly sampling?: { readonly context?: Meta; readonly tools?: Meta };
  /** Its user can be asked; `form` if neither is named. */
  readonly elicitation?: { readonly form?: Meta; readonly url?: Meta };
  /** Extensions it speaks, by id. */
  readonly extensions?: { readonly [id: string]: unknown };
  /** Further ones. */
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
  /** Its URI. */
  readonly uri: string;
  /** The name for programs. */
  readonly name?: string;
  /** Free metadata. */
  readonly _meta?: Meta;
}

/** A message of a conversation with the client's model. */
export interface SamplingMessage {
  /** Who says it. */
  readonly role: Role;
  /** The content blocks. */
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
  /** The conversation so far. */
  readonly messages: readonly SamplingMessage[];
  /** Most tokens the client should sample. */
  readonly maxTokens: number;
  /** What to tell the model first. */
  readonly systemPrompt?: string;
  /** 0 to 1 and up; the client may ignore it. */
  readonly temperature?: number;
  /** Texts at which to stop. */
  readonly stopSequences?: readonly string[];
  /** Whose context to add; deprecated but for `none`. Not sent to clients that did not declare `sampling.context`. */
  readonly includeContext?: "none" | "thisServer" | "allServers";
  /** For the provider of the model. */
  readonly metadata?: Meta;
  /** Which model would suit; the client chooses. */
  readonly modelPreferences?: {
    readonly hints?: readonly { readonly name?: string }[];
    readonly costPriority?: number;
    readonly speedPriority?: number;
    readonly intelligencePriority?: number;
  };
  /** Tools that the model may use. */
  readonly tools?: readonly Meta[];
  /** Whether it must use one. */
  readonly toolChoice?: { readonly mode?: "auto" | "required" | "none" };
}

/** What the client's model said. */
export interface SamplingResult extends SamplingMessage {
  /** The model that answered. */
  readonly model: string;
  /** Why it stopped, such as `endTurn`. */
  readonly stopReason?: string;
}
