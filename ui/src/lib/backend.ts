// The one door between the window and the till. Screens and stores know this interface only.

import type { PayBackend } from './backend-pay';
import type { PinEntry } from './ipc.gen';
import type { SaleBackend } from './backend-sale';
import type {
  AppInfo,
  ArticlePage,
  ArticleQuery,
  BegunTender,
  CardPayment,
  CashPayment,
  CashTaken,
  Category,
  CloseRequested,
  CommandError,
  ErrorCode,
  LabFaultRule,
  LabState,
  Operation,
  OperationPage,
  OperationQuery,
  Receipt,
  Sale,
  Session,
  Summary,
  TimelineEntry,
} from './types';

export type TillEvents = {
  operationChanged: (operation: Operation) => void;
  summaryChanged: (summary: Summary) => void;
  saleChanged: (change: { saleId: string }) => void;
  /** Somebody logged in, or the till was locked: ask who it is. */
  sessionChanged: () => void;
  /** Somebody wants to close the window while these are not settled. */
  closeRequested: (asked: CloseRequested) => void;
};

/** Every method rejects with a `CommandError` and with nothing else. */
export interface Backend extends PayBackend, SaleBackend {
  appInfo(): Promise<AppInfo>;
  categories(): Promise<Category[]>;
  articles(query: ArticleQuery): Promise<ArticlePage>;

  openSale(): Promise<Sale>;
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

  session(): Promise<Session>;
  lock(): Promise<Session>;
  /** Closes the window, whatever is not settled: it goes on at the next start. */
  closeAnyway(): Promise<void>;

  /** All but `labState` fail with `lab-refused` where the bank does not do it; each with `no-lab` where there is none. */
  labState(): Promise<LabState>;
  labSetFaults(faults: LabFaultRule[]): Promise<void>;
  /** Ends every fault, and lets go what hangs. */
  labClear(): Promise<void>;
  /** Empties the account of one test card. */
  labDrain(): Promise<void>;
  labBankStop(): Promise<void>;
  labBankStart(): Promise<void>;

  /** Calls the handlers from now on; the result ends that. */
  listen(handlers: TillEvents): Promise<() => void>;
}

// Every code of the generated type, once: a missing or a strange one does not compile.
const codes: Record<ErrorCode, true> = {
  'accepted-offline': true,
  'already-final': true,
  backup: true,
  'card-may-be-charged': true,
  'category-in-use': true,
  clock: true,
  'count-needed': true,
  export: true,
  import: true,
  'in-use': true,
  'intent-reused': true,
  internal: true,
  'invalid-amount': true,
  'invalid-article': true,
  'invalid-barcode': true,
  'invalid-card': true,
  'invalid-discount': true,
  'invalid-key': true,
  'invalid-person': true,
  'invalid-pin': true,
  'invalid-price': true,
  'invalid-quantity': true,
  'invalid-reason': true,
  'invalid-reference': true,
  'invalid-return': true,
  'invalid-setting': true,
  'invalid-text': true,
  'key-used-twice': true,
  'lab-refused': true,
  locked: true,
  'needs-look': true,
  'no-bank': true,
  'no-lab': true,
  'no-printer': true,
  'no-shift': true,
  'not-allowed': true,
  'not-found': true,
  'not-refundable': true,
  'nothing-to-undo': true,
  'offline-limit': true,
  'other-terms': true,
  'over-due': true,
  'over-refund': true,
  'payment-unmatched': true,
  'pin-wait': true,
  'price-needed': true,
  'printer-disconnected': true,
  'printer-disk-full': true,
  'printer-fault': true,
  'printer-no-permission': true,
  'printer-not-found': true,
  'printer-refused': true,
  'printer-timeout': true,
  'printer-unreachable': true,
  restored: true,
  'restored-sale': true,
  'sale-changed': true,
  'sale-frozen': true,
  'sale-not-completed': true,
  'shift-open': true,
  storage: true,
  'unknown-article': true,
  'wrong-pin': true,
};

/** Whatever was thrown, as an error that the window has words for. */
export function asCommandError(thrown: unknown): CommandError {
  if (typeof thrown === 'object' && thrown !== null && 'code' in thrown) {
    const { code, message, retryable, details } = thrown as Record<string, unknown>;
    return {
      code: isCode(code) ? code : 'internal',
      message: typeof message === 'string' ? message : String(code),
      retryable: retryable === true,
      details: (details as CommandError['details'] | undefined) ?? null,
    };
  }
  return { code: 'internal', message: thrown instanceof Error ? thrown.message : String(thrown), retryable: false, details: null };
}

function isCode(code: unknown): code is ErrorCode {
  return typeof code === 'string' && Object.hasOwn(codes, code);
}
