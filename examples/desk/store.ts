// The state of the server, as a service that all handlers share.
import { service } from "@x/mcp";

/** The notes by their titles. */
export const store = service("store", () => new Map([["welcome", "Write notes with notes_write."]]));
