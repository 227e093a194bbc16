// A tool with an app. Hosts that support apps show a clock. All other hosts show text.
import { createServer, tool } from "@x/mcp";
import { app, supportsApp, ui } from "@x/mcp/apps";
import { z } from "zod";

const clock = app({ uri: "ui://clock", title: "Clock", file: new URL("./clock.html", import.meta.url) });

const showTime = tool({
  name: "show_time",
  title: "Show the time",
  description: "Shows the time in a time zone",
  input: z.object({ zone: z.string().default("UTC").describe("Time zone, such as Europe/Berlin") }),
  annotations: { readOnlyHint: true, destructiveHint: false, openWorldHint: false },
  use: [ui(clock)],
  run({ zone }, ctx) {
    const now = new Date();
    const text = `It is ${now.toLocaleTimeString("en-GB", { timeZone: zone })} (${zone}).`;
    if (!supportsApp(ctx, clock)) return text;
    return { content: [{ type: "text", text }], structuredContent: { now: now.toISOString(), zone } };
  },
});

/** Only the app calls this tool. Hosts hide the tool from the model. */
const readClock = tool({
  name: "read_clock",
  title: "Read the clock",
  description: "Returns the time of the server",
  annotations: { readOnlyHint: true, destructiveHint: false, openWorldHint: false },
  use: [ui(clock, { visibility: ["app"] })],
  run: () => ({ now: new Date().toISOString() }),
});

export default createServer({ name: "clock", version: "1.0.0", handlers: [clock, showTime, readClock] });
