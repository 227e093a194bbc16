-- For wrk: sends one request over and over, each time with the next id. All ids have the same length. Replaces {tenant} by
-- the number of a tenant. Arguments: a file with the path, the number of tenants, header lines, an empty line and the body,
-- and the first id, which the body holds as 1000000.

local before, after
local id, tenants, hasTenant

function init(args)
  local path, body
  for line in io.lines(args[1]) do
    local name, value = line:match("^([%w-]+): (.*)$")
    if path == nil then path = line
    elseif tenants == nil then tenants = tonumber(line)
    elseif body == nil and name then wrk.headers[name] = value
    elseif body == nil then body = ""
    else body = body .. line end
  end
  local request = wrk.format("POST", path, wrk.headers, body)
  local from, to = request:find('"id":1000000', 1, true)
  before = request:sub(1, from + 4)
  after = request:sub(to + 1)
  id = tonumber(args[2])
  hasTenant = request:find("{tenant}", 1, true)
end

function request()
  id = id + 1
  local text = before .. id .. after
  if not hasTenant then return text end
  return (text:gsub("{tenant}", id % tenants))
end

function done(summary, latency)
  local errors = summary.errors
  local failed = errors.connect + errors.read + errors.write + errors.status + errors.timeout
  io.write(string.format(
    '\nJSON {"requests":%d,"micros":%d,"failed":%d,"p50":%d,"p99":%d}\n',
    summary.requests, summary.duration, failed, latency:percentile(50), latency:percentile(99)
  ))
end
