export class InvoicesController {
  public list = (request, response) => response.json([]);

  update(request, response) {
    response.json({});
  }
}
