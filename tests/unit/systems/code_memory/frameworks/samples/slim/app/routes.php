<?php

use App\Actions\ListOrdersAction;
use App\Actions\OrderActions;
use Slim\App;
use Slim\Interfaces\RouteCollectorProxyInterface as Group;

return function (App $app) {
    $app->get('/', function (Request $request, Response $response) {
        return renderHome($response);
    });

    $app->group('/orders', function (Group $group) {
        $group->get('', ListOrdersAction::class);
        $group->post('/{id:[0-9]+}', [OrderActions::class, 'change'])->setName('change');
        $group->map(['PUT', 'DELETE'], '/{id}/items', OrderActions::class . ':items');
    });
};

function renderHome(Response $response): Response { return $response; }
