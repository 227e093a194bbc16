// The server for the run that kills instances with tasks. Each effect of a handler appends a line to a file, so that
// repeated effects can be counted.
import { appendFileSync } from "node:fs";
import process from "node:process";
import { type Context, createServer, tool } from "@x/mcp";
import { denoKvStore } from "@x/mcp/stores/deno-kv";
import { postgresStore } from "@x/mcp/stores/postgres";
import { redisStore } from "@x/mcp/stores/redis";
import { sqliteStore } from "@x/mcp/stores/sqlite";
import { task, tasks } from "@x/mcp/tasks";
import { z } from "zod";

const url = process.env.MCP_STORE ?? "";
const [, kind, path] = /^(\w+):?(.*)$/s.exec(url) ?? [];
const leaseMs = Number(process.env.LEASE_MS);

function openStore() {
  switch (kind) {
    case "redis":
      return redisStore(async () => {
        const { createClient } = await import("redis");
        return createClient({ url, disableOfflineQueue: true });
      }, { leaseMs });
    case "postgres":
      return postgresStore(async () => {
        const { default: { Pool } } = await import("pg");
        return new Pool({ connectionString: url });
      }, { leaseMs });
    case "denokv":
      return denoKvStore(() => Deno.openKv(path), { leaseMs });
    case "sqlite":
      return sqliteStore(async () => {
        const { DatabaseSync } = await import("node:sqlite");
        return new DatabaseSync(path);
      }, { leaseMs });
    default:
      throw new Error(
        `Cannot open the store: MCP_STORE is ${url}; write redis://…, postgres://…, sqlite:… or denokv:…`,
      );
  }
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const input = z.object({ key: z.string() });

async function work({ key }: { readonly key: string }, ctx: Context): Promise<string> {
  const write = (words: string) => appendFileSync(process.env.EFFECTS ?? "", `${key} ${words}\n`);
  const step = async (name: string) => {
    const value = await ctx.once(name, async () => {
      const value = crypto.randomUUID();
      write(`make ${name} ${value}`);
      await pause(Math.random() * 60);
      return value;
    });
    write(`know ${name} ${value}`);
    await pause(Math.random() * 60);
    return value;
  };
  const first = await step("first");
  const { content } = await ctx.elicit("name", { message: "Who?", schema: z.object({ name: z.string() }) });
  return JSON.stringify([content?.name, first, await step("second"), await step("third")]);
}

export default createServer({
  name: "tasks",
  version: "1.0.0",
  secret: process.env.MCP_SECRET,
  store: openStore(),
  auth: () => ({ id: "ada" }),
  handlers: [
    tasks(),
    tool({ name: "resumes", input, use: [task({ resume: true })], run: work }),
    tool({ name: "fails", input, use: [task()], run: work }),
  ],
});
