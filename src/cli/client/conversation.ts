/**
 * A session in which the server may ask and tell something while it works on an answer.
 *
 * @module
 */
import type { RequestOptions } from "../../client/rpc.ts";
import { LOG_LEVELS } from "../../protocol/types.ts";
import type { Args, Flags } from "../args.ts";
import type { Command } from "../command.ts";
import { type CallTimeout, startCallTimeout } from "./call_timeout.ts";
import { createProgressLine, readLogLevel, tellLog } from "./progress.ts";
import { type Answers, QUESTIONS_USAGE, readGiven, toAnswers } from "./questions.ts";
import { SERVER_FLAGS, SERVER_OFFERS, SERVER_USAGE, type Session, withServer } from "./session.ts";

/** The flags of every command that has a server work on something. */
export const ASKING_FLAGS: Flags = { ...SERVER_FLAGS, output: true, answer: true, root: true, log: true };

/** What a shell offers for their words. */
export const ASKING_OFFERS: Command["offers"] = {
  operands: "files",
  flags: {
    ...SERVER_OFFERS.flags,
    output: "files",
    root: "files",
    answer: ["accept", "decline", "cancel"],
    log: [...LOG_LEVELS, "none"],
  },
};

/** What the usage of these commands says of their flags. */
export const ASKING_USAGE = `${SERVER_USAGE}
--output FILE write what comes to a file: images, sounds and other bytes, or else the text
--log LEVEL   the least severe log messages to show: debug, info (if nothing is said), … error, or none

${QUESTIONS_USAGE}`;

/** A session in which the server may ask. */
export interface Conversation extends Session {
  /** Sends one request, shows how far it is, and gives up when the server is silent for too long. */
  ask<T>(send: (options: RequestOptions) => Promise<T>): Promise<T>;
}

/** Connects as `withServer` does, and answers what the server asks. */
export async function withConversation(
  args: Args,
  verb: string,
  use: (conversation: Conversation) => Promise<number>,
): Promise<number> {
  const given = readGiven(args);
  const logLevel = readLogLevel(args.flags.log ?? "info");
  const line = createProgressLine();
  let callTimeout: CallTimeout | undefined;

  async function hold<T>(work: () => Promise<T>): Promise<T> {
    line.pause();
    try {
      return await (callTimeout ? callTimeout.holdFor(work) : work());
    } finally {
      line.go();
    }
  }

  async function ask<T>(session: Session, send: (options: RequestOptions) => Promise<T>): Promise<T> {
    const waiting = callTimeout = startCallTimeout(session.timeoutMs);
    line.go();
    try {
      return await send({
        signal: AbortSignal.any([session.signal, waiting.signal]),
        timeoutMs: Infinity,
        onProgress(progress) {
          waiting.renew();
          line.show(progress);
        },
      });
    } finally {
      waiting.stop();
      line.pause();
    }
  }

  let answers: Answers | undefined;
  const toOptions = (name: string) => ({
    ...(answers = toAnswers({ given, name, hold })).options,
    logLevel,
    onNotification: (notification: Parameters<typeof tellLog>[0]) => {
      callTimeout?.renew();
      tellLog(notification, logLevel);
    },
  });
  const code = await withServer(args, { verb, toOptions }, (session) => {
    return use({ ...session, ask: (send) => ask(session, send) });
  });
  answers?.checkUsed();
  return code;
}
