/**
 * Finds the provider without a scheme that serves a URI, by the lists of the providers for the caller. Loaded when a
 * server with such providers gets a request for a URI that no other handler serves.
 */
import { deadline } from "../../core/kit/deadline.ts";
import { isMcpError, isToolError, quote } from "../../core/protocol/errors.ts";
import { isObject, type Params } from "../../core/protocol/jsonrpc.ts";
import { parseTemplate, type UriTemplate } from "../../core/protocol/uri_template.ts";
import type { Call } from "../call/call.ts";
import { type BoundAllow, isAllowed } from "../visibility/feature.ts";
import type { FeatureParts, MapError } from "../visibility/feature_parts.ts";
import { attempt } from "./attempt.ts";
import { MAX_NAME } from "./listed_entry.ts";
import { Outages } from "./outages.ts";
import type { Listing, Owns } from "./source_list.ts";

export interface Asked {
  /** A URI, or the text of a template. */
  readonly uri: string;
  readonly call: Call;
  readonly core: FeatureParts;
  /** Whether a client gets the error, with an id that the observer must get too. */
  readonly isRequest: boolean;
}

interface Searched {
  readonly key: string;
  /** Distinguishes a provider from other providers of its scheme. */
  readonly id?: string;
  readonly allow?: BoundAllow;
  readonly mapError?: MapError;
  readonly listMs?: number;
  readonly list?: Listing;
  readonly templates?: Listing;
  readonly owns?: Owns;
}

interface Owner extends Searched {
  /** Returns `undefined` if the URI has no prefix of the provider. */
  readonly match: (uri: string) => unknown;
}

/**
 * Returns the provider that owns a URI, else the provider that lists the URI for the caller, else the provider with a
 * matching template, else all providers with a matching prefix. A provider whose list fails is skipped, after its first
 * failure has been reported. Its error is thrown if no other provider lists the URI or has a matching prefix. Reads no
 * list if only one provider can serve the URI.
 */
export async function findOwners<P extends Owner>(open: readonly P[], asked: Asked): Promise<readonly P[]> {
  const { uri } = asked;
  const exact = open.find(({ owns }) => owns?.(uri, "list"));
  if (exact) return await findAllowed([exact], asked);
  const possible = open.filter(({ list, templates, match }) => list || templates || match(uri) !== undefined);
  const providers = await findAllowed(possible, asked);
  const near = providers.filter(({ match }) => match(uri) !== undefined);
  if (near.length && providers.length === 1) return near;
  const search = new Search(asked);
  const listed = await search.find(providers, "list", (entry) => entry.uri === uri);
  // A template must not get a URI that belongs to a provider whose list has failed.
  if (!listed && !near.length) await search.end();
  const ofTemplate = listed ? undefined : open.find(({ owns }) => owns?.(uri, "templates"));
  if (ofTemplate) return await findAllowed([ofTemplate], asked);
  const owner = listed ?? await search.find(providers, "templates", (entry) => {
    return readTemplate(entry).template?.match(uri) !== undefined;
  });
  if (owner) return [owner.provider];
  if (!near.length) await search.end();
  return near;
}

/** Finds the first template with a text, else the first template that matches the text as a URI. */
export async function findTemplate<P extends Searched>(
  all: readonly P[],
  asked: Asked,
): Promise<{ readonly provider: P; readonly template: UriTemplate } | undefined> {
  const { uri } = asked;
  const owner = all.find(({ owns }) => owns?.(uri, "templates"));
  const providers = await findAllowed(owner ? [owner] : all, asked, false);
  const search = new Search(asked);
  const found = await search.find(providers, "templates", (entry) => readTemplate(entry).text === uri) ??
    await search.find(providers, "templates", (entry) => readTemplate(entry).template?.match(uri) !== undefined);
  const template = found && readTemplate(found.entry).template;
  if (found && template) return { provider: found.provider, template };
  await search.end();
}

/** `allow` decides about the URI, or about the provider as a whole. */
async function findAllowed<P extends Searched>(
  providers: readonly P[],
  { uri, call, core }: Asked,
  isOfUri = true,
): Promise<readonly P[]> {
  const decide = async ({ allow }: P) =>
    await isAllowed(allow && ((call) => isOfUri ? allow(call, uri) : allow(call)), call, core);
  const allowed = await Promise.all(providers.map(decide));
  return providers.filter((_, at) => allowed[at]);
}

/** Maximum number of pages of a list, so that a list without an end does not occupy a call. */
const MAX_PAGES = 1000;

/** Searches the lists of providers for an entry, one provider and one page after the other. */
class Search {
  readonly #asked: Asked;
  /** Throws the first error of a list. */
  #refuse?: () => Promise<never>;

