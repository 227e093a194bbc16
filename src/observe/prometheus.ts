/**
 * Metrics of a server, in the text format of Prometheus.
 *
 * @see https://prometheus.io/docs/instrumenting/exposition_formats/
 */
import { BoundedMap } from "../core/kit/bounded_map.ts";
import { checkOptions, type KnownOptions } from "../core/known_options.ts";
import type { CallEvent, Observer, SessionEvent } from "../server/call/observer.ts";
import {
  addOutcome,
  type Attributes,
  BUCKETS,
  describeOperation,
  describeSession,
  SERVER_DURATION,
  SESSION_DURATION,
} from "./operation.ts";
import { SessionTimes } from "./session_times.ts";

/** Options of {@linkcode prometheus}. */
export interface PrometheusOptions {
  /** Path of the endpoint. Defaults to `/metrics`. */
  readonly path?: string;
  /**
   * Token of at least 16 characters that scrapers must send as `Authorization: Bearer …`. Without a token, any client
   * that can reach the endpoint can read the metrics. If the option is present, but `undefined` or empty, such as an
   * environment variable that is not set, the server does not start, and the endpoint responds with HTTP status 503.
   */
  readonly token?: string;
  /**
   * Whether labels contain the names of tools and prompts, including handlers that `allow` hides from some callers.
   * Defaults to `true` if there is a `token`, otherwise to `false`.
   */
  readonly handlers?: boolean;
}

/** An observer that counts calls and sessions, and the endpoint that returns the metrics. */
// Without the event `start`, because the `start` function of a route has another parameter.
export interface Prometheus extends Omit<Observer, "start"> {
  /** Path of the endpoint. */
  readonly path: string;
  /** Whether the endpoint gets requests for all hosts, because a scraper uses the address of the process. */
  readonly public: boolean;
  /** Responds to a scraper with the metrics as text. */
  readonly fetch: (request: Request) => Response;
  /** Returns the metrics as text. */
  text(): string;
}

const OPTIONS: KnownOptions<keyof PrometheusOptions> = {
  names: {
    path: { test: (path) => typeof path === "string" && path[0] === "/", remedy: "use a path such as /metrics" },
    token: {
      findProblem: (token) =>
        token === "" || typeof token === "string" && token.length >= MIN_TOKEN
          ? undefined
          : `is not a valid token; it must have at least ${MIN_TOKEN} characters`,
    },
    handlers: "boolean",
  },
  hints: { endpoint: "path", url: "path", bearer: "token" },
};

const MIN_TOKEN = 16;

/** Maximum number of values per label. Further values count as `other`. */
const MAX_VALUES = 500;
/**
 * Maximum number of time series per metric. Further label combinations count as `other`. Each series takes 17 numbers
 * in memory and 17 lines in the response.
 */
const MAX_SERIES = 2000;

const OTHER = "other";

/** The methods that appear in labels. All other methods count as `other`. */
const METHODS = new Set([
  ...["initialize", "ping", "server/discover", "subscriptions/listen", "completion/complete", "logging/setLevel"],
  ...["tools/list", "tools/call", "prompts/list", "prompts/get", "resources/list", "resources/templates/list"],
  ...["resources/read", "resources/subscribe", "resources/unsubscribe"],
]);

/**
 * Creates an observer that counts the calls and sessions of a server, and an endpoint that returns the metrics. The
 * metrics follow OpenTelemetry's conventions for MCP: the histograms `mcp_server_operation_duration_seconds` and
 * `mcp_server_session_duration_seconds`.
 *
 * Labels contain only known names: methods of the protocol, outcomes, and, if `handlers` is `true`, tools and prompts
 * of the server. All other names count as `other`, so that clients cannot add time series.
 *
 * ```ts
 * import { createServer, tool } from "@x/mcp";
 * import { prometheus } from "@x/mcp/observe";
 *
 * const metrics = prometheus({ token: "scrape-7d41f2a09c3be856" });
 * const hello = tool({ name: "hello", run: () => "Hello!" });
 * const about = { name: "greeter", version: "1.0.0", handlers: [hello] };
 * export default createServer({ ...about, observer: metrics, routes: [metrics] });
 * ```
 *
 * @throws {TypeError} if an option is unknown or invalid.
 */
export function prometheus(options: PrometheusOptions = {}): Prometheus {
  checkOptions("create the metrics", options, OPTIONS);
  return new Metrics(options);
}

function refuseStart(): never {
  throw new TypeError(
    "Cannot serve the metrics: token is not set; set the environment variable, or omit token to serve the metrics to all " +
      "clients",
  );
}

class Metrics implements Prometheus {
  readonly path: string;
  readonly public = true;
  /** Only present if the server must not start. */
  readonly start?: () => never;
  readonly #token?: string;
  readonly #hasHandlers: boolean;
  readonly #calls = new Histogram(SERVER_DURATION);
  readonly #sessions = new Histogram(SESSION_DURATION);
  readonly #times = new SessionTimes();

