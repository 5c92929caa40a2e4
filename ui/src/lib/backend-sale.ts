// What the window asks of the till about the sale that is rung up, and about who may. A part of the
// one `Backend`. A PIN comes with the command that needs it, and the till looks at it.

import { commands } from './ipc.gen';
import { data } from './ipc';
import type { Asked, Person, PinEntry, Printed, Sale, Session } from './ipc.gen';

export interface SaleBackend {
  /** One of an article, or the quantity; `price-needed` where its price is to be asked for. */
  addArticle(sku: string, quantity: string | null, approval?: PinEntry | null): Promise<Sale>;
  addAtPrice(sku: string, quantity: string | null, price: number): Promise<Sale>;
  setQuantity(lineId: string, quantity: string, approval?: PinEntry | null): Promise<Sale>;
  setPrice(lineId: string, price: number, approval?: PinEntry | null): Promise<Sale>;
  discountLine(lineId: string, discount: Asked | null, approval?: PinEntry | null): Promise<Sale>;
  discountSale(saleId: string, discount: Asked | null, approval?: PinEntry | null): Promise<Sale>;
  setNote(lineId: string, note: string): Promise<Sale>;
  removeLine(lineId: string, approval?: PinEntry | null): Promise<Sale>;
  clearSale(approval?: PinEntry | null): Promise<Sale>;
  undo(saleId: string, approval?: PinEntry | null): Promise<Sale>;
  /** Gives the sale to go on with. */
  parkSale(saleId: string, name: string): Promise<Sale>;
  /** Gives the sale to go on with. */
  dropSale(saleId: string, approval?: PinEntry | null): Promise<Sale>;

  printReceipt(saleId: string): Promise<Printed>;

  people(): Promise<Person[]>;
  logIn(entry: PinEntry): Promise<Session>;
}

export const saleCommands: SaleBackend = {
  addArticle: (sku, quantity, approval = null) => data(commands.addArticle(sku, quantity, approval)),
  addAtPrice: (sku, quantity, price) => data(commands.addAtPrice(sku, quantity, price)),
  setQuantity: (lineId, quantity, approval = null) => data(commands.setQuantity(lineId, quantity, approval)),
  setPrice: (lineId, price, approval = null) => data(commands.setPrice(lineId, price, approval)),
  discountLine: (lineId, discount, approval = null) => data(commands.discountLine(lineId, discount, approval)),
  discountSale: (saleId, discount, approval = null) => data(commands.discountSale(saleId, discount, approval)),
  setNote: (lineId, note) => data(commands.setNote(lineId, note)),
  removeLine: (lineId, approval = null) => data(commands.removeLine(lineId, approval)),
  clearSale: (approval = null) => data(commands.clearSale(approval)),
  undo: (saleId, approval = null) => data(commands.undo(saleId, approval)),
  parkSale: (saleId, name) => data(commands.parkSale(saleId, name)),
  dropSale: (saleId, approval = null) => data(commands.dropSale(saleId, approval)),

  printReceipt: (saleId) => data(commands.printReceipt(saleId)),

  people: () => data(commands.people()),
  logIn: (entry) => data(commands.logIn(entry)),
};
