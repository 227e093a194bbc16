/**
 * Streams that stay open, and whether what is between lets them through.
 *
 * @see specification/2025-11-25/basic/transports (Listening for Messages from the Server)
 * @see specification/2026-07-28/basic/patterns/subscriptions
 * @module
 */
import { METHOD_NOT_FOUND } from "../../protocol/errors.ts";
import { startTimer } from "../../client/delay.ts";
import type { Dialect } from "./dialect.ts";
import { type Answer, exchange, open, type Opened, type Place } from "./exchange.ts";
import { tellAnswer, toMs } from "./revisions.ts";
import type { Report, Tell } from "./report.ts";

/** Milliseconds for the first byte of a stream that may have nothing to say yet. */
const FIRST_MS = 1000;
const LET_THROUGH =
  "send a comment at once and every few seconds, with X-Accel-Buffering: no; in a proxy turn buffering " +
  "off (nginx: proxy_buffering off; Caddy: flush_interval -1)";

/** Opens the stream on which a server tells of changes, and waits for signs of life if `heartbeatMs` says how long. */
export async function examineStream(
  place: Place,
  dialect: Dialect,
  { report, heartbeatMs }: { readonly report: Report; readonly heartbeatMs?: number },
): Promise<void> {
  const { isModern, version, write } = dialect;
  const name = isModern ? "subscriptions/listen" : "GET";
  await report.look("stream", async (tell) => {
    const { headers, body } = write("subscriptions/listen", { notifications: { toolsListChanged: true } });
    const sent = isModern
      ? { headers, body }
      : { method: "GET", headers: { ...headers, "content-type": null, accept: "text/event-stream" } };
    const told = { tell, name, version, isModern, heartbeatMs, timeoutMs: place.timeoutMs };
    const opened = await open(place, sent);
    try {
      if (opened.isStream && opened.response.ok) await followStream(opened, told);
      else {
        opened.close();
        tellRefusal(await exchange(place, sent), told);
      }
    } finally {
      opened.close();
    }
  });
}

interface Told {
  readonly tell: Tell;
  readonly name: string;
  readonly version: string;
  readonly isModern: boolean;
  readonly heartbeatMs?: number;
  readonly timeoutMs: number;
}

function tellRefusal(answer: Answer, { tell, name, version, isModern }: Told): void {
  if (isModern ? answer.message?.error?.code === METHOD_NOT_FOUND : answer.status === 405) {
    const what = `${name} is not served (${version}): clients hear of no changes`;
    return tell.note(what, "serve it if lists or resources change while the server runs");
  }
  tell.problem(
    `${name} is answered with ${tellAnswer(answer)} (${version})`,
    isModern
      ? "answer with a stream, or with 404 and the JSON-RPC error -32601"
      : "answer with Content-Type: text/event-stream, or with 405 if there is no stream",
  );
}

async function followStream(opened: Opened, told: Told): Promise<void> {
  const { response, ms } = opened;
  const { tell, name, version, isModern, heartbeatMs, timeoutMs } = told;
  opened.keep();
  const next = readSigns(response);
  const opening = performance.now();
  const first = await next(Math.min(FIRST_MS, timeoutMs));
  if (first === "end") {
    tell.problem(`the stream of ${name} ends at once (${version})`, "keep it open until the client leaves");
  } else if (first === "late") {
    const what = `the stream of ${name} opens in ${toMs(ms)}, and then no byte comes (${version})`;
    // The first thing on it is that it is there.
    isModern
      ? tell.problem(what, `acknowledge the subscription at once; ${LET_THROUGH}`)
      : tell.note(`${what}: some proxies hold it back until there is one`, LET_THROUGH);
  } else {
    const byteMs = ms + performance.now() - opening;
    tell.ok(`the stream of ${name} opens, with a first byte after ${toMs(byteMs)} (${version})`);
  }
  if (response.headers.get("x-accel-buffering") !== "no") {
    tell.note("the stream has no header X-Accel-Buffering: no, without which nginx holds it back", "set that header");
  }
  const encoding = response.headers.get("content-encoding");
  if (encoding && encoding !== "identity") {
    tell.note(`the stream is compressed (${encoding}), which holds events back`, "do not compress text/event-stream");
  }
  if (heartbeatMs === undefined || first === "end") return;
  const quiet = performance.now();
  const beat = await next(heartbeatMs);
  if (beat === "byte") {
    return tell.ok(`the quiet stream of ${name} gives a sign of life after ${toMs(performance.now() - quiet)}`);
  }
  const what = beat === "end" ? "ends" : `says nothing for ${heartbeatMs / 1000} s`;
  tell.note(`the quiet stream of ${name} ${what}: proxies and runtimes cut such streams off`, LET_THROUGH);
}

type Sign = "byte" | "end";

/** What comes next on a stream within so many milliseconds: bytes, its end, or nothing. What is late is kept. */
function readSigns({ body }: Response): (ms: number) => Promise<Sign | "late"> {
  const reader = body?.getReader();
  let coming: Promise<Sign> | undefined;
  return async (ms) => {
    coming ??= reader?.read().then(({ done }): Sign => done ? "end" : "byte", (): Sign => "end") ??
      Promise.resolve("end");
    const { promise: late, resolve } = Promise.withResolvers<"late">();
    const stopTimer = startTimer(ms, () => resolve("late"));
    const sign = await Promise.race([coming, late]);
    stopTimer();
    if (sign !== "late") coming = undefined;
    return sign;
  };
}
