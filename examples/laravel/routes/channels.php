<?php

use App\Models\User;
use Illuminate\Support\Facades\Broadcast;

Broadcast::channel('companies.{company}', fn (User $user, int $company) => $user->belongsToCompany($company));
