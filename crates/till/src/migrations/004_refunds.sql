---- Refunds: one operation each, ever. A refund's id is the intent of its operation.

CREATE TABLE refunds (
    id         TEXT PRIMARY KEY CHECK (length(id) = 36),
    tender_id  TEXT NOT NULL REFERENCES tenders (id),                  -- the card tender that it gives back
    state      TEXT NOT NULL CHECK (state IN ('settling', 'approved', 'declined', 'cancelled', 'needs_attention')),
    amount     INTEGER NOT NULL CHECK (amount BETWEEN 1 AND 99999999),
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;

CREATE INDEX refunds_by_tender ON refunds (tender_id, id);

CREATE TRIGGER refunds_begin_within_what_is_left BEFORE INSERT ON refunds
WHEN NEW.state <> 'settling'
    OR NEW.amount + (SELECT coalesce(sum(amount), 0) FROM refunds
                     WHERE tender_id = NEW.tender_id AND state NOT IN ('declined', 'cancelled'))
        > coalesce((SELECT amount FROM tenders
                    WHERE id = NEW.tender_id AND kind = 'card' AND state NOT IN ('declined', 'cancelled')), 0)
BEGIN SELECT RAISE(ABORT, 'a refund is never over what is left of its tender'); END;

CREATE TRIGGER refunds_keep_what_they_are BEFORE UPDATE ON refunds
WHEN NEW.id IS NOT OLD.id OR NEW.tender_id IS NOT OLD.tender_id OR NEW.amount IS NOT OLD.amount
    OR NEW.created_at IS NOT OLD.created_at
BEGIN SELECT RAISE(ABORT, 'a refund never changes but for its state'); END;

CREATE TRIGGER refunds_final_is_final BEFORE UPDATE ON refunds
WHEN NEW.state <> OLD.state AND OLD.state NOT IN ('settling', 'needs_attention')
BEGIN SELECT RAISE(ABORT, 'a final result never changes'); END;

CREATE TRIGGER refunds_stay BEFORE DELETE ON refunds
BEGIN SELECT RAISE(ABORT, 'a refund is never dropped'); END;
