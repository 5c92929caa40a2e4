// The bundled bank's lab in memory: what each fault does to a payment, and whose charge it was.

import type { FaultId } from './lab.svelte';
import type { LabFault, LabFaultRule, LabOperation, LabState, Operation } from './types';

type Meeting = { outcome: Partial<Operation>; event: string; detail: string };

const charging: ReadonlySet<LabFault> = new Set(['drop_after_charge', 'error_after_charge', 'truncated', 'garbage', 'foreign_amount', 'slow', 'gateway_drop']);
const answers: Record<LabFault, string> = {
  hang: 'time-out',
  slow: 'in-progress',
  gateway_slow: 'in-progress',
  drop_after_charge: 'reset',
  error_after_charge: 'internal',
  truncated: 'torn',
  garbage: 'not-the-bank',
  foreign_amount: 'not-the-bank',
  rate_limited: 'rate-limited',
  unavailable: 'unavailable',
  gateway_drop: 'in-progress',
};

export class MemoryLab {
  running = true;
  rule: { fault: LabFault; hits: number } | null = null;
  /** What the gateway counts otherwise than it should, for tests of what must never be. */
  readonly counted = new Map<string, number>();
  readonly counts = { drain: 0, clear: 0 };

  #charged = new Set<string>();
  #known = new Set<string>();

  get active(): FaultId | null {
    return this.running ? (this.rule?.fault ?? null) : 'stopped';
  }

  stop(): void {
    this.running = false;
    this.rule = null;
  }

  start(): void {
    this.running = true;
  }

  set(rules: LabFaultRule[]): void {
    const first = rules[0];
    this.rule = first ? { fault: first.fault, hits: 0 } : null;
  }

  clear(): void {
    this.counts.clear += 1;
    this.rule = null;
  }

  /** What a payment that is sent now meets; null where the bank does as it should. */
  meet(key: string): Meeting | null {
    if (!this.running) return { outcome: { state: 'saved', lastAnswer: 'no-connection' }, event: 'no-answer', detail: 'no-connection' };
    this.#known.add(key);
    if (this.rule === null) return null;
    this.rule.hits += 1;
    const { fault } = this.rule;
    if (charging.has(fault)) this.#charged.add(key);
    const lastAnswer = answers[fault];
    const state = lastAnswer === 'in-progress' ? 'sending' : 'unknown';
    return { outcome: { state, lastAnswer }, event: 'no-answer', detail: lastAnswer };
  }

  state(operations: Operation[]): LabState {
    const shown = operations.slice(0, 20).map((operation) => this.#beside(operation));
    if (!this.running) return { running: false, faults: [], bank: null, gateway: null, operations: shown };
    const charges = shown.reduce((sum, { gateway }) => sum + (gateway?.charges ?? 0), 0);
    const books = { charges, refunds: 0, charged: [], refunded: [] };
    return {
      running: true,
      faults: this.rule ? [{ ...this.rule, times: null }] : [],
      bank: { ...books, balanced: true },
      gateway: { ...books, requests: charges, distinctKeys: charges },
      operations: shown,
    };
  }

  #beside(operation: Operation): LabOperation {
    const { key, shortCode, kind, amount, currency, state, attempts } = operation;
    const beside = { key, shortCode, kind, amount, currency, tillState: state, tillAttempts: attempts, bank: null, gateway: null };
    if (!this.running || (attempts === 0 && !this.#known.has(key))) return beside;
    const final = state === 'approved' || state === 'declined' || state === 'cancelled';
    const charges = this.counted.get(key) ?? (state === 'approved' || this.#charged.has(key) ? 1 : 0);
    return {
      ...beside,
      bank: { state: final ? state : charges > 0 ? 'approved' : 'processing', gatewayAttempts: 1 },
      gateway: { key: `gw-${key}`, requests: 1, charges, refunds: 0 },
    };
  }
}
