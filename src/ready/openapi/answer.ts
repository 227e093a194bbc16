/**
 * Turns the responses of an API into results of tools and into contents of resources.
 */
import { toBase64 } from "../../core/kit/base64.ts";
import { readEvents } from "../../core/kit/event_stream.ts";
import { mayRound, parseExactly } from "../../core/kit/exact_json.ts";
import { isObject } from "../../core/kit/json.ts";
import { shorten } from "../../core/kit/shorten.ts";
import { type Content, type Context, media, ToolError, type ToolResult } from "../../library.ts";
import { isJsonType } from "../http_body.ts";
import { decodeText, readMediaType } from "../media_type.ts";

export interface Answer {
  readonly response: Response;
  /** The URL of the request, without its query. */
  readonly url: string;
  /** Texts that must not appear in results. */
  readonly secrets: readonly string[];
  readonly ctx: Context;
  /** Compares the JSON of a result with the schema of the document. */
  readonly check?: CheckJson;
}

/** Returns what is wrong with a JSON value, or `undefined` if it matches. */
export interface CheckJson {
  readonly findProblem: (value: unknown) => string | undefined | Promise<string | undefined>;
  /** Whether a value that does not match is an error. */
  readonly isStrict: boolean;
}

/** Maximum length of the body of an error in a result, in characters. */
const MAX_ERROR = 10_000;
/** Minimum length of a credential that is removed from texts. Shorter texts occur by chance. */
const MIN_SECRET = 8;
const MASK = "[credential]";
/** Headers with the number of all items of a list. */
const TOTALS = ["x-total-count", "x-total", "total-count", "x-pagination-total-count", "x-wp-total"];

/**
 * Converts a response to the result of a tool.
 *
 * @throws {ToolError} if the body is too large or does not end in time, or does not match a strict schema.
 */
export async function toResult(answer: Answer): Promise<ToolResult> {
  const { response, url, check } = answer;
  const hide = toHider(answer.secrets);
  const facts = readFacts(response, url, hide);
  const mediaType = hide(readMediaType(response));
  const _meta = Object.keys(facts.meta).length ? { _meta: facts.meta } : {};
  const toTexts = (...texts: readonly (string | undefined)[]) =>
    [...texts, ...facts.lines].flatMap((text): Content[] => text ? [{ type: "text", text }] : []);
  if (!response.ok) {
    const text = decodeText(await readBytes(response)) ?? "";
    const head = `${new URL(url).host} responded with ${hide(toStatus(response))}.`;
    return { content: toTexts(`${head}\n${shorten(hide(text), MAX_ERROR)}`.trim()), isError: true, ..._meta };
  }
  if (STREAMS.test(mediaType)) {
    const lines = await readStream(mediaType, answer);
    return { content: toTexts(...lines.map(hide)), ..._meta };
  }
  const bytes = await readBytes(response);
  const found = decodeText(bytes);
  if (found === undefined) {
    refuseStrict(check, `it has the type ${mediaType || "application/octet-stream"}`);
    const file = media(bytes, mediaType || "application/octet-stream", { uri: url });
    return { content: [file, ...toTexts()], ..._meta };
  }
  const text = hide(found);
  if (!bytes.length) {
    refuseStrict(check, "it is empty");
    return { content: toTexts(`Responded with ${hide(toStatus(response))}.`), ..._meta };
  }
  const value = isJsonType(mediaType) ? parse(text) : undefined;
  if (value === undefined) refuseStrict(check, "it is not JSON");
  const problem = value === undefined ? undefined : await check?.findProblem(value);
  if (problem !== undefined) {
    const notes = mayRound(text) ? " (whole numbers beyond 2^53 are texts)" : "";
    refuseStrict(check, `it does not match the document: ${problem}${notes}`);
  }
  const isStructured = problem === undefined && (check?.isStrict ? value !== undefined : isObject(value));
  return { content: toTexts(text), ...isStructured ? { structuredContent: value } : {}, ..._meta };
}

function refuseStrict(check: CheckJson | undefined, state: string): void {
  if (!check?.isStrict) return;
  throw new ToolError(`Cannot use the response: ${state}; use output: "check" to get it as text`);
}

/**
 * Returns `undefined` if the resource does not exist.
 *
 * @throws {ToolError} if the API responds with an error, or the body is too large or does not end in time.
 */
export async function toContents(answer: Answer, uri: string) {
  const { response } = answer;
  if (response.status === 404 || response.status === 410) {
    await response.body?.cancel();
    return;
  }
  const hide = toHider(answer.secrets);
  const bytes = await readBytes(response);
  const text = decodeText(bytes);
  if (!response.ok) {
    const body = shorten(hide(text ?? ""), MAX_ERROR);
    throw new ToolError(`Cannot read ${uri}: the API responded with ${hide(toStatus(response))}. ${body}`.trim());
  }
  const mimeType = hide(readMediaType(response)) || undefined;
  return text === undefined ? { uri, mimeType, blob: toBase64(bytes) } : { uri, mimeType, text: hide(text) };
}

async function readBytes(response: Response): Promise<Uint8Array<ArrayBuffer>> {
  return new Uint8Array(await response.arrayBuffer());
}

