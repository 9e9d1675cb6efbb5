use crate::tax::Rates;

pub const MAX_LINES: usize = 10;

pub trait Priced {
    fn price(&self) -> i64;
}

pub struct Order {
    rates: Rates,
}

pub enum State {
    Open,
}

impl Priced for Order {
    fn price(&self) -> i64 {
        self.rates.load().sum()
    }
}

pub mod store {
    pub fn save(order: &Order) -> Result<(), Error> {
        let made = Receipt::new(order);
        println!("{}", made);
        publish(made)
    }
}

macro_rules! audited {
    () => {};
}
