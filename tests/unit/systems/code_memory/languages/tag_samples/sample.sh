#!/bin/bash
source ./lib/store.sh

readonly MAX_LINES=10

usage() {
  echo "usage"
}

function build {
  usage
  run_tests "$1" | tee log
}

build "$@"
