class Cleanup {
  run() {}
}

module.exports = { Cleanup }
