// Every screen and state that is worth looking at, by the address that shows it in the demo build:
// one command can render each, in both themes and languages. A new state belongs in this list.

export type DemoState = {
  /** Names the picture. */
  name: string;
  /** What the demo is asked, without theme, language and size of text. */
  query: string;
  /** Where it is to be looked at in other sizes than 1280 × 800 too. */
  narrow?: boolean;
};

const charge = (card = 'tok_visa') => `pay,tender-card,card-${card},confirm-pay`;

export const demoStates: readonly DemoState[] = [
  { name: 'sale-empty', query: '', narrow: true },
  { name: 'sale', query: 'lines=5', narrow: true },
  { name: 'sale-long', query: 'lines=15&big=1', narrow: true },
  { name: 'sale-person', query: 'lines=3&person=Anastasia%20Konstantinopolskaya', narrow: true },
  { name: 'sale-weighing', query: 'do=article-5001' },
  { name: 'sale-no-articles', query: 'articles=0' },
  { name: 'sale-held', query: 'payments=8&lines=2', narrow: true },
  { name: 'pay-choice', query: 'lines=3&do=pay,tender-card', narrow: true },
  { name: 'pay-cash', query: 'lines=3&do=pay,tender-cash', narrow: true },
  { name: 'pay-change', query: 'lines=3&do=pay,tender-cash,cash-note-3,confirm-pay' },
  { name: 'pay-sending', query: `lines=3&bank=manual&do=${charge()}`, narrow: true },
  { name: 'pay-approved', query: `lines=3&after=50&do=${charge()}`, narrow: true },
  { name: 'pay-declined', query: `lines=3&after=50&do=${charge('tok_insufficient_funds')}`, narrow: true },
  { name: 'pay-unknown', query: `lines=3&bank=silent&after=50&do=${charge()}`, narrow: true },
  { name: 'pay-cancelled', query: `lines=3&bank=manual&state=cancelled&do=${charge()}` },
  { name: 'pay-attention', query: `lines=3&bank=manual&state=needs_attention&do=${charge()}` },
  { name: 'payments-empty', query: 'do=nav-payments' },
  { name: 'payments', query: 'payments=40&nohold=1&do=nav-payments', narrow: true },
  { name: 'payments-detail', query: 'payments=8&nohold=1&do=nav-payments,operation-*', narrow: true },
  { name: 'payments-paused', query: 'payments=8&nohold=1&paused=unauthorized&do=nav-payments' },
  { name: 'storage-locked', query: 'lines=3&storage=1&do=article-1001', narrow: true },
  { name: 'storage-details', query: 'lines=3&storage=1&do=article-1001,details' },
  { name: 'close-guard', query: `lines=3&bank=silent&after=50&closing=1&do=${charge()}`, narrow: true },
  { name: 'look', query: 'do=look-menu', narrow: true },
  { name: 'backlog', query: 'payments=8&nohold=1&backlog=1&do=nav-payments' },
  { name: 'lab-empty', query: 'do=nav-lab', narrow: true },
  { name: 'lab', query: 'payments=6&nohold=1&do=nav-lab', narrow: true },
  { name: 'lab-fault', query: `lines=1&after=50&do=nav-lab,fault-drop_after_charge,nav-sale,${charge()},nav-lab`, narrow: true },
  { name: 'lab-stopped', query: 'payments=6&nohold=1&do=nav-lab,fault-stopped' },
  { name: 'tour-pay', query: 'do=nav-lab,tour-start,tour-go', narrow: true },
  { name: 'tour-open', query: `do=nav-lab,tour-start,tour-go,article-1001,${charge()}`, narrow: true },
  { name: 'tour-done', query: `after=50&do=nav-lab,tour-start,tour-go,article-1001,${charge()},tour-end-fault,tour-go`, narrow: true },
];
