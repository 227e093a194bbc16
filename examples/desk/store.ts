// The state of the server: a service that all handlers share.
import { service } from "@x/mcp";

/** The notes by title. */
export const store = service("store", () => new Map([["welcome", "Write notes with notes_write."]]));
