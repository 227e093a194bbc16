// Requests as a reverse proxy sends them: with a Host header that differs from the address of the server. `fetch` of
// the runtimes sends its own Host header.
import { request as httpRequest } from "node:http";
import { Readable } from "node:stream";

/** Creates a `fetch` that connects to a port of this machine, and sends a Host header of its own. */
export function createHostFetch(port: number, host: string): (request: Request) => Promise<Response> {
  return async (request) => {
    const { promise, resolve, reject } = Promise.withResolvers<Response>();
    const { pathname, search } = new URL(request.url);
    const { method, signal } = request;
    const headers = { ...Object.fromEntries(request.headers), host };
    const sent = httpRequest({ host: "127.0.0.1", port, path: pathname + search, method, headers, signal });
    sent.on("error", reject);
    sent.on("response", (answer) => {
      const { statusCode: status = 0 } = answer;
      const named = Object.entries(answer.headers).map(([name, value]): [string, string] => [name, String(value)]);
      answer.on("error", () => {}); // The client has closed the stream.
      // The cast is safe, because both types describe the web's stream.
      const body = Readable.toWeb(answer) as ReadableStream<Uint8Array<ArrayBuffer>>;
      resolve(new Response([202, 204].includes(status) ? null : body, { status, headers: named }));
    });
    sent.end(await request.text());
    return await promise;
  };
}
