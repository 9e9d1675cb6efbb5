using module .\Store.psm1

class Order {
    [int] Total([Rates] $rates) {
        return $rates.Load($this)
    }
}

function Get-Order {
    param([int] $Id)
    $row = Find-Row -Id $Id
    [Order]::new($row)
}
