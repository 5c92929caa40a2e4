// What crosses between the window and the till, as the till's commands declare it. Amounts are
// whole minor units and are never computed with here: the till says every figure.

export type {
  AppInfo,
  Article,
  ArticlePage,
  ArticleQuery,
  BegunTender,
  CardPayment,
  CashPayment,
  CashTaken,
  Category,
  Chip,
  CommandError,
  ErrorCode,
  Line,
  Operation,
  OperationPage,
  OperationQuery,
  OperationState,
  Receipt,
  Sale,
  Summary,
  Tender,
  TenderKind,
  TimelineEntry,
  Unit,
} from './ipc.gen';
