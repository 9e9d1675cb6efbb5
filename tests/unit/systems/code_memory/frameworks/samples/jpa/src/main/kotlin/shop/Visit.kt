package shop

import jakarta.persistence.*

@Entity
@Table(name = "visits")
data class Visit(@Id var id: Int, @Column(name = "visit_date") var date: String) : Person()

@Entity
class VisitKind
