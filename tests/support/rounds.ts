// Rounds of a call in revision 2026-07-28: the first request, and repeated requests with the answers to the questions.
import type { Server } from "../../mod.ts";
import { readAnswer, toRequest } from "./requests.ts";

type Json = { readonly [key: string]: unknown };

/** The server to call, and the path of its endpoint. */
export interface Asked {
  readonly server: Pick<Server, "fetch">;
  readonly path: string;
}

/** The parsed response to one request of a call. */
export interface Round {
  readonly status: number;
  readonly retryAfter: string | null;
  readonly code?: number;
  /** The message of the error, or an empty string. */
  readonly says: string;
  /** The text of the result. */
  readonly text?: string;
  /** The keys of the questions that the server asked. */
  readonly asked: readonly string[];
  /** The messages of the questions that the server asked. */
  readonly messages: readonly string[];
  readonly state?: string;
}

/**
 * Calls a tool. In `more`, a string such as "raw 1e400" is sent as that number, which `JSON.stringify` cannot write.
 */
export async function sendRound(
  { server, path }: Asked,
  name: string,
  more: Json = {},
  principal?: string,
): Promise<Round> {
  const _meta = { "io.modelcontextprotocol/clientCapabilities": { elicitation: { form: {}, url: {} } } };
  // Without text/event-stream, the response is never a stream, however slow the machine is.
  const headers = { accept: "application/json" };
  const request = toRequest("tools/call", { name, ...more, _meta }, headers);
  const response = await server.fetch(
    new Request(`http://localhost${path}`, {
      method: "POST",
      headers: request.headers,
      body: (await request.text()).replaceAll(/"raw ([^"]*)"/g, "$1"),
    }),
    principal === undefined ? undefined : { principal: { id: principal } },
  );
  const { status, result, error } = await readAnswer(response);
  const questions = Object.entries<{ readonly params: { readonly message: string } }>(result?.inputRequests ?? {});
  return {
    status,
    retryAfter: response.headers.get("retry-after"),
    code: error?.code,
    says: error?.message ?? "",
    text: result?.content?.[0]?.text,
    asked: questions.map(([key]) => key),
    messages: questions.map(([, { params }]) => params.message),
    state: result?.requestState,
  };
}
