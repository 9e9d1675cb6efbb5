use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "shop_orders")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub id: i32,
}