  constructor(options: PrometheusOptions) {
    const { path = "/metrics", token, handlers = token !== undefined } = options;
    // An environment variable that is not set must not make the metrics public.
    if (Object.hasOwn(options, "token") && !token) this.start = refuseStart;
    this.path = path;
    this.#token = token;
    this.#hasHandlers = handlers;
  }

  call(event: CallEvent): void {
    const labels = addOutcome(describeOperation(event), event);
    if (!METHODS.has(event.method)) labels["mcp.method.name"] = OTHER;
    for (const name of this.#hasHandlers ? [] : ["gen_ai.tool.name", "gen_ai.prompt.name"]) {
      if (name in labels) labels[name] = OTHER;
    }
    this.#calls.record(labels, event.durationMs / 1000);
  }

  session(event: SessionEvent): void {
    const seconds = this.#times.end(event);
    if (seconds !== undefined) this.#sessions.record(describeSession(event), seconds);
  }

  text(): string {
    return this.#calls.toText() + this.#sessions.toText();
  }

  readonly fetch = (request: Request): Response => {
    if (this.start) return respond(503, "");
    if (request.method !== "GET" && request.method !== "HEAD") return respond(405, "", { allow: "GET, HEAD" });
    if (!this.#accepts(request.headers.get("authorization"))) return respond(401, "", { "www-authenticate": "Bearer" });
    return respond(200, request.method === "HEAD" ? "" : this.text());
  };

  #accepts(authorization: string | null): boolean {
    return this.#token === undefined || isSame(authorization?.replace(/^bearer +/i, "") ?? "", this.#token);
  }
}

// Bound: `MAX_VALUES` and `MAX_SERIES`.
class Histogram {
  readonly #name: string;
  readonly #description: string;
  /** The values that each label has had so far. */
  readonly #values = new Map<string, BoundedMap<string, void>>();
  readonly #series = new Map<string, Series>();

  constructor({ name, description }: typeof SERVER_DURATION) {
    this.#name = `${toName(name)}_seconds`;
    this.#description = description;
  }

  record(labels: Attributes, seconds: number): void {
    for (const [name, value] of Object.entries(labels)) {
      const known = this.#values.get(name) ?? new BoundedMap<string, void>({ full: "refuse", max: MAX_VALUES });
      this.#values.set(name, known);
      if (!known.set(value)) labels[name] = OTHER;
    }
    this.#find(labels).add(seconds);
  }

  #find(labels: Attributes): Series {
    const text = toLabels(labels);
    const isFull = this.#series.size >= MAX_SERIES && !this.#series.has(text);
    const key = isFull ? toLabels({ "mcp.method.name": OTHER }) : text;
    const series = this.#series.get(key) ?? new Series();
    this.#series.set(key, series);
    return series;
  }

  toText(): string {
    const head = `# HELP ${this.#name} ${this.#description}\n# TYPE ${this.#name} histogram\n`;
    return head + [...this.#series].map(([labels, series]) => series.toText(this.#name, labels)).join("");
  }
}

class Series {
  readonly #counts: number[] = Array(BUCKETS.length + 1).fill(0);
  #sum = 0;

  add(seconds: number): void {
    const at = BUCKETS.findIndex((bound) => seconds <= bound);
    this.#counts[at < 0 ? BUCKETS.length : at]++;
    this.#sum += seconds;
  }

  toText(name: string, labels: string): string {
    let total = 0;
    const lines = this.#counts.map((count, at) => {
      total += count;
      return `${name}_bucket{${labels}${labels && ","}le="${BUCKETS[at] ?? "+Inf"}"} ${total}\n`;
    });
    return `${lines.join("")}${name}_sum{${labels}} ${this.#sum}\n${name}_count{${labels}} ${total}\n`;
  }
}

function toLabels(labels: Attributes): string {
  return Object.entries(labels).map(([name, value]) => `${toName(name)}="${escapeLabel(value)}"`).join(",");
}

function toName(name: string): string {
  return name.replaceAll(".", "_");
}

function escapeLabel(value: string): string {
  return value.replace(/[\\"\n]/g, (character) => character === "\n" ? "\\n" : `\\${character}`);
}

function respond(status: number, body: string, headers: Readonly<Record<string, string>> = {}): Response {
  const type = "text/plain; version=0.0.4; charset=utf-8";
  return new Response(body, { status, headers: { "content-type": type, "cache-control": "no-store", ...headers } });
}

/** Compares in constant time, so that the time does not reveal how many characters of a token are correct. */
function isSame(given: string, expected: string): boolean {
  let difference = given.length ^ expected.length;
  for (let at = 0; at < expected.length; at++) difference |= given.charCodeAt(at) ^ expected.charCodeAt(at);
  return difference === 0;
}
