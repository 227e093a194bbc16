// The settings that differ between installations. They are read from the environment and checked before anything
// starts.
import process from "node:process";
import { z } from "zod";

const Environment = z.object({
  /** URL at which clients reach the server, without a path. */
  PUBLIC_URL: z.url(),
  /** URL of the authorization server. */
  ISSUER: z.url(),
  /** All processes must use the same secret, because it seals sessions, cursors and the values in the store. */
  MCP_SECRET: z.string().min(32),
  /** The folder of the databases. */
  DATA: z.string().default("data"),
  /** Addresses of the proxies in front of the server, separated by spaces. */
  PROXIES: z.string().default(""),
  PORT: z.coerce.number().int().default(8000),
});

const read = Environment.safeParse(process.env);
if (!read.success) throw new Error(`Cannot start: the environment is wrong\n${z.prettifyError(read.error)}`);
const { PUBLIC_URL, ISSUER, MCP_SECRET, DATA, PROXIES, PORT } = read.data;

export const config = {
  origin: new URL(PUBLIC_URL).origin,
  host: new URL(PUBLIC_URL).hostname,
  issuer: ISSUER,
  secret: MCP_SECRET,
  data: DATA,
  proxies: PROXIES.split(" ").filter(Boolean),
  port: PORT,
};
