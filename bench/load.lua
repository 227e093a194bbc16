-- For wrk: sends one request over and over, each time with the next id. All ids have the same length.
-- Arguments: a file with header lines, an empty line and the body, and the first id, which the body holds as 1000000.

local before, after
local id

function init(args)
  local body
  for line in io.lines(args[1]) do
    local name, value = line:match("^([%w-]+): (.*)$")
    if body == nil and name then wrk.headers[name] = value
    elseif body == nil then body = ""
    else body = body .. line end
  end
  local request = wrk.format("POST", "/mcp", wrk.headers, body)
  local from, to = request:find('"id":1000000', 1, true)
  before = request:sub(1, from + 4)
  after = request:sub(to + 1)
  id = tonumber(args[2])
end

function request()
  id = id + 1
  return before .. id .. after
end

function done(summary, latency)
  local errors = summary.errors
  local failed = errors.connect + errors.read + errors.write + errors.status + errors.timeout
  io.write(string.format(
    '\nJSON {"requests":%d,"micros":%d,"failed":%d,"p50":%d,"p99":%d}\n',
    summary.requests, summary.duration, failed, latency:percentile(50), latency:percentile(99)
  ))
end
