package shop;

import jakarta.persistence.*;

@Entity
@Table(name = "owners")
public class Owner extends Person {
}

@Entity
class PetType {
}
