using Microsoft.AspNetCore.Mvc;

public class Cleanup : BackgroundService { }

public record OrderPaid(int Id) : INotification;

public class SendReceipt : INotificationHandler<OrderPaid> { }

public class PayOrder : IRequest<bool> { }

public class TenantMiddleware { }

public class RefundService : IRefundService { }

public class AdminController : BaseApiController { }

public abstract class BaseApiController : ControllerBase { }

public class Price { }
