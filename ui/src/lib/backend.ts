// The one door between the window and the till. Screens and stores know this interface only.

import type { PayBackend } from './backend-pay';
import type { PinEntry } from './ipc.gen';
import type {
  AppInfo,
  ArticlePage,
  ArticleQuery,
  BegunTender,
  CardPayment,
  CashPayment,
  CashTaken,
  Category,
  CommandError,
  ErrorCode,
  Operation,
  OperationPage,
  OperationQuery,
  Receipt,
  Sale,
  Summary,
  TimelineEntry,
} from './types';

export type TillEvents = {
  operationChanged: (operation: Operation) => void;
  summaryChanged: (summary: Summary) => void;
  saleChanged: (change: { saleId: string }) => void;
};

/** Every method rejects with a `CommandError` and with nothing else. */
export interface Backend extends PayBackend {
  appInfo(): Promise<AppInfo>;
  categories(): Promise<Category[]>;
  articles(query: ArticleQuery): Promise<ArticlePage>;

  openSale(): Promise<Sale>;
  addArticle(sku: string, quantity: string | null): Promise<Sale>;
  setQuantity(lineId: string, quantity: string): Promise<Sale>;
  removeLine(lineId: string): Promise<Sale>;
  clearSale(): Promise<Sale>;
  newSale(): Promise<Sale>;

  beginTender(saleId: string): Promise<BegunTender>;
  payCard(payment: CardPayment, approval: PinEntry | null): Promise<Operation>;
  payCash(payment: CashPayment, approval: PinEntry | null): Promise<CashTaken>;
  backToCart(saleId: string): Promise<Sale>;
  holdSale(saleId: string): Promise<Sale>;
  heldSales(): Promise<Sale[]>;
  resumeSale(saleId: string): Promise<Sale>;
  receipt(saleId: string): Promise<Receipt>;

  operation(key: string): Promise<Operation>;
  operations(query: OperationQuery): Promise<OperationPage>;
  timeline(key: string): Promise<TimelineEntry[]>;
  /** A wake. What waits for the bank's Retry-After still waits. */
  retryNow(key: string | null): Promise<void>;
  summary(): Promise<Summary>;
  /** A write that reaches the disk: resolves where the till can save, and changes nothing. */
  probeStorage(): Promise<void>;

  /** Calls the handlers from now on; the result ends that. */
  listen(handlers: TillEvents): Promise<() => void>;
}

const codes: readonly ErrorCode[] = [
  'storage',
  'sale-changed',
  'sale-frozen',
  'unknown-article',
  'invalid-quantity',
  'invalid-card',
  'invalid-amount',
  'over-due',
  'intent-reused',
  'not-found',
  'no-bank',
  'internal',
];

/** Whatever was thrown, as an error that the window has words for. */
export function asCommandError(thrown: unknown): CommandError {
  if (typeof thrown === 'object' && thrown !== null && 'code' in thrown) {
    const { code, message, retryable } = thrown as Record<string, unknown>;
    const known = codes.find((each) => each === code);
    return {
      code: known ?? 'internal',
      message: typeof message === 'string' ? message : String(code),
      retryable: retryable === true,
    };
  }
  return { code: 'internal', message: thrown instanceof Error ? thrown.message : String(thrown), retryable: false };
}
