-- What becomes of a payment after its click: taken offline, declined after the goods were gone, given back.

-- A sale that was paid in part and then given up, with all of that given back (`voids`, below). Its state is still `paying`, which
-- means here that it never completed.
ALTER TABLE sales ADD COLUMN voided_at INTEGER CHECK (voided_at IS NULL OR (state = 'paying' AND held = 1));

DROP INDEX sales_put_aside;
CREATE INDEX sales_put_aside ON sales (created_at, id)
    WHERE held = 1 AND has_cart = 1 AND state <> 'completed' AND dropped_at IS NULL AND voided_at IS NULL;

---- Taken offline

-- Goods that were handed over before the bank answered. A mark beside the tender, whose state goes on as ever. `over_limit` where a
-- person with the right to it took it all the same. The contact of the customer is theirs: it may be changed and taken away.
CREATE TABLE taken_offline (
    tender_id  TEXT PRIMARY KEY REFERENCES tenders (id),
    at         INTEGER NOT NULL,
    over_limit INTEGER NOT NULL CHECK (over_limit IN (0, 1)),
    contact    TEXT CHECK (length(contact) BETWEEN 1 AND 200),
    settled_at INTEGER
) STRICT, WITHOUT ROWID;

-- Stays small however many were taken offline in all these years.
CREATE INDEX taken_offline_unsettled ON taken_offline (at) WHERE settled_at IS NULL;

-- What older programs took offline, which knew no limits: the operation had the mark alone, by an id that is a blob there.
INSERT INTO taken_offline (tender_id, at, over_limit, settled_at)
SELECT tenders.id, operations.accepted_offline_at, 1, operations.settled_at
FROM operations JOIN tenders ON tenders.id = substr(lower(hex(operations.intent_id)), 1, 8) || '-'
    || substr(lower(hex(operations.intent_id)), 9, 4) || '-' || substr(lower(hex(operations.intent_id)), 13, 4) || '-'
    || substr(lower(hex(operations.intent_id)), 17, 4) || '-' || substr(lower(hex(operations.intent_id)), 21)
WHERE operations.accepted_offline_at IS NOT NULL;

-- In minor units of the shop's currency, a number and hours. Where no setting is there yet, the first start writes all.
INSERT INTO settings (name, value)
SELECT new.column1, new.column2
FROM (VALUES ('offline_payment_max', '5000'), ('offline_sum_max', '100000'), ('offline_count_max', '75'),
    ('offline_age_max_h', '24')) AS new
WHERE EXISTS (SELECT 1 FROM settings);

-- What is at the shop's risk now. Its sum is of the shop's currency alone: there is no rate here to add another by.
CREATE VIEW offline_stored (amount, payments, oldest_at) AS
SELECT coalesce(sum(CASE WHEN sales.currency = (SELECT value FROM settings WHERE name = 'currency') THEN tenders.amount ELSE 0 END), 0),
    count(*), min(tenders.created_at)
FROM taken_offline CROSS JOIN tenders ON tenders.id = taken_offline.tender_id CROSS JOIN sales ON sales.id = tenders.sale_id
WHERE taken_offline.settled_at IS NULL;

CREATE TRIGGER taken_offline_while_open BEFORE INSERT ON taken_offline
WHEN NEW.settled_at IS NOT NULL OR NOT EXISTS (
    SELECT 1 FROM tenders JOIN sales ON sales.id = tenders.sale_id
    WHERE tenders.id = NEW.tender_id AND tenders.kind = 'card' AND tenders.state = 'settling' AND sales.state = 'paying'
        AND sales.voided_at IS NULL)
BEGIN SELECT RAISE(ABORT, 'only an open card payment of a sale under payment is taken offline'); END;

CREATE TRIGGER taken_offline_within_limits BEFORE INSERT ON taken_offline
WHEN NEW.over_limit = 0 AND EXISTS (
    SELECT 1 FROM tenders JOIN sales ON sales.id = tenders.sale_id CROSS JOIN offline_stored AS stored
    WHERE tenders.id = NEW.tender_id AND (
        sales.currency <> (SELECT value FROM settings WHERE name = 'currency')
        OR tenders.amount > (SELECT CAST(value AS INTEGER) FROM settings WHERE name = 'offline_payment_max')
        OR tenders.amount + stored.amount > (SELECT CAST(value AS INTEGER) FROM settings WHERE name = 'offline_sum_max')
        OR stored.payments + 1 > (SELECT CAST(value AS INTEGER) FROM settings WHERE name = 'offline_count_max')
        -- Where the clock was set back, nobody can tell how old the oldest is.
        OR stored.oldest_at - NEW.at > 300000
        OR NEW.at - stored.oldest_at
            >= 3600000 * (SELECT CAST(value AS INTEGER) FROM settings WHERE name = 'offline_age_max_h')))
BEGIN SELECT RAISE(ABORT, 'a payment is taken offline within the limits, or by a person who may exceed them'); END;

