using Microsoft.AspNetCore.Mvc;

[ApiController]
[Route("api/[controller]")]
public class CatalogController : ControllerBase
{
    [HttpGet("items/{id:int}")]
    public async Task<ActionResult<Item>> GetItem(int id) => null;

    [HttpPost]
    public async Task<ActionResult> Create(Item item) => null;
}
