import { Router } from 'express';

import { InvoicesController } from './invoices.controller';

export class InvoicesRoute {
  public path = '/invoices';
  public router = Router();
  private controller = new InvoicesController();

  constructor() {
    this.router.get(this.path, this.controller.list);
    this.router.put(`${this.path}/:id`, this.controller.update);
  }
}
