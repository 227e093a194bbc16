// The settings that differ between deployments. This module reads the settings from the environment, and checks them
// before anything starts.
import process from "node:process";
import { z } from "zod";

const words = z.string().transform((text) => text.split(" ").filter(Boolean));

const Environment = z.object({
  /** URL at which clients reach the server, without a path. */
  PUBLIC_URL: z.url(),
  /** URL of the authorization server. */
  ISSUER: z.url(),
  /**
   * The secret that all processes share. During a rotation, the new secret and the previous secret, separated by a
   * space.
   */
  MCP_SECRET: words.pipe(z.array(z.string().min(32)).min(1)),
  /** Token of the program that collects metrics. */
  METRICS_TOKEN: z.string().min(16),
  /** Folder of the databases. */
  DATA: z.string().default("data"),
  /** Addresses of the proxies in front of the server, separated by spaces. */
  PROXIES: words.default([]),
  /** Address to listen on. Use 0.0.0.0 only in a container, because other machines could bypass the proxy. */
  HOST: z.string().default("127.0.0.1"),
  PORT: z.coerce.number().int().default(8000),
});

const read = Environment.safeParse(process.env);
if (!read.success) throw new Error(`Cannot start: the environment is invalid\n${z.prettifyError(read.error)}`);
const { PUBLIC_URL, ISSUER, MCP_SECRET, METRICS_TOKEN, DATA, PROXIES, HOST, PORT } = read.data;

export const config = {
  origin: new URL(PUBLIC_URL).origin,
  hosts: [new URL(PUBLIC_URL).hostname],
  issuer: ISSUER,
  secret: MCP_SECRET,
  metricsToken: METRICS_TOKEN,
  data: DATA,
  proxies: PROXIES,
  hostname: HOST,
  port: PORT,
};
