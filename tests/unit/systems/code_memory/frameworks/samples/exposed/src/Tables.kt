package shop

import org.jetbrains.exposed.sql.Table

object Orders : IntIdTable("shop_orders") {
    val total: Column<Int> = integer("total")
}

object Customers : Table() {
    val id = integer("id")
}
