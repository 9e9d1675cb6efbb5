<?php

/** @var \Illuminate\Routing\Router $router */

$router->get('statements/{month}', 'StatementController@show')->name('statements.show');
$router->post('statements', 'StatementController@store')->name('statements.store');
$router->group(['prefix' => 'clients', 'as' => 'clients.'], function ($router) {
    $router->get('/', 'ClientController@index')->name('index');
    $router->patch('{client}', 'ClientController@update')->name('update');
});
