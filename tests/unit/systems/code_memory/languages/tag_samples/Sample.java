package org.shop.orders;

import org.shop.tax.Rates;

/** Serves orders. */
@RestController
public class OrderController extends BaseController implements Searchable<Order> {
    private static final int MAX_LINES = 10;
    private final OrderRepository orders;

    public OrderController(OrderRepository orders) {
        this.orders = orders;
    }

    @GetMapping("/orders/{id}")
    public Order find(int id) {
        Rates rates = new Rates();
        log(id);
        return orders.findById(id).orElseThrow();
    }

    enum State { OPEN }
}

interface Searchable<T> { T find(int id); }
