module Shop

using Dates
import Base: show

const MAX_LINES = 10

abstract type Priced end

struct Order <: Priced
    id::Int
end

function total(order::Order)
    lines = Store.lines(order)
    return summed(lines)
end

summed(lines) = sum(lines)

macro audited(body)
    body
end

end