CREATE TRIGGER taken_offline_stays_so BEFORE UPDATE ON taken_offline
WHEN NEW.tender_id IS NOT OLD.tender_id OR NEW.at IS NOT OLD.at OR NEW.over_limit IS NOT OLD.over_limit
    OR (NEW.settled_at IS NOT OLD.settled_at AND (OLD.settled_at IS NOT NULL OR NOT EXISTS (
        SELECT 1 FROM tenders WHERE id = OLD.tender_id AND state IN ('approved', 'declined', 'cancelled'))))
BEGIN SELECT RAISE(ABORT, 'what was taken offline stays so'); END;

CREATE TRIGGER taken_offline_stays BEFORE DELETE ON taken_offline
BEGIN SELECT RAISE(ABORT, 'what was taken offline stays so'); END;

CREATE TRIGGER taken_offline_settles AFTER UPDATE OF state ON tenders
WHEN NEW.state IN ('approved', 'declined', 'cancelled')
BEGIN UPDATE taken_offline SET settled_at = NEW.updated_at WHERE tender_id = NEW.id AND settled_at IS NULL; END;

-- A sale completes when each of its tenders has paid, or its goods were handed over all the same.
DROP TRIGGER sales_complete_paid;
CREATE TRIGGER sales_complete_paid BEFORE UPDATE ON sales
WHEN OLD.state = 'paying' AND NEW.state = 'completed' AND (
    EXISTS (SELECT 1 FROM tenders WHERE sale_id = OLD.id AND state IN ('settling', 'needs_attention')
        AND NOT EXISTS (SELECT 1 FROM taken_offline WHERE tender_id = tenders.id))
    OR NEW.total + NEW.rounding IS NOT
        (SELECT coalesce(sum(amount), 0) FROM tenders WHERE sale_id = OLD.id AND state NOT IN ('declined', 'cancelled'))
    OR abs(NEW.rounding) >= NEW.cash_step
    OR (NEW.rounding <> 0 AND NOT EXISTS (SELECT 1 FROM tenders WHERE sale_id = OLD.id AND kind = 'cash')))
BEGIN SELECT RAISE(ABORT, 'a sale completes when it is paid in full'); END;

CREATE TRIGGER tenders_of_cash_in_coins BEFORE INSERT ON tenders
WHEN NEW.kind = 'cash' AND (SELECT NEW.tendered % cash_step <> 0 OR NEW.amount % cash_step <> 0 FROM sales WHERE id = NEW.sale_id)
BEGIN SELECT RAISE(ABORT, 'cash comes in multiples of the step'); END;

---- Declined after the goods were gone

-- One row for each payment that was taken offline and did not pay, from when that is known on. `last_tender_id` is what was begun
-- last to get the money: the payment itself, then each that collects again. `attention`: the bank has not said whether it charged.
-- `open`: nobody has done anything yet. `collecting`: another payment is with the bank. `settled`: nothing is owed any more.
-- `writing_off`: given up before the bank's word, which is awaited. `written_off`: given up. `amount` is what is to be collected;
-- `returned`, what of it is not, as those goods came back before. `rounding`: what collecting it in cash added for the coins. The shifts are those in which it was declined and came to its end.
CREATE TABLE late_declines (
    seq            INTEGER PRIMARY KEY AUTOINCREMENT,
    tender_id      TEXT NOT NULL UNIQUE REFERENCES taken_offline (tender_id),
    last_tender_id TEXT NOT NULL UNIQUE REFERENCES tenders (id),
    state          TEXT NOT NULL CHECK (state IN ('attention', 'open', 'collecting', 'settled', 'writing_off', 'written_off')),
    amount         INTEGER NOT NULL CHECK (amount >= 0),
    returned       INTEGER NOT NULL CHECK (returned >= 0),
    rounding       INTEGER NOT NULL DEFAULT 0 CHECK (rounding = 0 OR state = 'settled'),
    declined_at    INTEGER,
    declined_shift INTEGER,
    ended_at       INTEGER,
    ended_shift    INTEGER,
    reason         TEXT CHECK (length(reason) BETWEEN 1 AND 200),
    written_off_by TEXT CHECK (written_off_by <> ''),
    CHECK ((ended_at IS NULL) = (state NOT IN ('settled', 'written_off'))),
    CHECK ((ended_at IS NULL) = (ended_shift IS NULL) AND (declined_at IS NULL) = (declined_shift IS NULL)),
    CHECK (declined_at IS NOT NULL OR state IN ('attention', 'writing_off', 'settled')),
    CHECK (amount > 0 OR state = 'settled'),
    CHECK ((reason IS NULL) = (written_off_by IS NULL)),
    CHECK (reason IS NOT NULL OR state NOT IN ('writing_off', 'written_off'))
) STRICT;

