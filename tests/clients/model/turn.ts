// What a request to a model contains, and what a model answers, in the terms that all APIs share.

/** A tool that a client offers to the model. */
export interface OfferedTool {
  /** The name by which the model calls the tool. */
  readonly name: string;
  /** The namespace of the tool, in APIs that have namespaces. */
  readonly namespace?: string;
  readonly description: string;
  /** The JSON schema of the arguments. */
  readonly input: unknown;
}

/** What the model sees of the result of a call. */
export interface Seen {
  /** All texts, joined with line breaks. */
  readonly text: string;
  /** The number of images that the model can look at. An image in Base64 inside a text does not count. */
  readonly images: number;
  /** The number of other files, such as PDF documents. */
  readonly files: number;
  /** Whether the result is marked as an error. */
  readonly isError: boolean;
}

/** A request to the model. */
export interface Turn {
  readonly tools: readonly OfferedTool[];
  /** All texts of the request except the definitions of tools: the system prompt, and the messages. */
  readonly text: string;
  readonly isStreaming: boolean;
  /** Returns what the model sees of the result of a call; `undefined` if the request has no result of this call. */
  toSeen(callId: string): Seen | undefined;
}

/** A call of a tool. */
export interface ModelCall {
  readonly id: string;
  readonly tool: OfferedTool;
  readonly args: object;
}

/** The answer of the model: a call, or a text that ends the conversation. */
export type Reply = { readonly call: ModelCall } | { readonly text: string };

/** An API of a model. */
export interface ModelApi {
  /** Reads a request. `undefined` if the path is not part of this API. */
  readTurn(path: string, body: Readonly<Record<string, unknown>>): Turn | undefined;
  /** Writes an answer. */
  toResponse(reply: Reply, turn: Turn, body: Readonly<Record<string, unknown>>): Response;
}

/** Returns a list, or an empty list if the value is not a list. */
// deno-lint-ignore no-explicit-any -- the requests are JSON of other programs; a missing member is `undefined`
export function toList(value: unknown): readonly any[] {
  return Array.isArray(value) ? value : [];
}

/** Collects what a model can read in a part of a request, in any API. */
export function toSeen(parts: unknown, { isError = false } = {}): Seen {
  const texts: string[] = [];
  const counts = { images: 0, files: 0 };
  collect(parts, texts, counts);
  return { text: texts.join("\n"), ...counts, isError };
}

/** Members of messages that the model does not read. */
const UNREAD = ["id", "tool_use_id", "tool_call_id", "call_id", "type", "role", "cache_control", "name", "status"];

function collect(value: unknown, texts: string[], counts: { images: number; files: number }): void {
  if (typeof value === "string") return void texts.push(value);
  if (typeof value !== "object" || value === null) return;
  if (Array.isArray(value)) return value.forEach((each) => collect(each, texts, counts));
  const members = new Map(Object.entries(value));
  const type = String(members.get("type"));
  const inline = Object(members.get("inlineData") ?? members.get("inline_data"));
  const mediaType = String(inline.mimeType ?? inline.mime_type ?? "");
  const isImage = ["image", "image_url", "input_image"].includes(type) ||
    members.has("format") && members.has("source");
  if (isImage || mediaType.startsWith("image/")) counts.images++;
  else if (["document", "file", "input_file"].includes(type) || mediaType) counts.files++;
  else for (const [name, member] of members) if (!UNREAD.includes(name)) collect(member, texts, counts);
}

/** Returns a response with server-sent events. An event without a name has only data. */
export function toEventStream(events: readonly { readonly event?: string; readonly data: unknown }[]): Response {
  const lines = events.map(({ event, data }) =>
    `${event === undefined ? "" : `event: ${event}\n`}data: ${
      typeof data === "string" ? data : JSON.stringify(data)
    }\n\n`
  );
  return new Response(lines.join(""), { headers: { "content-type": "text/event-stream" } });
}
