-- What a shift's cards came to at the bank, and money that went back without goods. Times are Unix milliseconds, UTC.

---- Cards of a shift

-- The shift in which the bank approved a card, whichever that of its sale is; 0 before the first one, and of what was approved before
-- this was kept.
ALTER TABLE tenders ADD COLUMN approved_shift INTEGER;
UPDATE tenders SET approved_shift = 0 WHERE kind = 'card' AND state = 'approved';
CREATE INDEX tenders_by_shift_of_approval ON tenders (approved_shift) WHERE approved_shift > 0;

CREATE TRIGGER tenders_are_approved_in_a_shift AFTER UPDATE ON tenders
WHEN NEW.kind = 'card' AND OLD.state <> 'approved' AND NEW.state = 'approved'
BEGIN UPDATE tenders SET approved_shift = (SELECT number FROM shift_now) WHERE id = NEW.id; END;

CREATE TRIGGER tenders_keep_their_shift_of_approval BEFORE UPDATE ON tenders
WHEN NEW.approved_shift IS NOT OLD.approved_shift
    AND (OLD.approved_shift IS NOT NULL OR OLD.state <> 'approved' OR NEW.approved_shift IS NOT (SELECT number FROM shift_now))
BEGIN SELECT RAISE(ABORT, 'a card belongs to the shift in which it was approved'); END;

CREATE TRIGGER tenders_begin_unapproved BEFORE INSERT ON tenders
WHEN NEW.approved_shift IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'a card belongs to the shift in which it was approved'); END;

---- Money that went back before the goods

-- What of a return gives nothing back, as that much of its sale went back before, as money alone. Saved before its return, as all its
-- parts are.
CREATE TABLE return_refunded (
    return_id TEXT PRIMARY KEY REFERENCES returns (id) DEFERRABLE INITIALLY DEFERRED,
    amount    INTEGER NOT NULL CHECK (amount > 0)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER return_refunded_before_its_return BEFORE INSERT ON return_refunded
WHEN EXISTS (SELECT 1 FROM returns WHERE id = NEW.return_id)
BEGIN SELECT RAISE(ABORT, 'what was given back never changes'); END;
CREATE TRIGGER return_refunded_never_changes BEFORE UPDATE ON return_refunded
BEGIN SELECT RAISE(ABORT, 'what was given back never changes'); END;
CREATE TRIGGER return_refunded_stays BEFORE DELETE ON return_refunded
BEGIN SELECT RAISE(ABORT, 'what was given back never changes'); END;

-- As before, with what went back as money alone among the parts.
DROP TRIGGER returns_are_whole;
CREATE TRIGGER returns_are_whole BEFORE INSERT ON returns
WHEN (SELECT sum(amount) FROM return_lines WHERE return_id = NEW.id)
        IS NOT (SELECT CASE prices_include_tax WHEN 1 THEN NEW.net + NEW.tax ELSE NEW.net END FROM sales WHERE id = NEW.sale_id)
    OR (SELECT sum(net) FROM return_taxes WHERE return_id = NEW.id) IS NOT NEW.net
    OR (SELECT sum(tax) FROM return_taxes WHERE return_id = NEW.id) IS NOT NEW.tax
    OR NEW.total <> (SELECT coalesce(sum(amount), 0) FROM refunds WHERE return_id = NEW.id)
        + (SELECT coalesce(sum(amount - rounding), 0) FROM cash_refunds WHERE return_id = NEW.id)
        + (SELECT coalesce(sum(amount), 0) FROM return_waived WHERE return_id = NEW.id)
        + (SELECT coalesce(sum(amount), 0) FROM return_refunded WHERE return_id = NEW.id)
    OR NEW.tip IS NOT CASE
        WHEN EXISTS (SELECT 1 FROM lines WHERE sale_id = NEW.sale_id AND quantity
            > (SELECT coalesce(sum(quantity), 0) FROM return_lines WHERE line_id = lines.id)) THEN 0
        ELSE (SELECT tip FROM sales WHERE id = NEW.sale_id) END
BEGIN SELECT RAISE(ABORT, 'a return is whole: its lines, taxes, legs, what is waived and what went back before add up to its total'); END;

-- Each part of that money is counted once.
CREATE TRIGGER returns_count_money_once BEFORE INSERT ON returns
WHEN EXISTS (SELECT 1 FROM return_refunded WHERE return_id = NEW.id)
    AND (SELECT coalesce(sum(amount), 0) FROM return_refunded WHERE return_id = NEW.id)
        + (SELECT coalesce(sum(refunded.amount), 0) FROM returns CROSS JOIN return_refunded AS refunded ON refunded.return_id = returns.id
           WHERE returns.sale_id = NEW.sale_id)
    > (SELECT coalesce(sum(refunds.amount), 0) FROM tenders CROSS JOIN refunds ON refunds.tender_id = tenders.id
       WHERE tenders.sale_id = NEW.sale_id AND refunds.return_id IS NULL AND refunds.void_id IS NULL
           AND refunds.state NOT IN ('declined', 'cancelled'))
BEGIN SELECT RAISE(ABORT, 'no more counts as given back before than went back as money alone'); END;

-- Stays small: money alone that a card did not get.
CREATE INDEX refunds_alone_not_given ON refunds (tender_id) WHERE return_id IS NULL AND void_id IS NULL AND state = 'declined';

---- The head of a receipt

-- The shop's name and zone when a sale completed, goods came back or a sale was given up; by its id. What is older takes them from the
-- settings.
CREATE TABLE receipt_heads (
    id        TEXT PRIMARY KEY CHECK (length(id) = 36),
    shop_name TEXT NOT NULL,
    time_zone TEXT                                                     -- an IANA name; NULL where the machine's has none
) STRICT, WITHOUT ROWID;

CREATE TRIGGER receipt_heads_never_change BEFORE UPDATE ON receipt_heads
BEGIN SELECT RAISE(ABORT, 'what stands on a receipt never changes'); END;
CREATE TRIGGER receipt_heads_stay BEFORE DELETE ON receipt_heads
BEGIN SELECT RAISE(ABORT, 'what stands on a receipt never changes'); END;