function parse(text: string): unknown {
  try {
    return parseExactly(text, String);
  } catch {
    // The response is not JSON in spite of its media type, and is returned as text.
    return undefined;
  }
}

function toStatus({ status, statusText }: Response): string {
  return statusText ? `${status} ${statusText}` : String(status);
}

/** Returns a function that replaces credentials in a text, also in the escaped form of JSON. */
function toHider(secrets: readonly string[]): (text: string) => string {
  const long = secrets.filter(({ length }) => length >= MIN_SECRET);
  return (text) =>
    long.reduce((hidden, secret) => {
      const plain = hidden.replaceAll(secret, MASK);
      const isEscaped = plain.includes("\\u") ||
        ['"', "\\", "/"].some((each) => secret.includes(each) && plain.includes(`\\${each}`));
      return isEscaped ? plain.replace(toEscapedPattern(secret), MASK) : plain;
    }, text);
}

/** Returns a pattern that matches a text of which JSON has escaped any characters. */
function toEscapedPattern(text: string): RegExp {
  const characters = Array.from({ length: text.length }, (_, i) => {
    const code = text.charCodeAt(i).toString(16).padStart(4, "0");
    const anyCase = code.replace(/[a-f]/g, (digit) => `[${digit}${digit.toUpperCase()}]`);
    return `(?:\\\\?\\u${code}|\\\\u${anyCase})`;
  });
  return new RegExp(characters.join(""), "g");
}

/** Links and totals from the headers of a response, as metadata and as lines for the model. */
interface Facts {
  readonly meta: Readonly<Record<string, unknown>>;
  readonly lines: readonly string[];
}

function readFacts({ headers: given, status }: Response, url: string, hide: (text: string) => string): Facts {
  // Reading all headers once is faster than searching each of them.
  const headers = new Map(given);
  const links = readLinks(hide(headers.get("link") ?? ""), url);
  const [, ofRange] = /\/(\d+)$/.exec(headers.get("content-range") ?? "") ?? [];
  const total = TOTALS.map((name) => headers.get(name)).find((value) => value && /^\d+$/.test(value)) ?? ofRange;
  const location = status === 201 || status === 202 ? headers.get("location") : undefined;
  const retry = headers.get("retry-after");
  const lines = [
    links.next && `Next page: ${links.next}`,
    total && `Total: ${total}`,
    location && `Location: ${hide(location)}`,
    retry && `Retry after: ${hide(retry)}`,
  ];
  return {
    meta: {
      ...Object.keys(links).length ? { link: links } : {},
      ...total ? { total: Number(total) } : {},
    },
    lines: lines.filter((line) => typeof line === "string" && line !== "").map((line) => shorten(String(line), 2000)),
  };
}

/** Reads a `Link` header: the targets by their relation. Targets on the same origin are paths. */
function readLinks(header: string, url: string): Readonly<Record<string, string>> {
  const links = [...header.slice(0, 16_384).matchAll(/<([^<>]*)>([^<]*)/g)].flatMap(([, target, parameters]) => {
    const [, quoted, plain] = /;\s*rel\s*=\s*(?:"([^"]*)"|([^\s;,]+))/i.exec(parameters) ?? [];
    if (!URL.canParse(target, url)) return [];
    const found = new URL(target, url);
    const shown = found.origin === new URL(url).origin ? found.pathname + found.search : found.href;
    return (quoted ?? plain ?? "").split(/\s+/).filter(Boolean).slice(0, 5).map((rel) => [rel, shown] as const);
  });
  return Object.fromEntries(links.slice(0, 20));
}

/** The media types of streams: of events, and of lines. */
const STREAMS = /^(text\/event-stream|application\/(x-)?(ndjson|jsonl|jsonlines|json-seq|stream\+json))$/;

/** Reads a stream of events or of lines up to its end or to a limit, with progress. */
async function readStream(mediaType: string, { response, ctx }: Answer): Promise<readonly string[]> {
  const isEvents = mediaType === "text/event-stream";
  const lines: string[] = [];
  let next = 1;
  try {
    for await (const line of isEvents ? readEventData(response) : readLines(response)) {
      lines.push(line);
      if (lines.length < next) continue;
      // The gaps grow, because a response of 1 MB can have 500,000 lines.
      next = Math.ceil(lines.length * 1.1);
      void ctx.progress(lines.length);
    }
  } catch (error) {
    if (!(error instanceof ToolError) || !lines.length) throw error;
    return [lines.join("\n"), `The response is incomplete. ${error.message}`];
  }
  return [lines.join("\n") || "The response has no events."];
}

async function* readEventData(response: Response): AsyncGenerator<string> {
  for await (const { data } of readEvents(response)) if (data !== undefined) yield data;
}

async function* readLines(response: Response): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of response.body ?? []) {
    // In JSON text sequences, a record begins with a separator. Split only the new text, because a line may arrive in
    // many small parts.
    const lines = decoder.decode(chunk, { stream: true }).replaceAll("\x1e", "\n").split("\n");
    lines[0] = rest + lines[0];
    rest = lines.pop() ?? "";
    yield* lines.map((line) => line.trim()).filter(Boolean);
  }
  if (rest.trim()) yield rest.trim();
}
