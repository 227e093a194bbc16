// The fixture with negotiation held down: `?cap=2025-03-26` lowers what a client proposes, so that a client that always
// proposes the newest revision gets the older one. The library needs no option for this: it answers what it is asked.
import server from "../../examples/everything.ts";

export default {
  async fetch(request: Request, info?: Parameters<typeof server.fetch>[1]): Promise<Response> {
    const cap = new URL(request.url).searchParams.get("cap");
    if (cap === null || request.method !== "POST") return await server.fetch(request, info);
    const text = await request.text();
    const body = toCapped(text, cap);
    const headers = new Headers(request.headers);
    headers.delete("content-length");
    return await server.fetch(new Request(request.url, { method: "POST", headers, body }), info);
  },
};

function toCapped(text: string, cap: string): string {
  let message;
  try {
    message = JSON.parse(text);
  } catch {
    return text;
  }
  if (message?.method !== "initialize" || !(message.params?.protocolVersion > cap)) return text;
  return JSON.stringify({ ...message, params: { ...message.params, protocolVersion: cap } });
}
