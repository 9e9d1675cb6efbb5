const std = @import("std");
const store = @import("store.zig");

const max_lines = 10;

const Order = struct {
    id: u32,

    pub fn total(self: Order, rates: *Rates) u32 {
        return rates.load(self.id).sum();
    }
};

const State = enum { open };

pub fn create(id: u32) !Order {
    try store.save(id);
    return summed(id);
}

test "creates" {
    _ = create(1);
}
