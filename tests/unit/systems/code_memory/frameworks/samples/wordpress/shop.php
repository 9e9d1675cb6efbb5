<?php

add_action('init', 'shop_init');
add_action('shop_order_paid', [$this, 'send_mail']);

function shop_init() {
    do_action('shop_order_paid', 1);
}

class Mailer {
    public function send_mail() {}
}
