package shop;

import jakarta.enterprise.context.ApplicationScoped;

@ApplicationScoped
public class Refunds {
    @Scheduled(every = "1h")
    void retry() {}
}
