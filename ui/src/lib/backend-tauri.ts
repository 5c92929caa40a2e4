import { invoke } from '@tauri-apps/api/core';
import { listen } from '@tauri-apps/api/event';

import { asCommandError, type Backend, type TillEvents } from './backend';
import type { CardPayment, CashPayment, ArticleQuery, Operation, OperationQuery, Summary } from './types';

async function call<T>(command: string, args?: Record<string, unknown>): Promise<T> {
  try {
    return await invoke<T>(command, args);
  } catch (thrown) {
    throw asCommandError(thrown);
  }
}

/** The till behind the desktop shell's commands. */
export const tauriBackend: Backend = {
  appInfo: () => call('app_info'),
  categories: () => call('categories'),
  articles: (query: ArticleQuery) => call('articles', { query }),

  openSale: () => call('open_sale'),
  addArticle: (sku: string, quantity: string | null) => call('add_article', { sku, quantity }),
  setQuantity: (lineId: string, quantity: string) => call('set_quantity', { lineId, quantity }),
  removeLine: (lineId: string) => call('remove_line', { lineId }),
  clearSale: () => call('clear_sale'),
  newSale: () => call('new_sale'),

  beginTender: (saleId: string) => call('begin_tender', { saleId }),
  payCard: (payment: CardPayment) => call('pay_card', { payment }),
  payCash: (payment: CashPayment) => call('pay_cash', { payment }),
  backToCart: (saleId: string) => call('back_to_cart', { saleId }),
  holdSale: (saleId: string) => call('hold_sale', { saleId }),
  heldSales: () => call('held_sales'),
  resumeSale: (saleId: string) => call('resume_sale', { saleId }),
  receipt: (saleId: string) => call('receipt', { saleId }),

  operation: (key: string) => call('operation', { key }),
  operations: (query: OperationQuery) => call('operations', { query }),
  timeline: (key: string) => call('timeline', { key }),
  retryNow: async (key: string | null) => {
    await call<null>('retry_now', { key });
  },
  summary: () => call('summary'),

  async listen(handlers: TillEvents) {
    const stops = await Promise.all([
      listen<Operation>('operation-changed', (event) => handlers.operationChanged(event.payload)),
      listen<Summary>('summary-changed', (event) => handlers.summaryChanged(event.payload)),
      listen<{ saleId: string }>('sale-changed', (event) => handlers.saleChanged(event.payload)),
    ]);
    return () => stops.forEach((stop) => stop());
  },
};
