// A gateway: other servers behind one. Its own tool comes first, the notes and the calculator run in this process, and
// the URL in TRACKER_URL, if it is set, leads to a server over HTTP. The gateway starts without that server.
import process from "node:process";
import { createServer, tool } from "@x/mcp";
import { proxy } from "@x/mcp/proxy";
import calc from "./calc.ts";
import notes from "./notes.ts";

const { TRACKER_URL, TRACKER_KEY = "" } = process.env;

const tracker = TRACKER_URL
  ? [proxy(TRACKER_URL, {
    prefix: "tracker_",
    headers: { authorization: `Bearer ${TRACKER_KEY}` },
    // Restrict a server that you do not operate: serve no tools that delete, and do not let it use the caller's model.
    tools: { exclude: ["*delete*"] },
    forward: { sampling: false },
    timeoutMs: 20_000,
  })]
  : [];

export default createServer({
  name: "gateway",
  version: "1.0.0",
  handlers: [
    tool({
      name: "hello",
      title: "Hello",
      description: "Says hello",
      annotations: { readOnlyHint: true, destructiveHint: false, openWorldHint: false },
      run: () => "Hello from the gateway",
    }),
    proxy(notes, { prefix: "notes_" }),
    proxy(calc, { prefix: "calc_" }),
    ...tracker,
  ],
});
