/**
 * The methods and the subscription of the tasks extension, for all tasks of a server, wherever they are kept.
 *
 * @see ext-tasks specification/draft/tasks
 */
import { INTERNALS } from "../../core/internals.ts";
import { extension } from "../../library.ts";
import type { Extension, StartPart } from "../extension.ts";
import { findInSources, toUnknown } from "./task_source.ts";

export const ID = "io.modelcontextprotocol/tasks";

const named = { type: "object", properties: { taskId: { type: "string" } }, required: ["taskId"] } as const;
const update = {
  type: "object",
  properties: { taskId: { type: "string" }, inputResponses: { type: "object" } },
  required: ["taskId", "inputResponses"],
} as const;

/** Maximum number of tasks in one request to subscribe. */
const MAX_TASKS = 100;

/** Number of extensions that were created, because a server serves only one of several extensions with this id. */
let count = 0;

/**
 * Creates the extension. `start` adds the source of its tasks. An extension of rank 1 serves only the tasks of sources
 * that other handlers add, and only if the server has no extension of rank 0.
 */
export function createTaskExtension(start: StartPart, rank: 0 | 1): Extension<"taskIds"> {
  const own: Extension<"taskIds"> = extension({
    id: ID,
    methods: {
      "tasks/get": {
        params: named,
        subject: "taskId",
        async run({ taskId }, ctx) {
          const found = await findInSources(ctx, (source) => source.get(taskId, ctx));
          if (found) return found;
          throw toUnknown();
        },
      },
      "tasks/update": {
        params: update,
        subject: "taskId",
        async run({ taskId, inputResponses }, ctx) {
          if (await findInSources(ctx, (source) => source.answer(taskId, inputResponses, ctx))) return {};
          throw toUnknown();
        },
      },
      "tasks/cancel": {
        params: named,
        subject: "taskId",
        async run({ taskId }, ctx) {
          if (await findInSources(ctx, (source) => source.cancel(taskId, ctx))) return {};
          throw toUnknown();
        },
      },
    },
    listen: {
      taskIds: {
        filter: { type: "array", items: { type: "string" }, maxItems: MAX_TASKS } as const,
        async grant(ids, ctx) {
          // The cast is safe, because `filter` validates the items. TypeScript cannot infer their type from the schema.
          const all = ids as unknown as readonly string[];
          const known = new Set<string>();
          await findInSources(ctx, async (source) => {
            const left = all.filter((id) => !known.has(id));
            for (const id of await source.grant(left, ctx)) known.add(id);
            return known.size === all.length;
          });
          return [...known];
        },
        watch: async (id, ctx) => {
          const publish = own.publish.bind(own, "taskIds");
          return await findInSources(ctx, (source) => source.watch(id, ctx, publish));
        },
        load: async (id, ctx) => await findInSources(ctx, (source) => source.load(id, ctx)),
      },
    },
    start,
  });
  const id = `extension ${JSON.stringify(ID)} ${++count}`;
  return { ...own, [INTERNALS]: { ...own[INTERNALS], id, rank } };
}
