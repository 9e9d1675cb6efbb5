using Shop.Domain.Orders;

namespace Shop.Api {
    public interface IOrders { Task<Order> Find(int id); }

    [ApiController]
    public class OrdersController : ControllerBase, IOrders
    {
        private readonly IMediator _mediator;

        public OrdersController(IMediator mediator) { _mediator = mediator; }

        public async Task<Order> Find(int id)
        {
            var query = new GetOrderQuery(id);
            await _mediator.Send(query);
            return Orders.All().Where(x => x.Id == id).First();
        }

        public int Total { get; set; }
    }
    public enum Status { Open }
    public record Line(int Amount);
    public struct Money { public const int Scale = 2; }
}
