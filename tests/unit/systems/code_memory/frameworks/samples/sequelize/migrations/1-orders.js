module.exports = {
  up: (queryInterface, Sequelize) => queryInterface.createTable('shop_orders', {})
}
