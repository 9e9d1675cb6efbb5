const helper = () => 1
exports.first = helper
module.exports.second = function () {}
exports.third = exports.fourth = 4
