<?php

class Orders_Controller extends WP_REST_Controller {
    protected $namespace = 'shop/v2';
    protected $rest_base = 'orders';

    public function register_routes() {
        register_rest_route($this->namespace, '/' . $this->rest_base . '/(?P<id>[\d]+)', array(
            array(
                'methods'             => WP_REST_Server::READABLE,
                'callback'            => array($this, 'get_item'),
                'permission_callback' => array($this, 'may_read'),
            ),
            array(
                'methods'  => WP_REST_Server::EDITABLE,
                'callback' => array($this, 'update_item'),
            ),
            'schema' => array($this, 'get_public_item_schema'),
        ));
    }

    public function get_item($request) {}
    public function update_item($request) {}
    public function may_read() {}
}

add_action('rest_api_init', function () {
    register_rest_route('shop/v2', '/health', ['methods' => 'GET, POST', 'callback' => 'shop_health']);
});

function shop_health() {}
