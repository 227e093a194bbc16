/**
 * The capabilities that a server announces to a client, which depend on the client's transport.
 */
import type { Link } from "../call/link.ts";
import type { Core } from "./core.ts";

export type Announced = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

/** Returns whether the server can send messages over this transport other than responses. */
export function canStream({ streams }: Pick<Core, "streams">, { transport }: Pick<Link, "transport">): boolean {
  return streams || transport !== "http";
}

/** Adds `logging` to the capabilities of the handlers. Removes what needs streams if the transport has no streams. */
export function toAnnounced(core: Core, link: Pick<Link, "transport">, capabilities: Announced): Announced {
  if (canStream(core, link)) return { ...capabilities, ...core.can.logging && { logging: {} } };
  const { tools, prompts, resources } = capabilities;
  const quiet = { listChanged: false };
  return {
    ...capabilities,
    ...tools && { tools: { ...tools, ...quiet } },
    ...prompts && { prompts: { ...prompts, ...quiet } },
    ...resources && { resources: { ...resources, ...quiet, subscribe: false } },
  };
}
