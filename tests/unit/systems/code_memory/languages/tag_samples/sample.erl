-module(orders).
-behaviour(gen_server).
-include("orders.hrl").
-export([create/1]).

-define(MAX, 10).

-record(order, {id, lines}).

-type total() :: integer().

create(Lines) ->
    Total = total(Lines),
    store:save(#order{lines = Lines}, Total),
    gen_server:call(?MODULE, {created, Total}).

total(Lines) ->
    lists:sum(Lines).
