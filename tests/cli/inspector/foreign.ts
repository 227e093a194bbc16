// Content that this library refuses to send, but that other servers may send.
import type { Server } from "@x/mcp";

/** Makes a server replace texts in its responses. The keys are texts that the server can send. */
export function replaceInResponses(server: Server, texts: Readonly<Record<string, string>>): void {
  const { fetch } = server;
  Object.assign(server, {
    fetch: async (...given: Parameters<typeof fetch>) => {
      const response = await fetch.apply(server, given);
      if (response.headers.get("content-type") !== "application/json") return response;
      let body = await response.text();
      for (const [text, foreign] of Object.entries(texts)) {
        body = body.replaceAll(JSON.stringify(text), () => JSON.stringify(foreign));
      }
      const { status, headers } = response;
      return new Response(body, { status, headers });
    },
  });
}
