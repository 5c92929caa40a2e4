// Every screen and state that is worth looking at, by the address that shows it in the demo build:
// one command can render each, in both themes and languages. A new state belongs in this list.

export type DemoState = {
  /** Names the picture. */
  name: string;
  /** What the demo is asked, without theme, language and size of text. */
  query: string;
  /** The test id that is in sight in it. */
  shows: string;
  /** Where it is to be looked at in other sizes than 1280 × 800 too. */
  narrow?: boolean;
};

const charge = (card = 'tok_visa') => `pay,tender-card,card-${card},confirm-pay`;

export const demoStates: readonly DemoState[] = [
  { name: 'sale-empty', query: '', shows: 'search', narrow: true },
  { name: 'sale', query: 'lines=5', shows: 'line-5', narrow: true },
  { name: 'sale-long', query: 'lines=15&big=1', shows: 'line-15', narrow: true },
  { name: 'sale-person', query: 'lines=3&person=Anastasia%20Konstantinopolskaya', shows: 'lock', narrow: true },
  { name: 'sale-weighing', query: 'do=article-5001', shows: 'quantity-set' },
  { name: 'sale-no-articles', query: 'articles=0', shows: 'search' },
  { name: 'sale-held', query: 'payments=8&lines=2', shows: 'held-sales', narrow: true },
  { name: 'pay-choice', query: 'lines=3&do=pay,tender-card', shows: 'card-tok_visa', narrow: true },
  { name: 'pay-cash', query: 'lines=3&do=pay,tender-cash', shows: 'cash-exact', narrow: true },
  { name: 'pay-change', query: 'lines=3&do=pay,tender-cash,cash-note-2000,confirm-pay', shows: 'change' },
  { name: 'pay-sending', query: `lines=3&bank=manual&do=${charge()}`, shows: 'pay-sending', narrow: true },
  { name: 'pay-approved', query: `lines=3&after=50&do=${charge()}`, shows: 'pay-approved', narrow: true },
  { name: 'pay-declined', query: `lines=3&after=50&do=${charge('tok_insufficient_funds')}`, shows: 'pay-declined', narrow: true },
  { name: 'pay-unknown', query: `lines=3&bank=silent&after=50&do=${charge()}`, shows: 'pay-unknown', narrow: true },
  { name: 'pay-cancelled', query: `lines=3&bank=manual&state=cancelled&do=${charge()}`, shows: 'pay-cancelled' },
  { name: 'pay-attention', query: `lines=3&bank=manual&state=needs_attention&do=${charge()}`, shows: 'pay-attention' },
  { name: 'payments-empty', query: 'do=nav-payments', shows: 'payments-empty' },
  { name: 'payments', query: 'payments=40&nohold=1&do=nav-payments', shows: 'payments', narrow: true },
  { name: 'payments-detail', query: 'payments=8&nohold=1&do=nav-payments,operation-*', shows: 'operation-timeline', narrow: true },
  { name: 'payments-paused', query: 'payments=8&nohold=1&paused=unauthorized&do=nav-payments', shows: 'payments' },
  { name: 'storage-locked', query: 'lines=3&storage=1&do=article-1001', shows: 'storage-locked', narrow: true },
  { name: 'storage-details', query: 'lines=3&storage=1&do=article-1001,details', shows: 'storage-locked' },
  { name: 'close-guard', query: `lines=3&bank=silent&after=50&closing=1&do=${charge()}`, shows: 'close-guard', narrow: true },
  { name: 'look', query: 'do=look-menu', shows: 'language-ru', narrow: true },
  { name: 'backlog', query: 'payments=8&nohold=1&backlog=1&do=nav-payments', shows: 'backlog' },
  { name: 'lab-empty', query: 'do=nav-lab', shows: 'lab-empty', narrow: true },
  { name: 'lab', query: 'payments=6&nohold=1&do=nav-lab', shows: 'lab-verdict', narrow: true },
  { name: 'lab-fault', query: `lines=1&after=50&do=nav-lab,fault-drop_after_charge,nav-sale,${charge()},nav-lab`, shows: 'lab-charge-count', narrow: true },
  { name: 'lab-stopped', query: 'payments=6&nohold=1&do=nav-lab,fault-stopped', shows: 'lab-verdict' },
  { name: 'tour-pay', query: 'do=nav-lab,tour-start,tour-go', shows: 'tour', narrow: true },
  { name: 'tour-open', query: `do=nav-lab,tour-start,tour-go,article-1001,${charge()}`, shows: 'tour-end-fault', narrow: true },
  { name: 'tour-done', query: `after=50&do=nav-lab,tour-start,tour-go,article-1001,${charge()},tour-end-fault,tour-go`, shows: 'tour-next', narrow: true },
];
