// What crosses between the window and the till. Amounts are whole minor units and are never
// computed with here: the till says every figure. Times are RFC 3339, ids are opaque.

export type ErrorCode =
  | 'storage'
  | 'sale-changed'
  | 'sale-frozen'
  | 'unknown-article'
  | 'invalid-quantity'
  | 'invalid-amount'
  | 'over-due'
  | 'intent-reused'
  | 'not-found'
  | 'no-bank'
  | 'internal';

export type CommandError = { code: ErrorCode; message: string; retryable: boolean };

export type TestCard = { token: string; label: string; outcome: 'approves' | 'declines' | 'account' };

export type AppInfo = {
  version: string;
  dataDir: string;
  currency: string;
  decimals: number;
  cashStep: number;
  bank: { bundled: boolean; address: string };
  testCards: TestCard[];
};

export type Category = { id: string; name: string; colour: string; count: number };

export type Unit = 'piece' | 'weight';

export type Article = {
  sku: string;
  name: string;
  price: number;
  category: string;
  colour: string;
  unit: Unit;
  favourite: boolean;
  taxRate: string;
};

export type ArticleQuery = { text: string; category: string | null };
export type ArticlePage = { articles: Article[]; more: boolean };

export type OperationState =
  | 'saved'
  | 'sending'
  | 'unknown'
  | 'approved'
  | 'declined'
  | 'cancelled'
  | 'needs_attention';

export type Operation = {
  seq: number;
  key: string;
  shortCode: string;
  kind: 'payment' | 'refund';
  state: OperationState;
  amount: number;
  currency: string;
  attempts: number;
  createdAt: string;
  updatedAt: string;
  dueAt: string | null;
  notBefore: string | null;
  reason: string | null;
  saleId: string;
  receiptNumber: number | null;
  approvalCode: string | null;
  declineCode: string | null;
  cardBrand: string | null;
  last4: string | null;
  lastAnswer: string | null;
};

export type Line = {
  id: string;
  position: number;
  sku: string;
  name: string;
  unit: Unit;
  unitPrice: number;
  quantity: string;
  gross: number;
  discount: number;
  total: number;
  taxRate: string;
};

export type TenderKind = 'card' | 'cash';

export type TenderState = 'settling' | 'approved' | 'declined' | 'cancelled' | 'needs_attention' | 'taken';

export type Tender = {
  id: string;
  kind: TenderKind;
  amount: number;
  tendered: number | null;
  change: number | null;
  state: TenderState;
  operation: Operation | null;
};

export type Sale = {
  id: string;
  state: 'open' | 'paying' | 'completed';
  lines: Line[];
  taxes: { rate: string; net: number; tax: number }[];
  net: number;
  tax: number;
  discount: number;
  total: number;
  paid: number;
  due: number;
  currency: string;
  tenders: Tender[];
  receiptNumber: number | null;
};

export type BegunTender = {
  tenderId: string;
  due: number;
  cashDue: number;
  cashNotes: number[];
  rounding: number;
};

export type CardPayment = { tenderId: string; saleId: string; amount: number; card: string };
export type CashPayment = { tenderId: string; saleId: string; tendered: number };
export type CashTaken = { sale: Sale; change: number; rounding: number; drawer: number };

export type OperationQuery = { state: OperationState | null; before: number | null; limit: number };
export type OperationPage = { operations: Operation[]; more: boolean };

export type TimelineEntry = { at: string; attempt: number; event: string; detail: string };

export type Chip = 'ok' | 'busy' | 'waiting' | 'paused' | 'attention';

export type Summary = {
  unsettled: number;
  sending: number;
  waiting: number;
  amounts: { currency: string; amount: number }[];
  oldestAt: string | null;
  needsAttention: number;
  /** Of `unsettled`: those that wait for another bank or merchant than the one asked now. */
  otherBank: number;
  paused: string | null;
  bankReachable: boolean | null;
  bankProblem: string | null;
  lastContactAt: string | null;
  nextAttemptAt: string | null;
  chip: Chip;
};

export type Receipt = { saleId: string; receiptNumber: number | null; lines: string[]; text: string };
