package Shop::Order;

use strict;
use Shop::Store;

sub total {
    my ($self, $rates) = @_;
    my $lines = $rates->load($self);
    return summed($lines);
}

sub summed { return Shop::Math::sum(@_); }

1;
