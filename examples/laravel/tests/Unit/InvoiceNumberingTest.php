<?php

namespace Tests\Unit;

use App\Services\InvoiceNumbering;
use PHPUnit\Framework\TestCase;

class InvoiceNumberingTest extends TestCase
{
    public function test_a_pattern_is_filled(): void
    {
        $this->assertSame(date('Y').'-1', (new InvoiceNumbering)->preview('{year}-{n}'));
    }
}
