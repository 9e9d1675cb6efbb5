public class OrdersTests
{
    [Fact]
    public async Task CreatesAnOrder()
    {
        await _client.PostAsJsonAsync("/api/orders", new { });
    }
}