CREATE INDEX late_declines_open ON late_declines (seq) WHERE ended_at IS NULL;
CREATE INDEX late_declines_by_decline ON late_declines (declined_at) WHERE declined_at IS NOT NULL;
CREATE INDEX late_declines_by_end ON late_declines (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX late_declines_by_shift ON late_declines (declined_shift) WHERE declined_shift > 0;
CREATE INDEX late_declines_by_shift_of_end ON late_declines (ended_shift) WHERE ended_shift > 0;

-- What collects again what was declined late: it pays nothing that the sale did not come to when it completed.
ALTER TABLE tenders ADD COLUMN collects TEXT REFERENCES late_declines (tender_id);
CREATE INDEX tenders_that_collect ON tenders (collects) WHERE collects IS NOT NULL;

CREATE TRIGGER tenders_keep_what_they_collect BEFORE UPDATE ON tenders
WHEN NEW.collects IS NOT OLD.collects
BEGIN SELECT RAISE(ABORT, 'a tender never changes but for its state'); END;

CREATE TRIGGER late_declines_begin_in_a_shift BEFORE INSERT ON late_declines
WHEN (NEW.declined_shift IS NOT NULL AND NEW.declined_shift IS NOT (SELECT number FROM shift_now))
    OR (NEW.ended_shift IS NOT NULL AND NEW.ended_shift IS NOT (SELECT number FROM shift_now))
BEGIN SELECT RAISE(ABORT, 'a late decline belongs to the shift in which it came up, and its end to that in which it ended'); END;

CREATE TRIGGER late_declines_keep_their_shifts BEFORE UPDATE ON late_declines
WHEN (NEW.declined_shift IS NOT OLD.declined_shift
        AND (OLD.declined_shift IS NOT NULL OR NEW.declined_shift IS NOT (SELECT number FROM shift_now)))
    OR (NEW.ended_shift IS NOT OLD.ended_shift
        AND (OLD.ended_shift IS NOT NULL OR NEW.ended_shift IS NOT (SELECT number FROM shift_now)))
BEGIN SELECT RAISE(ABORT, 'a late decline belongs to the shift in which it came up, and its end to that in which it ended'); END;

CREATE TRIGGER late_declines_begin BEFORE INSERT ON late_declines
WHEN NEW.last_tender_id IS NOT NEW.tender_id OR NEW.rounding <> 0 OR NOT EXISTS (
    SELECT 1 FROM tenders JOIN sales ON sales.id = tenders.sale_id
    WHERE tenders.id = NEW.tender_id AND sales.state = 'completed' AND tenders.amount = NEW.amount + NEW.returned
        AND CASE NEW.state
            WHEN 'attention' THEN tenders.state = 'needs_attention'
            WHEN 'writing_off' THEN tenders.state IN ('settling', 'needs_attention')
            WHEN 'open' THEN tenders.state IN ('declined', 'cancelled')
            WHEN 'settled' THEN tenders.state IN ('declined', 'cancelled') AND NEW.amount = 0
            ELSE 0 END)
BEGIN SELECT RAISE(ABORT, 'a late decline is of a completed sale, by a payment that was taken offline and did not pay'); END;

CREATE TRIGGER late_declines_move BEFORE UPDATE ON late_declines
WHEN NEW.seq IS NOT OLD.seq OR NEW.tender_id IS NOT OLD.tender_id OR OLD.ended_at IS NOT NULL
    OR NEW.amount + NEW.returned <> OLD.amount + OLD.returned OR NEW.returned < OLD.returned
    OR (OLD.declined_at IS NOT NULL AND NEW.declined_at IS NOT OLD.declined_at)
    OR (OLD.reason IS NOT NULL AND (NEW.reason IS NOT OLD.reason OR NEW.written_off_by IS NOT OLD.written_off_by))
    OR (NEW.state <> 'collecting' AND NOT (OLD.state = 'open' AND NEW.state = 'settled')
        AND NEW.last_tender_id IS NOT OLD.last_tender_id)
    OR (NEW.rounding <> 0 AND NOT (OLD.state = 'open' AND NEW.state = 'settled'))
    OR NOT CASE NEW.state
        WHEN 'open' THEN OLD.state IN ('attention', 'collecting')
            AND EXISTS (SELECT 1 FROM tenders WHERE id = OLD.last_tender_id AND state IN ('declined', 'cancelled'))
        WHEN 'collecting' THEN OLD.state = 'open'
            AND EXISTS (SELECT 1 FROM tenders WHERE id = NEW.last_tender_id AND replaces = OLD.last_tender_id)
        WHEN 'settled' THEN (OLD.state = 'open' AND EXISTS (SELECT 1 FROM tenders WHERE id = NEW.last_tender_id AND kind = 'cash'
                AND collects = OLD.tender_id AND replaces = OLD.last_tender_id AND amount = NEW.amount + NEW.rounding))
            OR OLD.state IN ('attention', 'collecting', 'writing_off') AND EXISTS (SELECT 1 FROM tenders WHERE id = OLD.last_tender_id
                AND (state = 'approved' OR (NEW.amount = 0 AND state IN ('declined', 'cancelled'))))
        WHEN 'writing_off' THEN OLD.state = 'attention'
        WHEN 'written_off' THEN OLD.state IN ('open', 'writing_off')
            AND EXISTS (SELECT 1 FROM tenders WHERE id = OLD.last_tender_id AND state IN ('declined', 'cancelled'))
        ELSE 0 END
BEGIN SELECT RAISE(ABORT, 'a late decline is collected again or written off, once'); END;

CREATE TRIGGER late_declines_stay BEFORE DELETE ON late_declines
BEGIN SELECT RAISE(ABORT, 'a late decline is never dropped'); END;

-- The one tender that begins on a completed sale collects again what was declined, all of it, in its place; in cash, in coins.
DROP TRIGGER tenders_begin_within_what_is_due;
CREATE TRIGGER tenders_begin_within_what_is_due BEFORE INSERT ON tenders
WHEN NEW.state IS NOT CASE NEW.kind WHEN 'card' THEN 'settling' ELSE 'taken' END
    OR CASE (SELECT state FROM sales WHERE id = NEW.sale_id)
        WHEN 'paying' THEN NEW.collects IS NOT NULL
            OR (SELECT voided_at FROM sales WHERE id = NEW.sale_id) IS NOT NULL
            OR NEW.amount + (SELECT coalesce(sum(amount), 0) FROM tenders
                          WHERE sale_id = NEW.sale_id AND state NOT IN ('declined', 'cancelled'))
            > (SELECT total + CASE NEW.kind WHEN 'cash' THEN cash_step - 1 ELSE 0 END FROM sales WHERE id = NEW.sale_id)
        WHEN 'completed' THEN NOT EXISTS (
            SELECT 1 FROM late_declines JOIN sales ON sales.id = NEW.sale_id
            WHERE tender_id = NEW.collects AND last_tender_id = NEW.replaces AND late_declines.state = 'open'
                AND CASE NEW.kind WHEN 'card' THEN amount = NEW.amount ELSE abs(NEW.amount - amount) < cash_step END)
        ELSE 1 END
BEGIN SELECT RAISE(ABORT, 'a tender is for a sale under payment and never over what is due'); END;

---- Given back

-- What a customer brought back, once: its goods, and its legs, the ways in which the money goes back. Its parts are saved before it
-- in the same commit, and it closes them: from then on nothing of it changes. What comes back while no shift is open, which is to cards
-- alone, belongs to the next one, as everything does.
CREATE TABLE returns (
    id             TEXT PRIMARY KEY CHECK (length(id) = 36),
    sale_id        TEXT NOT NULL REFERENCES sales (id),
    receipt_number INTEGER NOT NULL UNIQUE CHECK (receipt_number >= 1),    -- of the same series as the sales'
    net            INTEGER NOT NULL CHECK (net >= 0),
    tax            INTEGER NOT NULL CHECK (tax >= 0),
    tip            INTEGER NOT NULL CHECK (tip >= 0),
    total          INTEGER NOT NULL CHECK (total >= 0),
    reason         TEXT CHECK (length(reason) BETWEEN 1 AND 200),
    created_at     INTEGER NOT NULL,
    shift          INTEGER NOT NULL,
    CHECK (total = net + tax + tip)
) STRICT;

CREATE INDEX returns_by_sale ON returns (sale_id, receipt_number);
CREATE INDEX returns_by_time ON returns (created_at);
CREATE INDEX returns_by_shift ON returns (shift) WHERE shift > 0;

-- `amount` is with or without tax, as the total of its line.
CREATE TABLE return_lines (
    return_id TEXT NOT NULL REFERENCES returns (id) DEFERRABLE INITIALLY DEFERRED,
    line_id   INTEGER NOT NULL REFERENCES lines (id),
    quantity  INTEGER NOT NULL CHECK (quantity > 0),                       -- thousandths
    amount    INTEGER NOT NULL CHECK (amount >= 0),
    PRIMARY KEY (return_id, line_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX return_lines_by_line ON return_lines (line_id);

CREATE TABLE return_taxes (
    return_id TEXT NOT NULL REFERENCES returns (id) DEFERRABLE INITIALLY DEFERRED,
    rate      INTEGER NOT NULL CHECK (rate >= 0),
    net       INTEGER NOT NULL CHECK (net >= 0),
    tax       INTEGER NOT NULL CHECK (tax >= 0),
    PRIMARY KEY (return_id, rate)
) STRICT, WITHOUT ROWID;

-- A leg to a card is a refund as it was before; `replaces` is the one that did not go through, in whose place it is tried again.
ALTER TABLE refunds ADD COLUMN return_id TEXT REFERENCES returns (id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE refunds ADD COLUMN replaces TEXT REFERENCES refunds (id);
ALTER TABLE refunds ADD COLUMN void_id TEXT REFERENCES voids (id) DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX refunds_by_return ON refunds (return_id) WHERE return_id IS NOT NULL;
-- Stays small: what a card did not get, and a customer perhaps has not either.
CREATE INDEX refunds_not_given ON refunds (return_id) WHERE return_id IS NOT NULL AND state IN ('declined', 'cancelled');
CREATE INDEX refunds_by_void ON refunds (void_id) WHERE void_id IS NOT NULL;
CREATE INDEX refunds_of_voids_not_given ON refunds (void_id) WHERE void_id IS NOT NULL AND state IN ('declined', 'cancelled');
CREATE UNIQUE INDEX refunds_replaced_once ON refunds (replaces) WHERE replaces IS NOT NULL;

-- Cash out of the drawer, for a return or a void: the rest that no card gets, or what a card's bank refused (`instead_of`). `amount` is what was handed over,
-- `rounding` what of it is there because of the coins. A plus sign before `instead_of IS NULL`, below, keeps SQLite from its index, in
-- which nearly every row of the file is the same nothing.
CREATE TABLE cash_refunds (
    id         TEXT PRIMARY KEY CHECK (length(id) = 36),
    return_id  TEXT REFERENCES returns (id) DEFERRABLE INITIALLY DEFERRED,
    instead_of TEXT UNIQUE REFERENCES refunds (id),
    amount     INTEGER NOT NULL CHECK (amount >= 0),
    rounding   INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    shift      INTEGER NOT NULL,
    void_id    TEXT REFERENCES voids (id) DEFERRABLE INITIALLY DEFERRED,
    CHECK ((return_id IS NULL) <> (void_id IS NULL))
) STRICT, WITHOUT ROWID;

CREATE INDEX cash_refunds_by_return ON cash_refunds (return_id);
CREATE INDEX cash_refunds_by_time ON cash_refunds (created_at);
CREATE INDEX cash_refunds_by_shift ON cash_refunds (shift) WHERE shift > 0;
CREATE UNIQUE INDEX cash_refunds_one_leg ON cash_refunds (return_id) WHERE instead_of IS NULL;
CREATE INDEX cash_refunds_by_void ON cash_refunds (void_id) WHERE void_id IS NOT NULL;
CREATE UNIQUE INDEX cash_refunds_one_leg_of_a_void ON cash_refunds (void_id) WHERE instead_of IS NULL AND void_id IS NOT NULL;

CREATE TRIGGER return_lines_within_what_was_sold BEFORE INSERT ON return_lines
WHEN EXISTS (SELECT 1 FROM returns WHERE id = NEW.return_id) OR NOT EXISTS (
    SELECT 1 FROM lines WHERE id = NEW.line_id AND (unit = 'weight' OR NEW.quantity % 1000 = 0)
        AND quantity >= NEW.quantity + (SELECT coalesce(sum(quantity), 0) FROM return_lines WHERE line_id = NEW.line_id)
        AND total >= NEW.amount + (SELECT coalesce(sum(amount), 0) FROM return_lines WHERE line_id = NEW.line_id))
BEGIN SELECT RAISE(ABORT, 'no more of a line comes back than was sold'); END;

CREATE TRIGGER return_taxes_before_their_return BEFORE INSERT ON return_taxes
WHEN EXISTS (SELECT 1 FROM returns WHERE id = NEW.return_id)
BEGIN SELECT RAISE(ABORT, 'what was given back never changes'); END;

-- A card gives each part of what it paid to one return, whatever becomes of that leg: what was refused is tried again or paid out.
CREATE TRIGGER refunds_of_returns_within_what_is_left BEFORE INSERT ON refunds
WHEN NEW.replaces IS NULL
    AND NEW.amount + (SELECT coalesce(sum(amount), 0) FROM refunds WHERE tender_id = NEW.tender_id AND replaces IS NULL
                      AND (return_id IS NOT NULL OR void_id IS NOT NULL OR state NOT IN ('declined', 'cancelled')))
        > (SELECT amount FROM tenders WHERE id = NEW.tender_id)
BEGIN SELECT RAISE(ABORT, 'a refund is never over what is left of its tender'); END;

CREATE TRIGGER refunds_of_returns_begin BEFORE INSERT ON refunds
WHEN (NEW.return_id IS NOT NULL AND NEW.void_id IS NOT NULL) OR CASE
    WHEN NEW.replaces IS NULL THEN EXISTS (SELECT 1 FROM returns WHERE id = NEW.return_id)
        OR EXISTS (SELECT 1 FROM voids WHERE id = NEW.void_id)
    ELSE EXISTS (SELECT 1 FROM cash_refunds WHERE instead_of = NEW.replaces) OR NOT EXISTS (
        SELECT 1 FROM refunds WHERE id = NEW.replaces AND return_id IS NEW.return_id AND void_id IS NEW.void_id
            AND coalesce(return_id, void_id) IS NOT NULL AND tender_id = NEW.tender_id AND amount = NEW.amount AND state IN ('declined', 'cancelled'))
    END
BEGIN SELECT RAISE(ABORT, 'a leg is tried again once, after it was declined or cancelled, and never after it was paid out'); END;

CREATE TRIGGER refunds_keep_their_return BEFORE UPDATE ON refunds
WHEN NEW.return_id IS NOT OLD.return_id OR NEW.void_id IS NOT OLD.void_id OR NEW.replaces IS NOT OLD.replaces
BEGIN SELECT RAISE(ABORT, 'a refund never changes but for its state'); END;

CREATE TRIGGER cash_refunds_begin BEFORE INSERT ON cash_refunds
WHEN CASE
    WHEN NEW.instead_of IS NULL THEN EXISTS (SELECT 1 FROM returns WHERE id = NEW.return_id)
        OR EXISTS (SELECT 1 FROM voids WHERE id = NEW.void_id)
    ELSE EXISTS (SELECT 1 FROM refunds WHERE replaces = NEW.instead_of) OR NOT EXISTS (
        SELECT 1 FROM refunds JOIN tenders ON tenders.id = refunds.tender_id JOIN sales ON sales.id = tenders.sale_id
        WHERE refunds.id = NEW.instead_of AND refunds.return_id IS NEW.return_id AND refunds.void_id IS NEW.void_id
            AND refunds.state IN ('declined', 'cancelled')
            AND tenders.state = 'approved' AND refunds.amount + NEW.rounding = NEW.amount
            AND NEW.amount % sales.cash_step = 0 AND abs(NEW.rounding) < sales.cash_step)
    END
BEGIN SELECT RAISE(ABORT, 'a leg is paid out in cash once, after it was declined or cancelled, and never after it was tried again'); END;

CREATE TRIGGER returns_in_a_shift BEFORE INSERT ON returns
WHEN NEW.shift IS NOT (SELECT number FROM shift_now)
BEGIN SELECT RAISE(ABORT, 'what comes back belongs to the shift in which it does'); END;

CREATE TRIGGER cash_refunds_in_a_shift BEFORE INSERT ON cash_refunds
WHEN NEW.shift IS NOT (SELECT number FROM shift_now)
BEGIN SELECT RAISE(ABORT, 'what comes back belongs to the shift in which it does'); END;

CREATE TRIGGER returns_of_completed_sales BEFORE INSERT ON returns
WHEN (SELECT state FROM sales WHERE id = NEW.sale_id) IS NOT 'completed'
    OR EXISTS (SELECT 1 FROM return_lines JOIN lines ON lines.id = line_id
               WHERE return_id = NEW.id AND lines.sale_id <> NEW.sale_id)
    OR EXISTS (SELECT 1 FROM refunds JOIN tenders ON tenders.id = tender_id
               WHERE return_id = NEW.id AND tenders.sale_id <> NEW.sale_id)
BEGIN SELECT RAISE(ABORT, 'what comes back is of one completed sale'); END;

CREATE TRIGGER returns_take_the_next_number BEFORE INSERT ON returns
WHEN NEW.receipt_number IS NOT (SELECT last FROM counters WHERE name = 'receipt')
    OR EXISTS (SELECT 1 FROM sales WHERE receipt_number = NEW.receipt_number)
BEGIN SELECT RAISE(ABORT, 'a return takes the next number of the receipts'); END;

CREATE TRIGGER sales_take_no_number_of_a_return BEFORE UPDATE OF receipt_number ON sales
WHEN NEW.receipt_number IS NOT OLD.receipt_number AND EXISTS (SELECT 1 FROM returns WHERE receipt_number = NEW.receipt_number)
BEGIN SELECT RAISE(ABORT, 'a receipt has a number of its own'); END;

-- The parts must add up to the last cent: lines, taxes, legs. A tip comes back with the last of the goods.
CREATE TRIGGER returns_are_whole BEFORE INSERT ON returns
WHEN (SELECT sum(amount) FROM return_lines WHERE return_id = NEW.id)
        IS NOT (SELECT CASE prices_include_tax WHEN 1 THEN NEW.net + NEW.tax ELSE NEW.net END FROM sales WHERE id = NEW.sale_id)
    OR (SELECT sum(net) FROM return_taxes WHERE return_id = NEW.id) IS NOT NEW.net
    OR (SELECT sum(tax) FROM return_taxes WHERE return_id = NEW.id) IS NOT NEW.tax
    OR NEW.total <> (SELECT coalesce(sum(amount), 0) FROM refunds WHERE return_id = NEW.id)
        + (SELECT coalesce(sum(amount - rounding), 0) FROM cash_refunds WHERE return_id = NEW.id)
    OR NEW.tip IS NOT CASE
        WHEN EXISTS (SELECT 1 FROM lines WHERE sale_id = NEW.sale_id AND quantity
            > (SELECT coalesce(sum(quantity), 0) FROM return_lines WHERE line_id = lines.id)) THEN 0
        ELSE (SELECT tip FROM sales WHERE id = NEW.sale_id) END
BEGIN SELECT RAISE(ABORT, 'a return is whole: its lines, taxes and legs add up to its total'); END;

CREATE TRIGGER returns_within_what_was_paid BEFORE INSERT ON returns
WHEN EXISTS (
        SELECT 1 FROM return_taxes AS mine WHERE mine.return_id = NEW.id AND NOT EXISTS (
            SELECT 1 FROM sale_taxes AS sold WHERE sold.sale_id = NEW.sale_id AND sold.rate = mine.rate
                AND sold.net >= mine.net + (SELECT coalesce(sum(other.net), 0) FROM returns JOIN return_taxes AS other
                    ON other.return_id = returns.id WHERE returns.sale_id = NEW.sale_id AND other.rate = mine.rate)
                AND sold.tax >= mine.tax + (SELECT coalesce(sum(other.tax), 0) FROM returns JOIN return_taxes AS other
                    ON other.return_id = returns.id WHERE returns.sale_id = NEW.sale_id AND other.rate = mine.rate)))
    OR EXISTS (
        SELECT 1 FROM cash_refunds AS mine JOIN sales ON sales.id = NEW.sale_id WHERE mine.return_id = NEW.id AND (
            -- What was collected late in cash was rounded by itself, and goes back with the rest.
            mine.amount % sales.cash_step <> 0 OR abs(mine.rounding) >= sales.cash_step * (1 + (SELECT count(*) FROM tenders
                WHERE sale_id = NEW.sale_id AND kind = 'cash' AND collects IS NOT NULL))
            OR mine.amount + (SELECT coalesce(sum(other.amount), 0) FROM returns JOIN cash_refunds AS other
                    ON other.return_id = returns.id WHERE returns.sale_id = NEW.sale_id AND +other.instead_of IS NULL)
                > (SELECT coalesce(sum(amount), 0) FROM tenders WHERE sale_id = NEW.sale_id AND kind = 'cash')
            OR mine.amount - mine.rounding + (SELECT coalesce(sum(other.amount - other.rounding), 0) FROM returns
                    JOIN cash_refunds AS other ON other.return_id = returns.id
                    WHERE returns.sale_id = NEW.sale_id AND +other.instead_of IS NULL)
                > (SELECT coalesce(sum(amount), 0) FROM tenders WHERE sale_id = NEW.sale_id AND kind = 'cash') - sales.rounding
                    - (SELECT coalesce(sum(late.rounding), 0) FROM late_declines AS late JOIN tenders ON tenders.id = late.tender_id
                        WHERE tenders.sale_id = NEW.sale_id)))
BEGIN SELECT RAISE(ABORT, 'never more is given back than was paid: of each rate, and in cash'); END;

CREATE TRIGGER returns_never_change BEFORE UPDATE ON returns
BEGIN SELECT RAISE(ABORT, 'what was given back never changes'); END;
CREATE TRIGGER returns_stay BEFORE DELETE ON returns
BEGIN SELECT RAISE(ABORT, 'what was given back never changes'); END;
CREATE TRIGGER return_lines_never_change BEFORE UPDATE ON return_lines
BEGIN SELECT RAISE(ABORT, 'what was given back never changes'); END;
CREATE TRIGGER return_lines_stay BEFORE DELETE ON return_lines
BEGIN SELECT RAISE(ABORT, 'what was given back never changes'); END;
CREATE TRIGGER return_taxes_never_change BEFORE UPDATE ON return_taxes
BEGIN SELECT RAISE(ABORT, 'what was given back never changes'); END;
CREATE TRIGGER return_taxes_stay BEFORE DELETE ON return_taxes
BEGIN SELECT RAISE(ABORT, 'what was given back never changes'); END;
CREATE TRIGGER cash_refunds_never_change BEFORE UPDATE ON cash_refunds
BEGIN SELECT RAISE(ABORT, 'what was given back never changes'); END;
CREATE TRIGGER cash_refunds_stay BEFORE DELETE ON cash_refunds
BEGIN SELECT RAISE(ABORT, 'what was given back never changes'); END;

---- Given up after a part was paid

-- What was paid of a sale goes back whole: each card by a refund of its own, which may wait for its payment where that was taken
-- offline, and the cash out of the drawer. As with a return its parts are saved before it in the same commit, and it closes them; the
-- sale ends with it.
CREATE TABLE voids (
    id         TEXT PRIMARY KEY CHECK (length(id) = 36),
    sale_id    TEXT NOT NULL UNIQUE REFERENCES sales (id),
    cards      INTEGER NOT NULL CHECK (cards >= 0),
    cash       INTEGER NOT NULL CHECK (cash >= 0),
    reason     TEXT CHECK (length(reason) BETWEEN 1 AND 200),
    created_at INTEGER NOT NULL,
    shift      INTEGER NOT NULL
) STRICT;

CREATE INDEX voids_by_shift ON voids (shift) WHERE shift > 0;

CREATE TRIGGER voids_of_sales_under_payment BEFORE INSERT ON voids
WHEN NOT EXISTS (SELECT 1 FROM sales WHERE id = NEW.sale_id AND state = 'paying' AND voided_at IS NULL)
    OR NOT EXISTS (SELECT 1 FROM tenders WHERE sale_id = NEW.sale_id AND state NOT IN ('declined', 'cancelled'))
    OR EXISTS (SELECT 1 FROM tenders WHERE sale_id = NEW.sale_id AND state IN ('settling', 'needs_attention')
        AND NOT EXISTS (SELECT 1 FROM taken_offline WHERE tender_id = tenders.id))
BEGIN SELECT RAISE(ABORT, 'a sale is voided while it is under payment, partly paid, and no card may be charged without a word of it'); END;

CREATE TRIGGER voids_are_whole BEFORE INSERT ON voids
WHEN NEW.cards IS NOT (SELECT coalesce(sum(amount), 0) FROM refunds WHERE void_id = NEW.id)
    OR NEW.cash IS NOT (SELECT coalesce(sum(amount), 0) FROM cash_refunds WHERE void_id = NEW.id AND rounding = 0)
    OR NEW.cash IS NOT (SELECT coalesce(sum(amount), 0) FROM tenders WHERE sale_id = NEW.sale_id AND kind = 'cash')
    OR EXISTS (SELECT 1 FROM refunds JOIN tenders ON tenders.id = tender_id WHERE void_id = NEW.id AND tenders.sale_id <> NEW.sale_id)
    OR EXISTS (SELECT 1 FROM tenders WHERE sale_id = NEW.sale_id AND kind = 'card' AND state NOT IN ('declined', 'cancelled')
        AND amount <> (SELECT coalesce(sum(refunds.amount), 0) FROM refunds WHERE tender_id = tenders.id AND replaces IS NULL
            AND (void_id IS NOT NULL OR refunds.state NOT IN ('declined', 'cancelled'))))
BEGIN SELECT RAISE(ABORT, 'a void gives back all that was paid, by card and in cash'); END;

CREATE TRIGGER voids_in_a_shift BEFORE INSERT ON voids
WHEN NEW.shift IS NOT (SELECT number FROM shift_now)
BEGIN SELECT RAISE(ABORT, 'what comes back belongs to the shift in which it does'); END;

CREATE TRIGGER voids_end_their_sale AFTER INSERT ON voids
BEGIN UPDATE sales SET voided_at = NEW.created_at, updated_at = NEW.created_at, held = 1 WHERE id = NEW.sale_id; END;

CREATE TRIGGER voids_never_change BEFORE UPDATE ON voids
BEGIN SELECT RAISE(ABORT, 'what was given back never changes'); END;
CREATE TRIGGER voids_stay BEFORE DELETE ON voids
BEGIN SELECT RAISE(ABORT, 'what was given back never changes'); END;

CREATE TRIGGER sales_voided_by_their_void BEFORE UPDATE OF voided_at ON sales
WHEN NEW.voided_at IS NOT NULL AND NOT EXISTS (SELECT 1 FROM voids WHERE sale_id = OLD.id AND created_at = NEW.voided_at)
BEGIN SELECT RAISE(ABORT, 'a sale is voided with all that was paid given back'); END;

CREATE TRIGGER sales_voided_never_change BEFORE UPDATE ON sales
WHEN OLD.voided_at IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'a sale that was voided never changes'); END;

---- Found again

-- The list of sales, newest first. Only what was under payment once has a number and is on it.
CREATE INDEX sales_by_time ON sales (state, coalesce(completed_at, updated_at), number) WHERE number IS NOT NULL;

-- What a person has of a sale and finds it by: what it came to or a tender was for, and the last four digits of a card. In the order
-- of the sales' numbers, so that a page of the many sales with one amount is read and not all of them.
CREATE TABLE sale_marks (
    kind   TEXT NOT NULL CHECK (kind IN ('amount', 'last_four')),
    value  INTEGER NOT NULL CHECK (value >= 0 AND (kind = 'amount' OR value <= 9999)),
    number INTEGER NOT NULL REFERENCES sales (number),
    PRIMARY KEY (kind, value, number)
) STRICT, WITHOUT ROWID;

INSERT OR IGNORE INTO sale_marks (kind, value, number)
SELECT 'amount', total, number FROM sales WHERE number IS NOT NULL AND total IS NOT NULL;
INSERT OR IGNORE INTO sale_marks (kind, value, number)
SELECT 'amount', tenders.amount, sales.number FROM tenders JOIN sales ON sales.id = tenders.sale_id;
INSERT OR IGNORE INTO sale_marks (kind, value, number)
SELECT 'last_four', CAST(operations.result ->> '$.card.last4' AS INTEGER), sales.number
FROM operations JOIN tenders ON tenders.id = substr(lower(hex(operations.intent_id)), 1, 8) || '-'
    || substr(lower(hex(operations.intent_id)), 9, 4) || '-' || substr(lower(hex(operations.intent_id)), 13, 4) || '-'
    || substr(lower(hex(operations.intent_id)), 17, 4) || '-' || substr(lower(hex(operations.intent_id)), 21)
    JOIN sales ON sales.id = tenders.sale_id
WHERE json_valid(operations.result) AND operations.result ->> '$.card.last4' GLOB '[0-9][0-9][0-9][0-9]';

CREATE TRIGGER sales_are_found_by_their_total AFTER UPDATE OF state ON sales
WHEN OLD.state = 'open' AND NEW.state = 'paying'
BEGIN INSERT OR IGNORE INTO sale_marks (kind, value, number) VALUES ('amount', NEW.total, NEW.number); END;

-- Open again, it comes to something else.
CREATE TRIGGER sales_are_not_found_by_what_they_came_to AFTER UPDATE OF state ON sales
WHEN OLD.state = 'paying' AND NEW.state = 'open'
    AND NOT EXISTS (SELECT 1 FROM tenders WHERE sale_id = OLD.id AND amount = OLD.total)
BEGIN DELETE FROM sale_marks WHERE kind = 'amount' AND value = OLD.total AND number = OLD.number; END;

CREATE TRIGGER tenders_are_found_by_their_amount AFTER INSERT ON tenders
BEGIN
    INSERT OR IGNORE INTO sale_marks (kind, value, number) SELECT 'amount', NEW.amount, number FROM sales WHERE id = NEW.sale_id;
END;

CREATE TRIGGER sale_marks_never_change BEFORE UPDATE ON sale_marks
BEGIN SELECT RAISE(ABORT, 'what a sale is found by never changes'); END;
