import type { Backend, TillEvents } from './backend';
import { tauriPay } from './backend-pay';
import { saleCommands } from './backend-sale';
import { data } from './ipc';
import { commands, events } from './ipc.gen';

/** The till behind the desktop shell's commands. */
export const tauriBackend: Backend = {
  ...saleCommands,

  appInfo: () => data(commands.appInfo()),
  categories: () => data(commands.categories()),
  articles: (query) => data(commands.articles(query)),

  openSale: () => data(commands.openSale()),
  newSale: () => data(commands.newSale()),

  beginTender: (saleId) => data(commands.beginTender(saleId)),
  ...tauriPay,
  payCard: (payment, approval) => data(commands.payCard(payment, approval)),
  payCash: (payment, approval) => data(commands.payCash(payment, approval)),
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

  session: () => data(commands.session()),
  lock: () => data(commands.lock()),
  closeAnyway: async () => {
    await data(commands.closeAnyway());
  },

  labState: () => data(commands.labState()),
  labSetFaults: async (faults) => {
    await data(commands.labSetFaults(faults));
  },
  labClear: async () => {
    await data(commands.labClear());
  },
  labDrain: async () => {
    await data(commands.labDrain());
  },
  labBankStop: async () => {
    await data(commands.labBankStop());
  },
  labBankStart: async () => {
    await data(commands.labBankStart());
  },

  async listen(handlers: TillEvents) {
    const stops = await Promise.all([
      events.operationChanged.listen(({ payload }) => handlers.operationChanged(payload)),
      events.summaryChanged.listen(({ payload }) => handlers.summaryChanged(payload)),
      events.saleChanged.listen(({ payload }) => handlers.saleChanged(payload)),
      events.sessionChanged.listen(() => handlers.sessionChanged()),
      events.closeRequested.listen(({ payload }) => handlers.closeRequested(payload)),
    ]);
    return () => stops.forEach((stop) => stop());
  },
};
