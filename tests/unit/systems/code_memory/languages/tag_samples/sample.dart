import 'package:shop/store.dart';

const int maxItems = 3;

abstract class Repo {
  Future<Cart> load(int id);
}

class CartRepo extends Repo implements Closeable {
  final Store store;
  CartRepo(this.store);

  @override
  Future<Cart> load(int id) async {
    final row = await store.find(id);
    return Cart.fromRow(row);
  }
}

enum State { open, closed }

mixin Logs {}

void main() {
  runApp(CartRepo(Store()));
}
