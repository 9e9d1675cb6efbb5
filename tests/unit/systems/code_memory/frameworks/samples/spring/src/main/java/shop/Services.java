package shop;

import org.springframework.stereotype.Service;

@Service
public class Refunds {
    public void create(CreateRefundRequest request) {}

    @Scheduled(cron = "0 0 * * * *")
    public void retry() {}
}

class CreateRefundRequest {}

class OrderPaid extends ApplicationEvent {}

class PaidMailer {
    @EventListener
    public void send(OrderPaid event) {}
}

class StockListener implements ApplicationListener<OrderPaid> {}

class TenantFilter extends OncePerRequestFilter {}

class BaseJob extends QuartzJobBean {}

class Cleanup extends BaseJob {}

class Price {}
