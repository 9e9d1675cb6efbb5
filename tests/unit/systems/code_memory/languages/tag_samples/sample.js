import { format } from "./money";
const store = require("./store");

const MAX_LINES = 10;

class Cart extends Base {
  total() {
    return store.items(this).reduce(sum, 0);
  }
}

function sum(left, right) {
  return format(left + right);
}

const open = (id) => new Cart(id).total();

export default open;
