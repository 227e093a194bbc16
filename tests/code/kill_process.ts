// The process that a test kills: sends the answer to the question of a program to an instance of its own.
import process from "node:process";
import { openInstance, send } from "./kill_instance.ts";

const [database, effects, state, keys] = process.argv.slice(-4);
await send(openInstance(database, effects), state, JSON.parse(keys));
// Keep the process, so that only the test ends it.
setInterval(() => {}, 60_000);
