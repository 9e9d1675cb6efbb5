package shop

import androidx.room.Entity

@Entity(tableName = "orders", indices = [Index("customer")])
data class Order(val id: Long)

@Entity
data class Customer(val id: Long)
