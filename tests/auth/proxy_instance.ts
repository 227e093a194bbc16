// An instance of a server with `oauthProxy`, in a process of its own. Its store is a Redis server, and its provider is the
// process of the test.
import process from "node:process";
import { redisStore } from "../../src/stores/redis/redis.ts";
import { serveProcess } from "../support/http_process.ts";
import { CLIENTS } from "../support/redis/clients.ts";
import { open, origin } from "./proxy_flow.ts";

const [socket, provider] = process.argv.slice(2);

/** Sends a request for the provider to the process of the test. */
async function forward(request: Request): Promise<Response> {
  const headers = new Headers(request.headers);
  headers.set("x-url", request.url);
  const { method, signal } = request;
  const body = method === "POST" ? await request.text() : undefined;
  return await fetch(provider, { method, headers, body, signal });
}

const { server } = open(
  {
    fetch: forward,
    async who() {
      const response = await forward(new Request("https://who.example/"));
      return await response.text() === "yes";
    },
  },
  { store: redisStore(() => CLIENTS[0].connect(socket)) },
);

serveProcess(async (request) => {
  const { pathname, search } = new URL(request.url);
  const headers = new Headers(request.headers);
  headers.set("host", new URL(origin).host);
  const body = request.method === "POST" ? await request.text() : undefined;
  const sent = new Request(origin + pathname + search, { method: request.method, headers, body });
  return await server.fetch(sent, { remoteAddr: { hostname: "192.0.2.1" } });
});
