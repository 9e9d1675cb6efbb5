library(dplyr)
source("store.R")

MAX_LINES <- 10

total <- function(order) {
  lines <- store$lines(order)
  sum(lines)
}

summary.order = function(object) {
  dplyr::filter(object, total(object))
}

setClass("Order", representation(id = "numeric"))
