/**
 * `subscriptions/listen`: a call that resolves late and tells of changes until then.
 *
 * @see specification/2026-07-28/basic/patterns/subscriptions
 * @module
 */
import { INVALID_PARAMS, McpError } from "../../protocol/errors.ts";
import { isObject, type Params, toIdText, toNotification, toSuccess } from "../../protocol/jsonrpc.ts";
import type { Call, Reply, Scope } from "../../core/call.ts";
import type { Change, Core } from "../../core/core.ts";
import { BUSY } from "../../core/scheduler.ts";
import { mayWatch } from "../../core/limits.ts";
import { newsTeller } from "../../core/changes.ts";
import { META_SUBSCRIPTION } from "./meta_keys.ts";

/** Which changes one listener hears of. */
interface Filter {
  readonly lists: ReadonlySet<string>;
  readonly uris: ReadonlySet<string>;
}

/** Makes the function that opens subscriptions. */
export function listener(core: Core): (call: Call) => Promise<Reply> {
  let open = 0;
  // By principal where one is known: over HTTP every request has a scope of its own.
  const perClient = new Map<Scope | string, number>();

  return (call) => {
    const { link, scope, id } = call;
    const { filter, granted } = readFilter(core, call.params.notifications);
    // The filter is all that is needed from here on, and a subscription may last for days.
    call.forget();
    if (!link.streams) throw invalid("the Accept header does not list text/event-stream");
    const client = link.principal?.id ?? scope;
    const here = perClient.get(client) ?? 0;
    if (open >= core.limits.streams || here >= core.limits.streamsPerClient) {
      throw new McpError(BUSY, "Cannot open the subscription: too many are open (streams, streamsPerClient)");
    }
    open++;
    perClient.set(client, here + 1);
    const idText = toIdText(id);
    return new Promise((resolve) => {
      const tell = newsTeller((text) => link.send(text));

      function hear(change: Change): void {
        if (change.kind === "close") return finish();
        if (!(change.kind === "list" ? filter.lists.has(change.feature) : filter.uris.has(change.uri))) return;
        const [before, after] = toFrame(change);
        const text = before + idText + after;
        const seen = core.registry.sees(change, call);
        if (seen === true) tell(text);
        else if (seen) seen.then((seen) => seen && !call.ended && tell(text));
      }

      function end(reply: Reply): void {
        core.listeners.delete(hear);
        scope.remove(call);
        call.ended = true;
        open--;
        const left = (perClient.get(client) ?? 1) - 1;
        if (left) perClient.set(client, left);
        else perClient.delete(client);
        resolve(reply);
      }

      // On a pipe there is no stream to close, so the end is told in both of the ways that clients look for. The result
      // comes first: a client may forget its request when it hears that it is cancelled.
      function finish(): void {
        const text = toSuccess(id, `{"resultType":"complete","_meta":${JSON.stringify({ [META_SUBSCRIPTION]: id })}}`);
        if (link.http) return end({ text });
        link.send(text);
        link.send(toNotification("notifications/cancelled", { requestId: id, reason: "closing" }));
        end({});
      }

      call.lasting = true;
      call.onCancel = () => end({});
      scope.add(call);
      core.listeners.add(hear);
      link.send(toNotification("notifications/subscriptions/acknowledged", {
        notifications: granted,
        _meta: { [META_SUBSCRIPTION]: id },
      }));
    });
  };
}

// What the server cannot tell of is left out of what it grants. What the caller may not see is granted like what does
// not exist: whether it may hear is asked when it changes.
function readFilter(core: Core, wanted: unknown): { filter: Filter; granted: Params } {
  if (!isObject(wanted)) throw invalid("params.notifications is not an object");
  const { capabilities } = core.registry;
  const lists = Object.keys(LISTS).filter((name) => wanted[name] === true && LISTS[name] in capabilities);
  const given = wanted.resourceSubscriptions ?? [];
  if (!Array.isArray(given) || !given.every((uri) => typeof uri === "string")) {
    throw invalid("params.notifications.resourceSubscriptions is not an array of strings");
  }
  if (!mayWatch(given, core.limits)) throw invalid("too many resources are watched, or too long ones (subscriptions)");
  const uris = "resources" in capabilities ? given : [];
  return {
    filter: { lists: new Set(lists.map((name) => LISTS[name])), uris: new Set(uris) },
    granted: {
      ...Object.fromEntries(lists.map((name) => [name, true])),
      ...uris.length ? { resourceSubscriptions: uris } : {},
    },
  };
}

const LISTS: Readonly<Record<string, string>> = {
  toolsListChanged: "tools",
  promptsListChanged: "prompts",
  resourcesListChanged: "resources",
};

function invalid(state: string): McpError {
  return new McpError(INVALID_PARAMS, `Cannot open the subscription: ${state}`);
}

// All listeners hear the same change object: its text is made once, and only their ids are put in.
let lastChange: Change | undefined;
let lastFrame: readonly [string, string] = ["", ""];

function toFrame(change: Change): readonly [before: string, after: string] {
  if (change !== lastChange && change.kind !== "close") {
    const isList = change.kind === "list";
    const method = isList ? `notifications/${change.feature}/list_changed` : "notifications/resources/updated";
    const text = toNotification(method, { _meta: { [META_SUBSCRIPTION]: 0 }, ...isList ? {} : { uri: change.uri } });
    const at = text.indexOf(`Id":0`) + 4;
    lastChange = change;
    lastFrame = [text.slice(0, at), text.slice(at + 1)];
  }
  return lastFrame;
}
