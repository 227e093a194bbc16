/**
 * Loads the checks of values from the server's author. Most results need no checks, because the library created them.
 */
import { Room } from "../../core/protocol/room.ts";

export const wireRoom: Room<typeof import("./wire_check.ts")> = new Room(() => import("./wire_check.ts"));
