// A server with a store, outside of a Durable Object.
import { createServer } from "@x/mcp";
import { customStore, type StoreEngine } from "@x/mcp/stores";

const connect = (): StoreEngine => {
  throw new Error("not called");
};
const secret = "a secret of the tests, with enough characters";

export default createServer({ name: "stored", version: "1.0.0", store: customStore(connect), secret });
