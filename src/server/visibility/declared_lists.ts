/**
 * Serves the empty lists of a server that declares a list before the server has handlers for the list.
 */
import { INVALID_PARAMS, McpError, quote } from "../../core/protocol/errors.ts";
import type { Call } from "../call/call.ts";
import type { ListName } from "../call/context.ts";
import type { FeatureParts } from "./feature_parts.ts";
import { type Compiled, type Method, toMethod } from "./feature.ts";
import { createList } from "./pagination.ts";

/** The feature serves empty lists, and rejects every name or URI as unknown. */
export function compileEmpty(name: ListName, core: FeatureParts): Compiled {
  const { listChanged, subscribe } = core.can;
  const list = (key: string = name) => toMethod(createList(key, [], core), { list: key });
  const unknown = (kind: string): Method => ({
    subject: "name",
    find({ params }: Call) {
      throw new McpError(INVALID_PARAMS, `Unknown ${kind}: ${quote(params.name)}`);
    },
  });
  if (name === "tools") {
    return {
      capabilities: { tools: { listChanged } },
      methods: { "tools/list": list(), "tools/call": unknown("tool") },
    };
  }
  if (name === "prompts") {
    const methods = { "prompts/list": list(), "prompts/get": unknown("prompt") };
    return { capabilities: { prompts: { listChanged } }, methods };
  }
  const read: Method = {
    subject: "uri",
    find({ params: { uri } }: Call) {
      if (typeof uri === "string") throw McpError.resourceNotFound(uri);
      throw new McpError(INVALID_PARAMS, "Cannot read the resource: uri is not a string");
    },
  };
  return {
    capabilities: { resources: { listChanged, subscribe } },
    methods: {
      "resources/list": list(),
      "resources/templates/list": list("resourceTemplates"),
      "resources/read": read,
    },
  };
}
