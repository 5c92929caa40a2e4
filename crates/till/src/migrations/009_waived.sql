-- Goods that come back of what nobody has paid, and cash that leaves the drawer as what it is given back for.

---- Waived

-- What of a return goes back to nobody, as it was never paid: against what a late decline is owed, or, once that was written off
-- (`was_lost`), against the loss, which stays booked as it was. `rest`: what is still owed, or lost and not back, after it. Saved before its
-- return, as all its parts are.
CREATE TABLE return_waived (
    return_id TEXT NOT NULL REFERENCES returns (id) DEFERRABLE INITIALLY DEFERRED,
    tender_id TEXT NOT NULL REFERENCES late_declines (tender_id),
    amount    INTEGER NOT NULL CHECK (amount > 0),
    rest      INTEGER NOT NULL CHECK (rest >= 0),
    was_lost  INTEGER NOT NULL CHECK (was_lost IN (0, 1)),
    PRIMARY KEY (return_id, tender_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX return_waived_by_late ON return_waived (tender_id);

CREATE TRIGGER return_waived_of_what_nobody_paid BEFORE INSERT ON return_waived
WHEN EXISTS (SELECT 1 FROM returns WHERE id = NEW.return_id) OR NOT EXISTS (
    SELECT 1 FROM late_declines WHERE tender_id = NEW.tender_id AND CASE state
        WHEN 'open' THEN NEW.was_lost = 0 AND amount = NEW.amount + NEW.rest
        WHEN 'written_off' THEN NEW.was_lost = 1 AND amount = NEW.amount + NEW.rest
            + (SELECT coalesce(sum(amount), 0) FROM return_waived WHERE tender_id = NEW.tender_id AND was_lost = 1)
        ELSE 0 END)
BEGIN SELECT RAISE(ABORT, 'only what is owed or lost of a late decline is waived, and no more than that'); END;

CREATE TRIGGER return_waived_never_changes BEFORE UPDATE ON return_waived
BEGIN SELECT RAISE(ABORT, 'what was given back never changes'); END;
CREATE TRIGGER return_waived_stays BEFORE DELETE ON return_waived
BEGIN SELECT RAISE(ABORT, 'what was given back never changes'); END;

-- As before, with what is waived among the parts.
DROP TRIGGER returns_are_whole;
CREATE TRIGGER returns_are_whole BEFORE INSERT ON returns
WHEN (SELECT sum(amount) FROM return_lines WHERE return_id = NEW.id)
        IS NOT (SELECT CASE prices_include_tax WHEN 1 THEN NEW.net + NEW.tax ELSE NEW.net END FROM sales WHERE id = NEW.sale_id)
    OR (SELECT sum(net) FROM return_taxes WHERE return_id = NEW.id) IS NOT NEW.net
    OR (SELECT sum(tax) FROM return_taxes WHERE return_id = NEW.id) IS NOT NEW.tax
    OR NEW.total <> (SELECT coalesce(sum(amount), 0) FROM refunds WHERE return_id = NEW.id)
        + (SELECT coalesce(sum(amount - rounding), 0) FROM cash_refunds WHERE return_id = NEW.id)
        + (SELECT coalesce(sum(amount), 0) FROM return_waived WHERE return_id = NEW.id)
    OR NEW.tip IS NOT CASE
        WHEN EXISTS (SELECT 1 FROM lines WHERE sale_id = NEW.sale_id AND quantity
            > (SELECT coalesce(sum(quantity), 0) FROM return_lines WHERE line_id = lines.id)) THEN 0
        ELSE (SELECT tip FROM sales WHERE id = NEW.sale_id) END
BEGIN SELECT RAISE(ABORT, 'a return is whole: its lines, taxes, legs and what is waived add up to its total'); END;

CREATE TRIGGER returns_waive_of_their_sale BEFORE INSERT ON returns
WHEN EXISTS (SELECT 1 FROM return_waived JOIN tenders ON tenders.id = tender_id
             WHERE return_id = NEW.id AND tenders.sale_id <> NEW.sale_id)
BEGIN SELECT RAISE(ABORT, 'what comes back is of one completed sale'); END;

-- Who owes for a sale, or never paid a part of it, gets money back only for what is more than that.
CREATE TRIGGER returns_waive_before_they_pay BEFORE INSERT ON returns
WHEN (EXISTS (SELECT 1 FROM refunds WHERE return_id = NEW.id) OR EXISTS (SELECT 1 FROM cash_refunds WHERE return_id = NEW.id))
    AND EXISTS (
        SELECT 1 FROM tenders CROSS JOIN late_declines AS late ON late.tender_id = tenders.id
        WHERE tenders.sale_id = NEW.sale_id AND CASE late.state
            WHEN 'open' THEN NOT EXISTS (SELECT 1 FROM return_waived WHERE return_id = NEW.id AND tender_id = late.tender_id AND rest = 0)
            WHEN 'written_off' THEN late.amount
                > (SELECT coalesce(sum(amount), 0) FROM return_waived WHERE tender_id = late.tender_id AND was_lost = 1)
            ELSE 0 END)
BEGIN SELECT RAISE(ABORT, 'no money goes back while something of the sale was never paid'); END;

CREATE TRIGGER returns_lower_what_is_owed AFTER INSERT ON returns
BEGIN
    UPDATE late_declines SET
        amount = (SELECT rest FROM return_waived WHERE return_id = NEW.id AND tender_id = late_declines.tender_id),
        returned = returned + (SELECT amount FROM return_waived WHERE return_id = NEW.id AND tender_id = late_declines.tender_id),
        state = CASE (SELECT rest FROM return_waived WHERE return_id = NEW.id AND tender_id = late_declines.tender_id)
            WHEN 0 THEN 'settled' ELSE state END,
        ended_at = CASE (SELECT rest FROM return_waived WHERE return_id = NEW.id AND tender_id = late_declines.tender_id)
            WHEN 0 THEN NEW.created_at END,
        ended_shift = CASE (SELECT rest FROM return_waived WHERE return_id = NEW.id AND tender_id = late_declines.tender_id)
            WHEN 0 THEN NEW.shift END
    WHERE tender_id IN (SELECT tender_id FROM return_waived WHERE return_id = NEW.id AND was_lost = 0);
END;

-- As before, and an open one is lowered by goods that come back. What is owed only ever gets less, so that each row of what is waived fits
-- once. Nothing else changes what is owed of an open one.
DROP TRIGGER late_declines_move;
CREATE TRIGGER late_declines_move BEFORE UPDATE ON late_declines
WHEN NEW.seq IS NOT OLD.seq OR NEW.tender_id IS NOT OLD.tender_id OR OLD.ended_at IS NOT NULL
    OR NEW.amount + NEW.returned <> OLD.amount + OLD.returned OR NEW.returned < OLD.returned
    OR (OLD.declined_at IS NOT NULL AND NEW.declined_at IS NOT OLD.declined_at)
    OR (OLD.reason IS NOT NULL AND (NEW.reason IS NOT OLD.reason OR NEW.written_off_by IS NOT OLD.written_off_by))
    OR (NEW.state <> 'collecting' AND NOT (OLD.state = 'open' AND NEW.state = 'settled')
        AND NEW.last_tender_id IS NOT OLD.last_tender_id)
    OR (NEW.rounding <> 0 AND NOT (OLD.state = 'open' AND NEW.state = 'settled'))
    OR CASE
        WHEN OLD.state <> 'open' THEN 0
        WHEN NEW.returned = OLD.returned THEN NEW.state = 'open'
        ELSE NEW.state NOT IN ('open', 'settled') OR (NEW.state = 'settled') <> (NEW.amount = 0) OR NEW.rounding <> 0
            OR NEW.last_tender_id IS NOT OLD.last_tender_id OR NOT EXISTS (
                SELECT 1 FROM return_waived AS waived JOIN returns ON returns.id = waived.return_id
                WHERE waived.tender_id = OLD.tender_id AND waived.was_lost = 0 AND waived.rest = NEW.amount
                    AND waived.amount = NEW.returned - OLD.returned)
        END
    OR NOT CASE NEW.state
        WHEN 'open' THEN OLD.state = 'open' OR OLD.state IN ('attention', 'collecting')
            AND EXISTS (SELECT 1 FROM tenders WHERE id = OLD.last_tender_id AND state IN ('declined', 'cancelled'))
        WHEN 'collecting' THEN OLD.state = 'open'
            AND EXISTS (SELECT 1 FROM tenders WHERE id = NEW.last_tender_id AND replaces = OLD.last_tender_id)
        WHEN 'settled' THEN (OLD.state = 'open' AND (NEW.returned > OLD.returned
                OR EXISTS (SELECT 1 FROM tenders WHERE id = NEW.last_tender_id AND kind = 'cash'
                    AND collects = OLD.tender_id AND replaces = OLD.last_tender_id AND amount = NEW.amount + NEW.rounding)))
            OR OLD.state IN ('attention', 'collecting', 'writing_off') AND EXISTS (SELECT 1 FROM tenders WHERE id = OLD.last_tender_id
                AND (state = 'approved' OR (NEW.amount = 0 AND state IN ('declined', 'cancelled'))))
        WHEN 'writing_off' THEN OLD.state = 'attention'
        WHEN 'written_off' THEN OLD.state IN ('open', 'writing_off')
            AND EXISTS (SELECT 1 FROM tenders WHERE id = OLD.last_tender_id AND state IN ('declined', 'cancelled'))
        ELSE 0 END
BEGIN SELECT RAISE(ABORT, 'a late decline is collected again or written off, once, or lowered by what comes back'); END;

---- Cash that is given back

-- Once there are shifts it leaves the drawer of the open one, by a move that is saved just before it. And what leaves the drawer as given
-- back was given back: a move that is not is no commit. The column is computed, so that it holds of each.
CREATE TRIGGER cash_refunds_leave_the_drawer BEFORE INSERT ON cash_refunds
WHEN EXISTS (SELECT 1 FROM shifts) AND nullif(NEW.amount, 0)
    IS NOT (SELECT amount FROM drawer_moves WHERE id = NEW.id AND kind = 'refund' AND shift = NEW.shift)
BEGIN SELECT RAISE(ABORT, 'cash that is given back leaves the drawer of the open shift'); END;

ALTER TABLE drawer_moves ADD COLUMN cash_refund_id TEXT REFERENCES cash_refunds (id) DEFERRABLE INITIALLY DEFERRED
    GENERATED ALWAYS AS (CASE kind WHEN 'refund' THEN id END) VIRTUAL;

CREATE TRIGGER drawer_moves_of_new_cash_refunds BEFORE INSERT ON drawer_moves
WHEN NEW.kind = 'refund' AND EXISTS (SELECT 1 FROM cash_refunds WHERE id = NEW.id)
BEGIN SELECT RAISE(ABORT, 'cash that is given back leaves the drawer of the open shift'); END;
