// What differs between installations: read once from the environment, and checked before anything starts.
import process from "node:process";
import { z } from "zod";

const Environment = z.object({
  /** Where clients reach the server, without a path. */
  PUBLIC_URL: z.url(),
  /** The authorization server. */
  ISSUER: z.url(),
  /** The same for all processes: seals sessions, cursors and what is in the store. */
  MCP_SECRET: z.string().min(32),
  /** The folder of the databases. */
  DATA: z.string().default("data"),
  /** Addresses of the proxy in front, separated by blanks. */
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
