(ns shop.orders
  (:require [shop.store :as store]
            [clojure.string :refer [join]]))

(def max-lines 10)

(defrecord Order [id])

(defprotocol Repo
  (find-order [this id]))

(defn- total [lines]
  (reduce + (map :amount lines)))

(defn create
  "Creates an order."
  [lines]
  (store/save (->Order 1) (total lines)))
