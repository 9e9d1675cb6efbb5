<?php

namespace Modules\Banking\Contracts;

interface StatementReader
{
    /** @return iterable<array{amount: string, booked_on: string, reference: string}> */
    public function read(string $path): iterable;
}
