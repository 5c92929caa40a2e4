import { asCommandError, type Backend, type TillEvents } from './backend';
import { commands, events } from './ipc.gen';
import type { CommandError } from './types';

type Answer<T> = { status: 'ok'; data: T } | { status: 'error'; error: CommandError };

/** The data of an answer; whatever else comes is thrown as a `CommandError`. */
async function data<T>(asked: Promise<Answer<T>>): Promise<T> {
  let answer: Answer<T>;
  try {
    answer = await asked;
  } catch (thrown) {
    throw asCommandError(thrown);
  }
  if (answer.status === 'error') throw asCommandError(answer.error);
  return answer.data;
}

/** The till behind the desktop shell's commands. */
export const tauriBackend: Backend = {
  appInfo: () => data(commands.appInfo()),
  categories: () => data(commands.categories()),
  articles: (query) => data(commands.articles(query)),

  openSale: () => data(commands.openSale()),
  addArticle: (sku, quantity) => data(commands.addArticle(sku, quantity, null)),
  setQuantity: (lineId, quantity) => data(commands.setQuantity(lineId, quantity, null)),
  removeLine: (lineId) => data(commands.removeLine(lineId, null)),
  clearSale: () => data(commands.clearSale(null)),
  newSale: () => data(commands.newSale()),

  beginTender: (saleId) => data(commands.beginTender(saleId)),
  payCard: (payment) => data(commands.payCard(payment, null)),
  payCash: (payment) => data(commands.payCash(payment, null)),
  backToCart: (saleId) => data(commands.backToCart(saleId)),
  holdSale: (saleId) => data(commands.holdSale(saleId)),
  heldSales: () => data(commands.heldSales()),
  resumeSale: (saleId) => data(commands.resumeSale(saleId)),
  receipt: (saleId) => data(commands.receipt(saleId)),

  operation: (key) => data(commands.operation(key)),
  operations: (query) => data(commands.operations(query)),
  timeline: (key) => data(commands.timeline(key)),
  retryNow: async (key) => {
    await data(commands.retryNow(key));
  },
  summary: () => data(commands.summary()),
  probeStorage: async () => {
    await data(commands.probeStorage());
  },

  async listen(handlers: TillEvents) {
    const stops = await Promise.all([
      events.operationChanged.listen(({ payload }) => handlers.operationChanged(payload)),
      events.summaryChanged.listen(({ payload }) => handlers.summaryChanged(payload)),
      events.saleChanged.listen(({ payload }) => handlers.saleChanged(payload)),
    ]);
    return () => stops.forEach((stop) => stop());
  },
};
