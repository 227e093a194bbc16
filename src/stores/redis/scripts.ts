/**
 * The scripts that Redis runs. Each script is atomic and idempotent.
 *
 * A value is stored as a hash with its text and its version. A log is stored as a hash with its last id and its epoch,
 * a list of tokens, and a list of values. All keys of a log have the same hash tag, so that a cluster keeps them on the
 * same node. The index consists of two sorted sets: the keys of all values, and the times at which the values expire.
 */

// Bound: one per script.
const digests = new Map<string, Promise<string>>();

/** Returns the SHA-1 of a script in hexadecimal digits, by which Redis finds a script that it has run before. */
export function toDigest(script: string): Promise<string> {
  const known = digests.get(script);
  if (known) return known;
  const digest = digestScript(script);
  digests.set(script, digest);
  return digest;
}

async function digestScript(script: string): Promise<string> {
  const bytes = await crypto.subtle.digest("SHA-1", new TextEncoder().encode(script));
  return Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Defines a Lua function that adds a key to the index, and removes up to two expired keys from the index. */
const ADD_TO_INDEX = `
local function index(names, times, key, ms)
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  redis.call('ZADD', names, 0, key)
  redis.call('ZADD', times, 'GT', now + ms, key)
  for _, old in ipairs(redis.call('ZRANGEBYSCORE', times, '-inf', now - 60000, 'LIMIT', 0, 2)) do
    redis.call('ZREM', names, old)
    redis.call('ZREM', times, old)
  end
end
`;

/** Adds a key to the index. KEYS: names and times of the index. ARGV: key, time to live in milliseconds. */
export const INDEX = `${ADD_TO_INDEX} index(KEYS[1], KEYS[2], ARGV[1], ARGV[2]) return 1`;

/**
 * Writes a value. KEYS: the value, and the index unless the index is on another node. ARGV: text, required version,
 * token, time to live in milliseconds, key.
 */
export const SET = `${ADD_TO_INDEX}
local known = redis.call('HGET', KEYS[1], 'version')
if known ~= ARGV[3] then
  if ARGV[2] == 'none' and known then return 0 end
  if ARGV[2] ~= 'none' and ARGV[2] ~= 'any' and '=' .. tostring(known) ~= ARGV[2] then return 0 end
  redis.call('HSET', KEYS[1], 'value', ARGV[1], 'version', ARGV[3])
  redis.call('PEXPIRE', KEYS[1], ARGV[4])
end
if KEYS[2] then index(KEYS[2], KEYS[3], ARGV[5], ARGV[4]) end
return 1`;

/** Deletes a value. KEYS: the value, and the index unless the index is on another node. ARGV: required version, key. */
export const DELETE = `
local known = redis.call('HGET', KEYS[1], 'version')
if known then
  if ARGV[1] ~= 'any' and '=' .. known ~= ARGV[1] then return 0 end
  redis.call('DEL', KEYS[1])
end
if KEYS[2] then
  redis.call('ZREM', KEYS[2], ARGV[2])
  redis.call('ZREM', KEYS[3], ARGV[2])
end
return 1`;

/** Reads values. KEYS: values. For each value, returns its text and version, or nil if the value does not exist. */
export const GET = `
local found = {}
for i, key in ipairs(KEYS) do found[i] = redis.call('HMGET', key, 'value', 'version') end
return found`;

/** Lists keys in the index. KEYS: names of the index. ARGV: first key, last key, limit. */
export const FIND_NAMES = `return redis.call('ZRANGEBYLEX', KEYS[1], ARGV[1], ARGV[2], 'LIMIT', 0, ARGV[3])`;

/**
 * Appends an entry to a log. KEYS: state, tokens and values of the log. ARGV: text, token, time to live in
 * milliseconds, maximum number of entries, epoch for a new log, channel, name of the log.
 */
export const APPEND = `
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
redis.call('PUBLISH', ARGV[6], ARGV[7])
return last`;

/** KEYS: state, tokens and values of a log. ARGV: last known id, limit. Returns oldest id, newest id, epoch, texts. */
export const READ = `
local last = tonumber(redis.call('HGET', KEYS[1], 'last') or '0')
if last == 0 then return { 1, 0, '', {} } end
local first = last - redis.call('LLEN', KEYS[3]) + 1
local from = math.max(tonumber(ARGV[1]) + 1, first)
local texts = {}
if tonumber(ARGV[2]) > 0 then texts = redis.call('LRANGE', KEYS[3], from - first, from - first + ARGV[2] - 1) end
return { first, last, redis.call('HGET', KEYS[1], 'epoch'), texts }`;

/** KEYS: state and values of each log. For each log, returns its oldest id, newest id and epoch. */
export const HEADS = `
local heads = {}
for i = 1, #KEYS, 2 do
  local last = tonumber(redis.call('HGET', KEYS[i], 'last') or '0')
  local head = { 1, 0, '' }
  if last > 0 then head = { last - redis.call('LLEN', KEYS[i + 1]) + 1, last, redis.call('HGET', KEYS[i], 'epoch') } end
  heads[#heads + 1] = head
end
return heads`;

/** KEYS: state, tokens and values of the log. ARGV: id of the oldest entry to keep. */
export const TRIM = `
local last = tonumber(redis.call('HGET', KEYS[1], 'last') or '0')
local drop = tonumber(ARGV[1]) - (last - redis.call('LLEN', KEYS[3]) + 1)
if last == 0 or drop <= 0 then return 0 end
redis.call('LTRIM', KEYS[2], drop, -1)
redis.call('LTRIM', KEYS[3], drop, -1)
return drop`;
