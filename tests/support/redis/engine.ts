// A store engine for Redis 7 that uses only public exports of the library. Each command is one script, and therefore
// atomic.
import type { LogHead, StoreEngine } from "../../../src/stores/stores.ts";
import { type Answer, connectRedis } from "./client.ts";

/** ARGV: value, version, token, time to live in milliseconds, key. */
const SET = `
local known = redis.call('HGET', KEYS[1], 'version')
if known == ARGV[3] then return 1 end
if ARGV[2] == 'none' and known then return 0 end
if ARGV[2] ~= 'none' and ARGV[2] ~= 'any' and '=' .. tostring(known) ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], 'value', ARGV[1], 'version', ARGV[3])
redis.call('PEXPIRE', KEYS[1], ARGV[4])
redis.call('ZADD', KEYS[2], 0, ARGV[5])
return 1`;

/** ARGV: version, key. */
const DELETE = `
local known = redis.call('HGET', KEYS[1], 'version')
if not known then return 1 end
if ARGV[1] ~= 'any' and '=' .. known ~= ARGV[1] then return 0 end
redis.call('DEL', KEYS[1])
redis.call('ZREM', KEYS[2], ARGV[2])
return 1`;

/** ARGV: first, last, limit, prefix of values. Expired keys are removed from the index here. */
const LIST = `
local found, min = {}, ARGV[1]
while true do
  local keys = redis.call('ZRANGEBYLEX', KEYS[1], min, ARGV[2], 'LIMIT', 0, ARGV[3])
  if #keys == 0 then return found end
  for _, key in ipairs(keys) do
    local row = redis.call('HMGET', ARGV[4] .. key, 'value', 'version')
    if row[2] then found[#found + 1] = { key, row[1], row[2] } else redis.call('ZREM', KEYS[1], key) end
    if #found == tonumber(ARGV[3]) then return found end
    min = '(' .. key
  end
end`;

/** KEYS: state, tokens, values. ARGV: value, token, milliseconds, max, epoch, log. */
const APPEND = `
local last = tonumber(redis.call('HGET', KEYS[1], 'last') or '0')
if last == 0 then
  redis.call('DEL', KEYS[2], KEYS[3])
  redis.call('HSET', KEYS[1], 'epoch', ARGV[5])
end
local place = redis.call('LPOS', KEYS[2], ARGV[2], 'RANK', -1)
if place then return last - redis.call('LLEN', KEYS[2]) + place + 1 end
last = redis.call('HINCRBY', KEYS[1], 'last', 1)
redis.call('RPUSH', KEYS[2], ARGV[2])
redis.call('RPUSH', KEYS[3], ARGV[1])
redis.call('LTRIM', KEYS[2], -tonumber(ARGV[4]), -1)
redis.call('LTRIM', KEYS[3], -tonumber(ARGV[4]), -1)
for _, key in ipairs(KEYS) do redis.call('PEXPIRE', key, ARGV[3]) end
redis.call('PUBLISH', 'rings', ARGV[6])
return last`;

/** ARGV: after, limit. */
const READ = `
local last = tonumber(redis.call('HGET', KEYS[1], 'last') or '0')
if last == 0 then return { 1, 0, '', {} } end
local first = last - redis.call('LLEN', KEYS[3]) + 1
local from = math.max(tonumber(ARGV[1]) + 1, first)
local values = {}
if tonumber(ARGV[2]) > 0 then values = redis.call('LRANGE', KEYS[3], from - first, from - first + ARGV[2] - 1) end
return { first, last, redis.call('HGET', KEYS[1], 'epoch'), values }`;

/** ARGV: before. */
const TRIM = `
local last = tonumber(redis.call('HGET', KEYS[1], 'last') or '0')
local drop = tonumber(ARGV[1]) - (last - redis.call('LLEN', KEYS[3]) + 1)
if last == 0 or drop <= 0 then return 0 end
redis.call('LTRIM', KEYS[2], drop, -1)
redis.call('LTRIM', KEYS[3], drop, -1)
return drop`;

const INDEX = "keys";
const VALUE = "value:";

/** Connects to a server through its Unix socket. Pass the engine to `customStore((options) => …)`. */
export async function redisEngine(path: string, { signal }: { readonly signal: AbortSignal }): Promise<StoreEngine> {
  const client = await connectRedis(path, signal);
  const run = (script: string, keys: readonly string[], ...args: readonly (string | number)[]) =>
    client.send("EVAL", script, keys.length, ...keys, ...args);
  const toLog = (log: string) => ["log", "tokens", "entries"].map((kind) => `${kind}:{${log}}`);
  const toMode = (version?: string | null) => version === undefined ? "any" : version === null ? "none" : `=${version}`;
  async function readLog(log: string, after: number, limit: number) {
    const [first, last, epoch, values] = toList(await run(READ, toLog(log), after, limit));
    const head: LogHead = { first: Number(first), last: Number(last), epoch: String(epoch) };
    const from = Math.max(after + 1, head.first);
    return { ...head, entries: toList(values).map((value, index) => ({ id: from + index, value: String(value) })) };
  }
  return {
    async get(key) {
      const [value, version] = toList(await client.send("HMGET", VALUE + key, "value", "version"));
      if (version !== null) return { value: String(value), version: String(version) };
    },
    set: async (key, value, { ttlMs, version, token }) =>
      await run(SET, [VALUE + key, INDEX], value, toMode(version), token, ttlMs, key) === 1,
    delete: async (key, { version }) => await run(DELETE, [VALUE + key, INDEX], toMode(version), key) === 1,
    async list(prefix, { after = "", limit }) {
      const first = after >= prefix && after ? `(${after}` : `[${prefix}`;
      const rows = toList(await run(LIST, [INDEX], first, prefix ? `(${prefix}~` : "+", limit, VALUE));
      return rows.map((row) => toList(row).map(String)).map(([key, value, version]) => ({ key, value, version }));
    },
    append: async (log, value, { ttlMs, max, token }) =>
      Number(await run(APPEND, toLog(log), value, token, ttlMs, max, crypto.randomUUID(), log)),
    read: (log, { after = 0, limit }) => readLog(log, after, limit),
    async trim(log, before) {
      await run(TRIM, toLog(log), before);
    },
    // All commands share one round trip, because the client pipelines them.
    heads: (logs) => Promise.all(logs.map((log) => readLog(log, 0, 0))),
    async listen(onRing, onLost) {
      const bell = await connectRedis(path);
      bell.onMessage = (_channel, log) => onRing(log);
      bell.onLost = onLost;
      await bell.send("SUBSCRIBE", "rings");
      return () => bell.close();
    },
    close: () => client.close(),
  };
}

function toList(answer: Answer): readonly Answer[] {
  if (Array.isArray(answer)) return answer;
  throw new Error(`Redis returned ${answer}, which is not a list`);
}
