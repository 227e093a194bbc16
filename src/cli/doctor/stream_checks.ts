/**
 * Checks long-lived streams, and whether proxies buffer them.
 *
 * @see specification/2025-11-25/basic/transports (Listening for Messages from the Server)
 * @see specification/2026-07-28/basic/patterns/subscriptions
 */
import { METHOD_NOT_FOUND } from "../protocol.ts";
import { deadline } from "../../core/kit/deadline.ts";
import {
  type Endpoint,
  exchange,
  open,
  type OpenResponse,
  type RequestWriter,
  type ServerResponse,
} from "./exchange.ts";
import { describeResponse, formatMs } from "./revision_checks.ts";
import type { Check, Report } from "./report.ts";

/** Milliseconds to wait for the first byte of a stream. */
const FIRST_BYTE_MS = 1000;
const AVOID_BUFFERING =
  "send a comment immediately and then every few seconds, with X-Accel-Buffering: no; turn off buffering in proxies " +
  "(nginx: proxy_buffering off; Caddy: flush_interval -1)";

/** Opens the stream for change notifications, and waits up to `heartbeatMs` milliseconds for a heartbeat. */
export async function checkStream(
  endpoint: Endpoint,
  writer: RequestWriter,
  { report, heartbeatMs }: { readonly report: Report; readonly heartbeatMs?: number },
): Promise<void> {
  const { isModern, version, write } = writer;
  const name = isModern ? "subscriptions/listen" : "GET";
  await report.run("stream", async (check) => {
    const { headers, body } = write("subscriptions/listen", { notifications: { toolsListChanged: true } });
    const request = isModern
      ? { headers, body }
      : { method: "GET", headers: { ...headers, "content-type": null, accept: "text/event-stream" } };
    const context = { check, name, version, isModern, heartbeatMs, timeoutMs: endpoint.timeoutMs };
    const opened = await open(endpoint, request);
    try {
      if (opened.isStream && opened.response.ok) await checkOpenStream(opened, context);
      else {
        opened.close();
        reportRejection(await exchange(endpoint, request), context);
      }
    } finally {
      opened.close();
    }
  });
}

interface StreamContext {
  readonly check: Check;
  readonly name: string;
  readonly version: string;
  readonly isModern: boolean;
  readonly heartbeatMs?: number;
  readonly timeoutMs: number;
}

function reportRejection(response: ServerResponse, { check, name, version, isModern }: StreamContext): void {
  if (isModern ? response.message?.error?.code === METHOD_NOT_FOUND : response.status === 405) {
    return check.note(
      `${name} is not supported (${version}), so clients are not notified of changes`,
      `support ${name} if lists or resources change while the server is running`,
    );
  }
  check.problem(
    `${name} gets ${describeResponse(response)} (${version})`,
    isModern
      ? "respond with a stream, or with 404 and JSON-RPC error -32601"
      : "respond with Content-Type: text/event-stream, or with 405 if there is no stream",
  );
}

async function checkOpenStream(opened: OpenResponse, context: StreamContext): Promise<void> {
  const { response, ms } = opened;
  const { check, name, version, isModern, heartbeatMs, timeoutMs } = context;
  opened.keepOpen();
  const next = readActivity(response);
  const opening = performance.now();
  const first = await next(Math.min(FIRST_BYTE_MS, timeoutMs));
  if (first === "end") {
    check.problem(
      `the stream of ${name} ends immediately (${version})`,
      "keep the stream open until the client closes it",
    );
  } else if (first === "late") {
    const message = `the stream of ${name} opens in ${formatMs(ms)} but sends no byte (${version})`;
    // Report a problem only in the modern revision, in which a stream begins with an acknowledgement.
    isModern
      ? check.problem(message, `acknowledge the subscription immediately; ${AVOID_BUFFERING}`)
      : check.note(`${message}; some proxies hold back the response until the first byte`, AVOID_BUFFERING);
  } else {
    const byteMs = ms + performance.now() - opening;
    check.ok(`the stream of ${name} opens and sends its first byte after ${formatMs(byteMs)} (${version})`);
  }
  if (response.headers.get("x-accel-buffering") !== "no") {
    check.note('the response lacks the header "X-Accel-Buffering: no", so nginx buffers the stream', "set the header");
  }
  const encoding = response.headers.get("content-encoding");
  if (encoding && encoding !== "identity") {
    check.note(`the stream is compressed (${encoding}), which delays events`, "do not compress text/event-stream");
  }
  if (heartbeatMs === undefined || first === "end") return;
  const waitStart = performance.now();
  const heartbeat = await next(heartbeatMs);
  if (heartbeat === "byte") {
    return check.ok(`the idle stream of ${name} sends a heartbeat after ${formatMs(performance.now() - waitStart)}`);
  }
  const state = heartbeat === "end" ? "ends" : `sends nothing for ${heartbeatMs / 1000} s`;
  check.note(`the idle stream of ${name} ${state}; proxies and runtimes close idle streams`, AVOID_BUFFERING);
}

type Activity = "byte" | "end";

/** Returns a function that waits for the next activity. Activity after the timeout counts for the next call. */
function readActivity({ body }: Response): (ms: number) => Promise<Activity | "late"> {
  const reader = body?.getReader();
  let pending: Promise<Activity> | undefined;
  return async (ms) => {
    pending ??= reader?.read().then(({ done }): Activity => done ? "end" : "byte", (): Activity => "end") ??
      Promise.resolve("end");
    const activity = await deadline(pending, { ms, onTimeout: () => "late" });
    if (activity !== "late") pending = undefined;
    return activity;
  };
}
