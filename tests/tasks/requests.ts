// Requests that start, read and answer tasks.
import type { Context } from "../../mod.ts";
import type { Connection } from "../../src/testing/testing.ts";
import { until } from "../support/behaviour.ts";

/** Starts a task. Returns its id. */
export const start = async (client: Connection, args: object = {}, name = "work") =>
  String((await client.request("tools/call", { name, arguments: args }, { finish: false })).taskId);

export const get = async (client: Connection, taskId: unknown) => await client.request("tasks/get", { taskId });

export const update = async (client: Connection, taskId: unknown, inputResponses: object) =>
  await client.request("tasks/update", { taskId, inputResponses });

/** Waits until a task has a status, and if given, asks the question `key`. Returns the task. */
export async function reach(client: Connection, taskId: unknown, status: string, key?: string) {
  let task = await get(client, taskId);
  await until(async () => {
    task = await get(client, taskId);
    return task.status === status && (!key || Object.hasOwn(Object(task.inputRequests), key));
  }, `${status} ${key ?? ""}`);
  return task;
}

/** Runs until the call is aborted, and then throws the reason. */
export const untilAborted = ({ signal }: Context) =>
  new Promise<never>((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
