package shop;

import io.javalin.Javalin;

public class Main {
    public static void main(String[] args) {
        var app = Javalin.create().start(7070);
        app.get("/health", ctx -> ctx.result("up"));
        app.get("/orders/{id}", OrderHandlers::show);
        app.post("/orders", ctx -> OrderHandlers.create(ctx));
    }
}

class OrderHandlers {
    static void show(Context ctx) {}
    static void create(Context ctx) {}
}
