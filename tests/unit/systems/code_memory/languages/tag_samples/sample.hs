module Shop.Orders (create) where

import qualified Shop.Store as Store
import Data.List (sortBy)

data Order = Order { orderId :: Int, total :: Int }

newtype Money = Money Int

type Lines = [Int]

class Priced a where
  price :: a -> Int

instance Priced Order where
  price order = total order

create :: Lines -> IO Order
create amounts = do
  let made = summed amounts
  Store.save made
  return (Order 1 made)

summed :: Lines -> Int
summed = sum
