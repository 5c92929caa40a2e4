// What the in-memory till does about payments beside taking them: offline within limits, cancelling, cash
// in a card's place, late declines, sales given up. It keeps the contract's promises.

import type { PayBackend } from './backend-pay';
import type {
  CashTaken,
  CollectAgain,
  CollectInCash,
  LateDecline,
  LateQuery,
  NewVoid,
  OfflineAsk,
  OverLimit,
  PinEntry,
  ReturnLeg,
  Right,
  SaleVoid,
  TakeOffline,
} from './ipc.gen';
import { isOpen } from './panel';
import type { BegunTender, CashPayment, CommandError, ErrorCode, Operation, Sale, Tender } from './types';

/** What it needs of the till that it belongs to. Sales and tenders are the living ones. */
export type PayWorld = {
  sale(id: string): Sale;
  sales(): Sale[];
  operation(key: string): Operation;
  save(): void;
  /** Refuses what takes a manager. */
  allow(right: Right, approval: PinEntry | null): void;
  id(kind: string): string;
  copy(sale: Sale): Sale;
  refuse(code: ErrorCode, message: string): CommandError;
  settle(key: string, change: Partial<Operation>, event: string, detail?: string): void;
  /** Makes an operation with its tender, and sends it. */
  payByCard(sale: Sale, tender: Tender, card: string, kind: Operation['kind']): Operation;
  begin(due: number): BegunTender;
  payCash(payment: CashPayment): Promise<CashTaken>;
  complete(sale: Sale): void;
  tellSale(saleId: string): void;
};

export type OfflineLimits = { paymentMax: number; sumMax: number; countMax: number; ageMaxH: number };

export class MemoryPay implements PayBackend {
  limits: OfflineLimits = { paymentMax: 5000, sumMax: 100_000, countMax: 75, ageMaxH: 24 };
  /** How often each of these made something. */
  readonly counts = { takenOffline: 0, collected: 0, writtenOff: 0, voided: 0, cancelled: 0 };

  #late = new Map<string, LateDecline>();
  #contacts = new Map<string, string | null>();
  #voids = new Map<string, SaleVoid>();
  #collects = new Map<string, string>();

  constructor(readonly world: PayWorld) {}

  /** A step of an operation: what it means where its goods were gone before. */
  settled(sale: Sale, tender: Tender, operation: Operation): void {
    const lateId = this.#collects.get(tender.id);
    const late = this.#late.get(lateId ?? tender.id);
    if (late) {
      late.operation = operation;
      this.#move(late, operation);
    } else if (tender.takenOfflineAt !== null && sale.completedAt !== null && !isOpen(operation) && operation.state !== 'approved') {
      this.#late.set(tender.id, this.#begin(sale, tender, operation));
    }
  }

