"""Named events: their emitters and listeners share a node."""

from __future__ import annotations

import pytest

from rag_assets.ingest.chunking.chunk_set import locate_facts
from rag_assets.systems.code_memory.reading import read_code
from rag_assets.systems.code_memory.relations.relations import build_relations
from rag_assets.systems.code_memory.symbols.naming import (
    NameStyle,
    get_name_style,
    resolve_spelling,
)

TYPES = {"php": "text/x-php", "py": "text/x-python", "ts": "text/x-typescript"}


def events(path: str, text: str) -> set[tuple[str, str, str]]:
    """Return kind, source and event of each edge, with qualified sources."""
    suffix = path.rpartition(".")[2]
    facts = locate_facts(read_code(text, TYPES[suffix]).facts, text)
    style: NameStyle = "qualified" if suffix == "php" else get_name_style(path)
    edges = build_relations(facts, names=style).edges
    return {
        (edge.kind, resolve_spelling(edge.source, path) if edge.source else "", edge.target)
        for edge in edges
        if edge.target.startswith("event:")
    }


def test_emitter_of_javascript_meets_its_listeners() -> None:
    text = """
import { bus } from './bus'

export function pay() {
  bus.emit('order.paid', { id: 1 })
}

export function send() {}

bus.on('order.paid', send)

export class Mailer {
  start() {
    bus.once('order:shipped', (order) => this.mail(order))
  }

  @OnEvent('order.paid')
  handle() {}
}
"""
    assert events("src/orders.ts", text) == {
        ("fires", "src/orders#pay", "event:order.paid"),
        ("listens_to", "src/orders#send", "event:order.paid"),
        ("listens_to", "src/orders#Mailer.start", "event:order:shipped"),
        ("listens_to", "src/orders#Mailer.handle", "event:order.paid"),
    }


def test_event_of_laravel_meets_the_method_that_listens() -> None:
    emits = """<?php
namespace Shop;

class Cart
{
    public function pay()
    {
        Event::dispatch('checkout.order.save.after', $this->order);
    }
}
"""
    listens = """<?php
namespace Shop\\Providers;

class EventServiceProvider
{
    public function boot()
    {
        Event::listen('checkout.order.save.after', 'Shop\\Listeners\\Order@afterOrderCreated');
    }
}
"""
    assert events("src/Cart.php", emits) == {
        ("fires", "Shop\\Cart::pay", "event:checkout.order.save.after")
    }
    assert events("src/EventServiceProvider.php", listens) == {
        (
            *("listens_to", "Shop\\Listeners\\Order::afterOrderCreated"),
            "event:checkout.order.save.after",
        )
    }


def test_signal_of_python_meets_its_receivers() -> None:
    text = """
from django.dispatch import receiver
from shop.signals import order_paid

def pay(order):
    order_paid.send(sender=None, order=order)

@receiver(order_paid)
def mail(sender, **more):
    pass

def book(sender, **more):
    pass

order_paid.connect(book)

class Config:
    def ready(self):
        from .stock import reserve

        order_paid.connect(reserve)
"""
    assert events("shop/orders.py", text) == {
        ("fires", "shop.orders.pay", "event:order_paid"),
        ("listens_to", "shop.orders.mail", "event:order_paid"),
        ("listens_to", "shop.orders.book", "event:order_paid"),
        ("listens_to", "shop.stock.reserve", "event:order_paid"),
    }


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("src/a.ts", "button.on('click', save)\nstream.emit('error')\nbus.emit(name)\n"),
        ("src/a.ts", "store.dispatch(open())\nbus.emit(`order.${kind}`)\n"),
        ("a.py", "import socket\nfrom x import signals\ns.send(b'x')\ndb.connect('a.b')\n"),
        ("a.php", "<?php\n$bus->dispatch(new Paid()); Event::dispatch($name);\n"),
    ],
)
def test_words_of_the_platform_and_computed_names_are_no_events(path: str, text: str) -> None:
    assert events(path, text) == set()
