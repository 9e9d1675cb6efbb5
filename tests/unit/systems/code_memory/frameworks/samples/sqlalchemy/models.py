from sqlalchemy import Column, ForeignKey, Table
from sqlalchemy.orm import DeclarativeBase


class Base(DeclarativeBase):
    pass


class Invoice(Base):
    __tablename__ = "invoices"


invoice_tags = Table("invoice_tags", Base.metadata, Column("invoice_id", ForeignKey("invoices.id")))
