<?php

namespace App\Contracts;

interface ExchangeRates
{
    /** @return list<array{currency_code: string, quoted_on: string, rate: string}> */
    public function today(): array;
}
