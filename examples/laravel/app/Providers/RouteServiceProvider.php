<?php

namespace App\Providers;

use App\Support\Routing\SingletonRoutes;
use Illuminate\Cache\RateLimiting\Limit;
use Illuminate\Foundation\Support\Providers\RouteServiceProvider as ServiceProvider;
use Illuminate\Http\Request;
use Illuminate\Support\Facades\RateLimiter;
use Illuminate\Support\Facades\Route;

class RouteServiceProvider extends ServiceProvider
{
    public const HOME = '/dashboard';

    public function boot(): void
    {
        SingletonRoutes::register();
        RateLimiter::for('login', fn (Request $request) => Limit::perMinute(5)->by($request->ip()));

        $this->routes(function () {
            Route::prefix('api')
                ->middleware('api')
                ->group(base_path('routes/api.php'));

            Route::domain('admin.quittance.test')
                ->middleware(['web', 'auth', 'role:operator'])
                ->name('admin.')
                ->group(base_path('routes/admin.php'));

            Route::group([
                'prefix' => 'partner',
                'as' => 'partner.',
                'namespace' => 'App\Http\Controllers\Partner',
                'middleware' => ['web', 'auth:partner'],
            ], base_path('routes/partner.php'));

            Route::middleware('web')
                ->group(base_path('routes/web.php'));
        });
    }
}
