// What the window asks of the till about payments: offline, cancelling, cash in a card's place, late
// declines, sales given up. A part of the one `Backend`.

import { commands } from './ipc.gen';
import { data } from './ipc';
import type {
  BegunTender,
  CashPayment,
  CashTaken,
  CollectAgain,
  CollectInCash,
  LateDecline,
  LatePage,
  LateQuery,
  NewVoid,
  OfflineAsk,
  Operation,
  PinEntry,
  PricedVoid,
  Sale,
  SaleVoid,
  TakeOffline,
} from './ipc.gen';

export interface PayBackend {
  /** What taking a card payment offline would mean. Saves nothing. */
  offlineAsk(tenderId: string): Promise<OfflineAsk>;
  takeOffline(take: TakeOffline, approval: PinEntry | null): Promise<Operation>;
  /** At once where it was never sent; else the wish is saved, and the bank has the word. */
  cancel(key: string): Promise<Operation>;
  beginCashInstead(cardTenderId: string): Promise<BegunTender>;
  payCashInstead(payment: CashPayment, cardTenderId: string, approval: PinEntry | null): Promise<CashTaken>;

  lateDeclines(query: LateQuery): Promise<LatePage>;
  beginCollecting(lateTenderId: string): Promise<BegunTender>;
  collectAgain(collect: CollectAgain): Promise<Operation>;
  collectInCash(collect: CollectInCash): Promise<CashTaken>;
  writeOff(lateTenderId: string, reason: string, approval: PinEntry | null): Promise<LateDecline>;

  beginVoid(saleId: string): Promise<PricedVoid>;
  voidSale(fresh: NewVoid, approval: PinEntry | null): Promise<SaleVoid>;

  /** One sale, whatever became of it. */
  saleOf(saleId: string): Promise<Sale>;
}

export const tauriPay: PayBackend = {
  offlineAsk: (tenderId) => data(commands.offlineAsk(tenderId)),
  takeOffline: (take, approval) => data(commands.takeOffline(take, approval)),
  cancel: (key) => data(commands.cancel(key)),
  beginCashInstead: (cardTenderId) => data(commands.beginCashInstead(cardTenderId)),
  payCashInstead: (payment, cardTenderId, approval) => data(commands.payCashInstead(payment, cardTenderId, approval)),

  lateDeclines: (query) => data(commands.lateDeclines(query)),
  beginCollecting: (lateTenderId) => data(commands.beginCollecting(lateTenderId)),
  collectAgain: (collect) => data(commands.collectAgain(collect)),
  collectInCash: (collect) => data(commands.collectInCash(collect)),
  writeOff: (lateTenderId, reason, approval) => data(commands.writeOff(lateTenderId, reason, approval)),

  beginVoid: (saleId) => data(commands.beginVoid(saleId)),
  voidSale: (fresh, approval) => data(commands.voidSale(fresh, approval)),

  saleOf: (saleId) => data(commands.sale(saleId)),
};
