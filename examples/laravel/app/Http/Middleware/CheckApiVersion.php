<?php

namespace App\Http\Middleware;

use Closure;
use Illuminate\Http\Request;

class CheckApiVersion
{
    public function handle(Request $request, Closure $next, int $version)
    {
        $response = $next($request);
        $response->headers->set('X-Api-Version', (string) $version);

        return $response;
    }
}
