-- wrk script: sends each line of a file in turn, and prints the per-mille quantiles of the latency.
-- wrk … -s questions.lua URL -- FILE TOKEN

local bodies, asked = {}, 0

function init(arguments)
   for line in io.lines(arguments[1]) do
      bodies[#bodies + 1] = line
   end
   wrk.method = "POST"
   wrk.headers["Authorization"] = "Bearer " .. arguments[2]
   wrk.headers["Content-Type"] = "application/json"
end

function request()
   asked = asked + 1
   return wrk.format(nil, nil, nil, bodies[(asked - 1) % #bodies + 1])
end

function done(summary, latency, requests)
   local quantiles = {}
   for part = 1, 999 do
      quantiles[part] = string.format("%.6f", latency:percentile(part / 10) / 1000000)
   end
   local failures = summary.errors
   print(string.format(
      '{"requests": %d, "failed": %d, "latencies": [%s]}',
      summary.requests,
      failures.connect + failures.read + failures.write + failures.status + failures.timeout,
      table.concat(quantiles, ", ")
   ))
end