  constructor(asked: Asked) {
    this.#asked = asked;
  }

  async find<P extends Searched>(
    providers: readonly P[],
    list: "list" | "templates",
    test: (entry: Params) => boolean,
  ): Promise<{ readonly provider: P; readonly entry: Params } | undefined> {
    const { call, core, isRequest } = this.#asked;
    const outages = Outages.of(core, call);
    for (const provider of providers) {
      const { key: subject, id = subject, mapError, listMs, [list]: listing } = provider;
      // Without a limit, a notification would wait forever, because only calls have a timeout.
      const ms = listMs ?? core.limits.calls.timeoutMs;
      const option = listMs === undefined ? "calls.timeoutMs" : "listMs";
      let isLate = false;
      const onTimeout = () => {
        isLate = true;
        throw new DOMException(
          `Cannot search the ${list} of ${quote(subject)}: it took longer than ${ms} ms (${option})`,
          "TimeoutError",
        );
      };
      // A subscription may end while its lists are searched.
      if (call.ended) return;
      if (!listing) continue;
      const source = `${list === "list" ? "resources" : "resourceTemplates"} ${id}`;
      try {
        const finding = this.#findIn(listing, { test, isOver: () => isLate || call.ended });
        const entry = await deadline(finding, { ms, clock: core.ticker, onTimeout });
        if (call.ended) throw call.endError;
        if (entry) return { provider, entry };
        outages.end(source);
      } catch (error) {
        if (call.ended) throw error;
        const fail = () => Promise.reject(error);
        const refuse = () => attempt({ core, call, subject, mapError }, fail);
        // `attempt` does not report errors that are meant for the client.
        if (isMcpError(error) || isToolError(error) || !outages.begin(source)) {
          this.#refuse ??= isRequest ? refuse : fail;
        } else {
          const reported: unknown = await refuse().catch((error) => error);
          this.#refuse ??= () => Promise.reject(reported);
        }
      }
    }
  }

  /** Throws the first error of a list, if a list has failed, because that list may contain the entry. */
  async end(): Promise<void> {
    await this.#refuse?.();
  }

  async #findIn({ page }: Listing, { test, isOver }: Wanted): Promise<Params | undefined> {
    let cursor: string | undefined;
    for (let count = 0; count < MAX_PAGES; count++) {
      if (isOver()) return;
      // An array has only one page here.
      const { items, nextCursor } = await page(this.#asked.call, undefined, cursor, Infinity);
      const isFound = (item: unknown): item is Params => isObject(item) && typeof item.name === "string" && test(item);
      const found = items.find(isFound);
      if (found || nextCursor === undefined) return found;
      if (nextCursor === cursor) break;
      cursor = nextCursor;
    }
    throw new TypeError(
      `Cannot search a list: it has the same nextCursor twice, or more than ${MAX_PAGES} pages; omit nextCursor on the last page`,
    );
  }
}

interface Wanted {
  readonly test: (entry: Params) => boolean;
  /** Whether nobody waits for the entry any more, so that no further page is listed. */
  readonly isOver: () => boolean;
}

interface Read {
  readonly text: unknown;
  /** `undefined` if no URI can match the template. */
  readonly template?: UriTemplate;
  readonly problem?: string;
}

/** Most providers list the same entries each time. */
const known = new WeakMap<object, Read>();

/** Reads the template of an entry. */
export function readTemplate(entry: Params): Read {
  const { uriTemplate: text } = entry;
  const before = known.get(entry);
  if (before && before.text === text) return before;
  const read = { text, ...parse(text) };
  known.set(entry, read);
  return read;
}

function parse(text: unknown): Omit<Read, "text"> {
  if (typeof text !== "string") return {};
  if (text.length > MAX_NAME) return { problem: `it has more than ${MAX_NAME} characters; shorten it` };
  if (!/^[a-z][a-z\d+.-]*:/i.test(text)) {
    return { problem: "it does not begin with a scheme; use a template such as note://{id}" };
  }
  try {
    return { template: parseTemplate(text) };
  } catch (error) {
    return { problem: String(Object(error).message) };
  }
}

/** Returns the entries without those whose template cannot be served. Reports the first of these. */
export function takeServed(
  items: readonly unknown[],
  place: string,
  report: (error: Error) => void,
): readonly unknown[] {
  const odd = items.filter((item) => isObject(item) && readTemplate(item).problem !== undefined);
  const [first] = odd;
  if (!isObject(first)) return items;
  const more = odd.length > 1 ? `; other templates that cannot be served: ${odd.length - 1}` : "";
  const { text, problem } = readTemplate(first);
  report(new TypeError(`Cannot list template ${quote(text)} of ${place}: ${problem}${more}`));
  return items.filter((item) => !odd.includes(item));
}
