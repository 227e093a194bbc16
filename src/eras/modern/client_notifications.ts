/**
 * Notifications of clients that extensions handle.
 *
 * @module
 */
import { isMcpError } from "../../protocol/errors.ts";
import { isObject, type Notification } from "../../protocol/jsonrpc.ts";
import { countIndexes, toWeight } from "../../protocol/weight.ts";
import { Call, type Carrier } from "../../core/call.ts";
import type { Engine } from "../../core/era.ts";
import type { Method } from "../../core/feature.ts";
import type { Link, Reply } from "../../core/link.ts";
import { META_CAPABILITIES, VERSION } from "./meta_keys.ts";

/** A notification of a client, and what handles it. */
export interface TakenNotification {
  readonly method: Method;
  readonly message: Notification;
  readonly link: Link;
}

/**
 * Runs the handler of a notification like a call, within the limits of its client. A notification gets no response, so
 * errors that are meant for clients are dropped.
 */
export async function takeNotification(
  engine: Engine,
  carrier: Carrier,
  { method, message, link }: TakenNotification,
): Promise<Reply> {
  const { params = {} } = message;
  const { [META_CAPABILITIES]: capabilities }: Record<string, unknown> = isObject(params._meta) ? params._meta : {};
  const text = JSON.stringify(params);
  // No client can cancel a notification, so its id equals no other one.
  const request = { kind: "request" as const, id: NaN, method: message.method, params };
  const weight = toWeight(text, { max: 0, indexes: countIndexes(text) });
  // Metadata is optional in notifications. A client that describes itself must have declared the extension.
  const extensions = { [method.extension ?? ""]: {} };
  const declared = isObject(capabilities) ? capabilities : { extensions };
  const call = new Call(carrier, link, { ...request, weight }, { version: VERSION, capabilities: declared });
  try {
    const runner = await engine.scheduler.find(call, method);
    await engine.scheduler.run(call, runner);
  } catch (error) {
    if (!isMcpError(error)) engine.core.report(error, call);
  }
  return {};
}
