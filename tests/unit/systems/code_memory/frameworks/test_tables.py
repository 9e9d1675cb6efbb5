"""Tables by framework data: columns, join tables, references and migrations."""

from __future__ import annotations

from collections.abc import Mapping

from rag_assets.systems.code_memory.derived.model import DerivedDocument
from tests.unit.systems.code_memory.django.project import PROJECT
from tests.unit.systems.code_memory.frameworks.test_frameworks import derive

PERSON = "person_id, refers to core_person"
DJANGO = {path: text for path, text in PROJECT.items() if path.endswith(".py")}


def tables(files: Mapping[str, str]) -> dict[str, DerivedDocument]:
    found = (document for document in derive(files).documents if document.source_type == "table")
    return {one.name.removeprefix("table:"): one for one in found}


def columns(table: DerivedDocument) -> list[str]:
    return [line.removeprefix("- ") for line in table.lines if line.startswith("- ")]


def stated(table: DerivedDocument, kind: str) -> list[tuple[str, str, int]]:
    return [
        (statement.target, statement.path, statement.line_start)
        for statement in table.statements
        if statement.kind == kind
    ]


def test_models_of_django_give_tables_with_inherited_columns() -> None:
    found = tables(DJANGO)
    assert {name: columns(one) for name, one in found.items()} == {
        "core_person": [
            *("id", "password", "last_login", "is_superuser", "username", "first_name"),
            *("last_name", "email", "is_staff", "is_active", "date_joined"),
        ],
        "core_person_groups": ["id", PERSON, "group_id"],
        "core_person_user_permissions": ["id", PERSON, "permission_id"],
        "invoices": [
            *(
                "id",
                "number CharField",
                "customer_id ForeignKey, nullable, refers to core_customer",
            ),
            "created DateTimeField",
        ],
        "core_credit": ["invoice_ptr_id", "reason TextField"],
        "core_credit_tags": ["id", "credit_id, refers to core_credit", PERSON],
        "core_customer": [
            *("id", "user_id OneToOneField, refers to core_person", "kind_id ForeignKey"),
            *("key PositiveIntegerField", "created DateTimeField"),
        ],
        "core_customer_friends": [
            *("id", "from_customer_id, refers to core_customer"),
            "to_customer_id, refers to core_customer",
        ],
        "money_line": [
            *("id", "invoice_id ForeignKey, refers to invoices"),
            "product_id ForeignKey, refers to money_product",
        ],
        "money_product": ["sku CharField"],
    }


def test_migrations_of_django_change_the_table_by_each_of_its_names() -> None:
    found = tables(DJANGO)
    places = stated(found["invoices"], "changed_in")
    assert {target.removeprefix("file:") for target, _, _ in places} == {
        "billing/migrations/0001_initial.py",
        "billing/migrations/0002_more.py",
        "billing/migrations/0003_between.py",
    }
    assert places[0] == ("file:billing/migrations/0001_initial.py", places[0][1], 7)


def test_models_of_sqlalchemy_have_columns_and_references() -> None:
    text = """
import sqlalchemy as sa
from sqlalchemy.orm import mapped_column
class Customer(Base):
    __tablename__ = "customers"
    id = sa.Column(sa.Integer, primary_key=True)
class Invoice(Base):
    __tablename__ = "invoices"
    id = mapped_column(primary_key=True)
    customer_id = mapped_column(sa.ForeignKey("customers.id"), nullable=True)
    payer_id = mapped_column(sa.ForeignKey(Customer.id))
    text = sa.Column("note", sa.Text)
"""
    version = """
from alembic import op
import sqlalchemy as sa
def upgrade():
    op.create_table("bills", sa.Column("id", sa.Integer))
    op.rename_table("bills", "invoices")
    op.add_column("invoices", sa.Column("note", sa.Text))
"""
    found = tables({"shop/models.py": text, "migrations/versions/1_bills.py": version})
    assert columns(found["invoices"]) == [
        "id mapped_column",
        "customer_id mapped_column, nullable, refers to customers",
        "payer_id mapped_column, refers to customers",
        "note Column",
    ]
    references = stated(found["invoices"], "references")
    assert references == [("table:customers", "shop/models.py", line) for line in (10, 11)]
    lines = [line for _, _, line in stated(found["invoices"], "changed_in")]
    assert lines == [5, 6, 7]


def test_subclasses_of_a_rails_model_have_its_table() -> None:
    files = {
        "app/models/application_record.rb": (
            "class ApplicationRecord < ActiveRecord::Base\n  self.abstract_class = true\nend\n"
        ),
        "app/models/user.rb": "class User < ApplicationRecord\nend\n",
        "app/models/admin.rb": "class Admin < User\nend\n",
        "db/migrate/1_create_people.rb": (
            "class CreatePeople < ActiveRecord::Migration[7.0]\n  def change\n"
            "    create_table :people do |t|\n    end\n  end\nend\n"
        ),
        "db/migrate/2_rename.rb": (
            "class Rename < ActiveRecord::Migration[7.0]\n  def change\n"
            "    rename_table :people, :users\n    add_index :users, :id\n  end\nend\n"
        ),
    }
    found = tables(files)
    assert set(found) == {"users"}
    mapped = {one.source for one in found["users"].statements if one.kind == "maps_to"}
    assert mapped == {"User", "Admin"}
    changed = [path.rpartition("/")[2] for _, path, _ in stated(found["users"], "changed_in")]
    assert changed == ["1_create_people.rb", "2_rename.rb", "2_rename.rb"]


def test_a_class_called_model_of_the_repository_is_no_model_by_its_name() -> None:
    files = {
        "shop/models.py": (
            "from django.db import models\nfrom shop.base import Model\n\n\n"
            "class Chart(Model):\n    pass\n"
        ),
        "shop/base.py": "class Model:\n    pass\n",
    }
    assert tables(files) == {}


def test_a_class_whose_table_a_migration_creates_is_a_model() -> None:
    models = """
from django.db import models
from soft.models import Soft
class Note(Soft):
    text = models.TextField()
class Gone(Soft):
    text = models.TextField()
class Helper(Soft):
    pass
"""
    migration = """
from django.db import migrations
class Migration(migrations.Migration):
    operations = [
        migrations.CreateModel(name="Note", fields=[]),
        migrations.CreateModel(name="Gone", fields=[]),
        migrations.DeleteModel(name="Gone"),
    ]
"""
    files = {"shop/models.py": models, "shop/migrations/0001_initial.py": migration}
    found = {name: columns(table) for name, table in tables(files).items()}
    assert found == {"shop_note": ["id", "text TextField"]}


def test_models_with_a_qualified_base_class_are_read() -> None:
    models = "class Order < ActiveRecord::Base\n  belongs_to :shop\nend\n"
    migration = (
        "class CreateOrders < ActiveRecord::Migration[4.2]\n  def change\n"
        "    create_table :orders do |t|\n    end\n  end\nend\n"
    )
    path = "db/migrate/1_create_orders.rb"
    routes = {"config/routes.rb": "Rails.application.routes.draw do\nend\n"}
    found = tables({"app/models/order.rb": models, path: migration, **routes})
    assert found.keys() == {"orders"}
    assert [place for _, place, _ in stated(found["orders"], "maps_to")] == ["app/models/order.rb"]
    assert stated(found["orders"], "changed_in") == [(f"file:{path}", path, 3)]