  #begin(sale: Sale, tender: Tender, operation: Operation): LateDecline {
    return {
      seq: this.#late.size + 1,
      tenderId: tender.id,
      saleId: sale.id,
      saleNumber: sale.number,
      receiptNumber: sale.receiptNumber,
      takenAt: tender.takenOfflineAt ?? sale.createdAt,
      declinedAt: new Date(Date.now()).toISOString(),
      state: operation.state === 'needs_attention' ? 'attention' : 'open',
      amount: tender.amount,
      returned: 0,
      currency: sale.currency,
      contact: this.#contacts.get(tender.id) ?? null,
      operation,
      cash: null,
      endedAt: null,
      reason: null,
      writtenOffBy: null,
    };
  }

  #move(late: LateDecline, { state }: Operation): void {
    if (late.state !== 'collecting' && late.state !== 'writing_off' && late.state !== 'attention') return;
    if (state === 'approved') late.state = 'settled';
    else if (state === 'declined' || state === 'cancelled') late.state = late.state === 'writing_off' ? 'written_off' : 'open';
  }

  #tender(tenderId: string): { sale: Sale; tender: Tender } {
    for (const sale of this.world.sales()) {
      const tender = sale.tenders.find((each) => each.id === tenderId);
      if (tender) return { sale, tender };
    }
    throw this.world.refuse('not-found', tenderId);
  }

  #operationOf(tender: Tender): Operation {
    return this.world.operation(tender.operation?.key ?? '');
  }

  async offlineAsk(tenderId: string): Promise<OfflineAsk> {
    const { sale, tender } = this.#tender(tenderId);
    const stored = this.world
      .sales()
      .flatMap((each) => each.tenders)
      .filter((each) => each.takenOfflineAt !== null && each.state === 'settling');
    const amount = stored.reduce((sum, each) => sum + each.amount, 0);
    const { limits } = this;
    const over: OverLimit[] = [];
    if (tender.amount > limits.paymentMax) over.push('payment');
    if (tender.amount + amount > limits.sumMax) over.push('sum');
    if (stored.length >= limits.countMax) over.push('count');
    const { state } = this.#operationOf(tender);
    return {
      tenderId,
      amount: tender.amount,
      currency: sale.currency,
      stored: amount,
      payments: stored.length,
      oldestAt: null,
      ...limits,
      over: tender.takenOfflineAt === null ? over : [],
      isTaken: tender.takenOfflineAt !== null,
      cashInstead: state === 'saved' && tender.takenOfflineAt === null,
    };
  }

  async takeOffline({ tenderId, contact, overLimit }: TakeOffline, approval: PinEntry | null): Promise<Operation> {
    const { sale, tender } = this.#tender(tenderId);
    const operation = this.#operationOf(tender);
    if (tender.takenOfflineAt !== null) return operation;
    if (!isOpen(operation) || operation.cancelWished) throw this.world.refuse('already-final', operation.key);
    const { over } = await this.offlineAsk(tenderId);
    if (over.length > 0) {
      if (!overLimit) throw this.world.refuse('offline-limit', over.join());
      this.world.allow('offline_over_limit', approval);
    }
    this.world.save();
    this.counts.takenOffline += 1;
    tender.takenOfflineAt = new Date(Date.now()).toISOString();
    this.#contacts.set(tenderId, contact);
    sale.due -= tender.amount;
    if (sale.due === 0) this.world.complete(sale);
    this.world.settle(operation.key, { acceptedOffline: true }, 'accepted-offline');
    return this.#operationOf(tender);
  }

  async cancel(key: string): Promise<Operation> {
    const operation = this.world.operation(key);
    if (operation.state === 'approved' || operation.state === 'declined') throw this.world.refuse('already-final', key);
    if (operation.acceptedOffline) throw this.world.refuse('accepted-offline', key);
    if (operation.state === 'cancelled' || operation.cancelWished) return { ...operation };
    this.world.save();
    this.counts.cancelled += 1;
    const change: Partial<Operation> = operation.state === 'saved' ? { state: 'cancelled' } : { cancelWished: true };
    this.world.settle(key, change, operation.state === 'saved' ? 'cancelled' : 'cancel-wished');
    return { ...this.world.operation(key) };
  }

  async beginCashInstead(cardTenderId: string): Promise<BegunTender> {
    const { sale, tender } = this.#tender(cardTenderId);
    if (this.#operationOf(tender).state !== 'saved') throw this.world.refuse('card-may-be-charged', cardTenderId);
    return this.world.begin(sale.due);
  }

  async payCashInstead(payment: CashPayment, cardTenderId: string): Promise<CashTaken> {
    const { tender } = this.#tender(cardTenderId);
    const { key, state } = this.#operationOf(tender);
    if (state !== 'saved') throw this.world.refuse('card-may-be-charged', cardTenderId);
    this.world.settle(key, { state: 'cancelled' }, 'cancelled');
    return this.world.payCash(payment);
  }

  async lateDeclines({ withEnded, before, limit }: LateQuery) {
    const found = [...this.#late.values()]
      .reverse()
      .filter((late) => (withEnded || (late.state !== 'settled' && late.state !== 'written_off')) && (before === null || late.seq < before));
    return { late: structuredClone(found.slice(0, limit)), more: found.length > limit };
  }

  #owed(lateTenderId: string): LateDecline {
    const late = this.#late.get(lateTenderId);
    if (!late) throw this.world.refuse('not-found', lateTenderId);
    if (late.state === 'collecting') throw this.world.refuse('sale-frozen', lateTenderId);
    if (late.state === 'attention' || late.state === 'writing_off') throw this.world.refuse('card-may-be-charged', lateTenderId);
    if (late.state !== 'open') throw this.world.refuse('already-final', lateTenderId);
    return late;
  }

  async beginCollecting(lateTenderId: string): Promise<BegunTender> {
    return this.world.begin(this.#owed(lateTenderId).amount);
  }

  #collecting(tenderId: string, late: LateDecline, kind: Tender['kind']): Tender {
    this.counts.collected += 1;
    this.#collects.set(tenderId, late.tenderId);
    return {
      id: tenderId,
      kind,
      amount: late.amount,
      tendered: null,
      change: null,
      state: kind === 'cash' ? 'taken' : 'settling',
      replaces: late.tenderId,
      takenOfflineAt: null,
      operation: null,
    };
  }

  async collectAgain({ tenderId, lateTenderId, card }: CollectAgain): Promise<Operation> {
    if (this.#collects.has(tenderId)) return { ...this.#operationOf(this.#tender(tenderId).tender) };
    const late = this.#owed(lateTenderId);
    this.world.save();
    const sale = this.world.sale(late.saleId);
    const made = this.world.payByCard(sale, this.#collecting(tenderId, late, 'card'), card, 'payment');
    late.operation = made;
    late.state = 'collecting';
    this.world.tellSale(sale.id);
    return { ...made };
  }

  async collectInCash({ tenderId, lateTenderId, tendered }: CollectInCash): Promise<CashTaken> {
    const late = this.#owed(lateTenderId);
    if (tendered < late.amount) throw this.world.refuse('invalid-amount', String(tendered));
    this.world.save();
    const sale = this.world.sale(late.saleId);
    const change = tendered - late.amount;
    sale.tenders.push({ ...this.#collecting(tenderId, late, 'cash'), tendered, change });
    late.cash = late.amount;
    late.state = 'settled';
    this.world.tellSale(sale.id);
    return { sale: this.world.copy(sale), change, rounding: 0, drawer: late.amount };
  }

  async writeOff(lateTenderId: string, reason: string, approval: PinEntry | null): Promise<LateDecline> {
    const late = this.#late.get(lateTenderId);
    if (!late) throw this.world.refuse('not-found', lateTenderId);
    if (reason.trim() === '') throw this.world.refuse('invalid-reason', 'say why');
    if (late.state === 'settled') throw this.world.refuse('already-final', lateTenderId);
    this.world.allow('write_off', approval);
    this.world.save();
    this.counts.writtenOff += 1;
    late.state = late.state === 'open' ? 'written_off' : 'writing_off';
    late.reason = reason;
    late.writtenOffBy = 'Maria';
    this.world.tellSale(late.saleId);
    return structuredClone(late);
  }

  #paid(saleId: string): { sale: Sale; cards: Tender[]; cash: Tender[] } {
    const sale = this.world.sale(saleId);
    const cards = sale.tenders.filter(({ state, takenOfflineAt }) => state === 'approved' || (state === 'settling' && takenOfflineAt));
    const cash = sale.tenders.filter(({ state }) => state === 'taken');
    if (sale.state !== 'paying' || cards.length + cash.length === 0) throw this.world.refuse('sale-changed', saleId);
    if (sale.tenders.some(({ state, takenOfflineAt }) => state === 'settling' && takenOfflineAt === null))
      throw this.world.refuse('card-may-be-charged', saleId);
    return { sale, cards, cash };
  }

  async beginVoid(saleId: string) {
    const { sale, cards, cash } = this.#paid(saleId);
    const sum = (tenders: Tender[]) => tenders.reduce((all, { amount }) => all + amount, 0);
    return { voidId: this.world.id('void'), cards: sum(cards), cash: sum(cash), currency: sale.currency };
  }

  async voidSale({ voidId, saleId, reason }: NewVoid, approval: PinEntry | null): Promise<SaleVoid> {
    const known = this.#voids.get(voidId);
    if (known) return known;
    const { sale, cards, cash } = this.#paid(saleId);
    this.world.allow('refund', approval);
    this.world.save();
    this.counts.voided += 1;
    const leg = (tender: Tender, state: ReturnLeg['state'], operation: Operation | null): ReturnLeg => ({
      id: this.world.id('leg'),
      kind: tender.kind,
      amount: tender.amount,
      rounding: 0,
      state,
      replaces: null,
      tenderId: tender.id,
      operation,
    });
    const backTo = (tender: Tender) => {
      const refund = { ...tender, id: this.world.id('refund'), operation: null };
      const card = this.#operationOf(tender);
      const made = this.world.payByCard(sale, refund, 'tok_visa', 'refund');
      return leg(tender, 'settling', { ...made, cardBrand: card.cardBrand, last4: card.last4 });
    };
    const legs = [...cards.map(backTo), ...cash.map((tender) => leg(tender, 'handed_over', null))];
    const { cards: toCards, cash: inCash } = await this.beginVoid(saleId);
    sale.state = 'voided';
    const made: SaleVoid = {
      id: voidId,
      saleId,
      saleNumber: sale.number,
      cards: toCards,
      cash: inCash,
      currency: sale.currency,
      legs,
      state: cards.length > 0 ? 'settling' : 'done',
      reason,
      createdAt: new Date(Date.now()).toISOString(),
    };
    this.#voids.set(voidId, made);
    this.world.tellSale(saleId);
    return made;
  }

  async saleOf(saleId: string): Promise<Sale> {
    return this.world.copy(this.world.sale(saleId));
  }
}
