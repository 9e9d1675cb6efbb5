from sqlmodel import Field, SQLModel


class AccountBase(SQLModel):
    email: str


class UserAccount(AccountBase, table=True):
    id: int | None = Field(default=None, primary_key=True)


class Seat(SQLModel, table=True):
    __tablename__ = "seats"
    id: int | None = Field(default=None, primary_key=True)


class AccountCreate(AccountBase):
    password: str
