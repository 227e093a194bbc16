// A gateway that serves only what somebody has reviewed. The calculator runs in this process; usually, the target is the
// URL or the command of a server of somebody else. This command has written the lock file:
//
//   mcp lock calc=examples/calc.ts --lock examples/mcp.lock.json
//
// Change a description in calc.ts, and the tool disappears until the change is accepted with the same command.
import { createServer } from "@x/mcp";
import { proxy } from "@x/mcp/proxy";
import calc from "./calc.ts";

export default createServer({
  name: "locked",
  version: "1.0.0",
  handlers: [proxy(calc, { prefix: "calc_", lock: new URL("./mcp.lock.json", import.meta.url) })],
});
