-- What a file that was brought back must not forget: the names its till had, what of the bank's list it could not place, and that the list
-- is gone through twice.

---- Names

-- Each name of this till, with the first numbers of sale and receipt that are given under it. The last is the one in the settings. No name
-- comes back: under it, numbers may be with the bank and on paper that this file has never given.
CREATE TABLE till_names (
    position     INTEGER PRIMARY KEY CHECK (position >= 1),
    name         TEXT NOT NULL CHECK (name <> ''),
    from_sale    INTEGER NOT NULL CHECK (from_sale >= 1),
    from_receipt INTEGER NOT NULL CHECK (from_receipt >= 1)
) STRICT;

-- What an older file knows of them stands in its audit: each change of the name, and the numbers that were given before it.
INSERT INTO till_names (position, name, from_sale, from_receipt)
WITH entries (seq, what, details) AS MATERIALIZED (
    SELECT seq, what, details FROM audit WHERE json_valid(details)
), renames (seq, before, after) AS MATERIALIZED (
    SELECT seq, before, after FROM (
        SELECT seq, details ->> '$.before' AS before, details ->> '$.after' AS after FROM entries WHERE what = 'till-restored'
        UNION ALL
        SELECT seq, details ->> '$.before.till_name', details ->> '$.after.till_name' FROM entries WHERE what = 'settings-saved')
    WHERE before <> after AND after <> ''
), named (seq, name) AS (
    SELECT 0, coalesce((SELECT before FROM renames ORDER BY seq LIMIT 1), (SELECT value FROM settings WHERE name = 'till_name'))
    UNION ALL SELECT seq, after FROM renames
)
SELECT row_number() OVER (ORDER BY seq), name,
    1 + coalesce((SELECT max(details ->> '$.sale') FROM entries
                  WHERE entries.seq < named.seq AND what IN ('payment-begun', 'cash-taken')), 0),
    1 + coalesce((SELECT max(details ->> '$.receipt') FROM entries
                  WHERE entries.seq < named.seq AND what IN ('sale-completed', 'goods-returned')), 0)
FROM named WHERE name <> '';

-- Where that does not come to the name it has.
INSERT INTO till_names (position, name, from_sale, from_receipt)
SELECT (SELECT coalesce(max(position), 0) + 1 FROM till_names), value,
    (SELECT last + 1 FROM counters WHERE name = 'sale'), (SELECT last + 1 FROM counters WHERE name = 'receipt')
FROM settings WHERE name = 'till_name' AND value IS NOT (SELECT name FROM till_names ORDER BY position DESC LIMIT 1);

CREATE TRIGGER till_names_begin BEFORE INSERT ON till_names
WHEN NEW.position IS NOT (SELECT coalesce(max(position), 0) + 1 FROM till_names)
    OR NEW.name IS NOT (SELECT value FROM settings WHERE name = 'till_name')
    OR NEW.from_sale IS NOT (SELECT last + 1 FROM counters WHERE name = 'sale')
    OR NEW.from_receipt IS NOT (SELECT last + 1 FROM counters WHERE name = 'receipt')
    OR EXISTS (SELECT 1 FROM till_names WHERE name = NEW.name)
BEGIN SELECT RAISE(ABORT, 'a till has each name once, from the next number on'); END;

CREATE TRIGGER till_names_never_change BEFORE UPDATE ON till_names
BEGIN SELECT RAISE(ABORT, 'a name that the till had is never forgotten'); END;

CREATE TRIGGER till_names_stay BEFORE DELETE ON till_names
BEGIN SELECT RAISE(ABORT, 'a name that the till had is never forgotten'); END;

CREATE TRIGGER settings_name_the_till AFTER INSERT ON settings
WHEN NEW.name = 'till_name' AND NEW.value IS NOT (SELECT name FROM till_names ORDER BY position DESC LIMIT 1)
BEGIN
    INSERT INTO till_names (position, name, from_sale, from_receipt)
    SELECT (SELECT coalesce(max(position), 0) + 1 FROM till_names), NEW.value,
        (SELECT last + 1 FROM counters WHERE name = 'sale'), (SELECT last + 1 FROM counters WHERE name = 'receipt');
END;

CREATE TRIGGER settings_rename_the_till AFTER UPDATE ON settings
WHEN NEW.name = 'till_name' AND NEW.value IS NOT (SELECT name FROM till_names ORDER BY position DESC LIMIT 1)
BEGIN
    INSERT INTO till_names (position, name, from_sale, from_receipt)
    SELECT (SELECT coalesce(max(position), 0) + 1 FROM till_names), NEW.value,
        (SELECT last + 1 FROM counters WHERE name = 'sale'), (SELECT last + 1 FROM counters WHERE name = 'receipt');
END;

---- Restores

-- How far back the bank's list is read, by the bank's own clock; NULL: all of it. And when the list was gone through the last time: what
-- the bank was still at when it was matched first is in it by then.
ALTER TABLE restores ADD COLUMN list_from INTEGER;
ALTER TABLE restores ADD COLUMN closed_at INTEGER CHECK (closed_at IS NULL OR matched_at IS NOT NULL);

DROP TRIGGER restores_are_matched_once;
UPDATE restores SET closed_at = matched_at;

DROP TRIGGER restores_begin;
CREATE TRIGGER restores_begin BEFORE INSERT ON restores
WHEN NEW.matched_at IS NOT NULL OR NEW.closed_at IS NOT NULL OR NEW.id IS NOT (SELECT coalesce(max(id), 0) + 1 FROM restores)
BEGIN SELECT RAISE(ABORT, 'a restored file begins unmatched'); END;

CREATE TRIGGER restores_are_matched_once BEFORE UPDATE ON restores
WHEN NEW.id IS NOT OLD.id OR NEW.at IS NOT OLD.at OR NEW.copied_at IS NOT OLD.copied_at
    OR NEW.till_name_before IS NOT OLD.till_name_before OR NEW.till_name IS NOT OLD.till_name
    OR NEW.last_sale IS NOT OLD.last_sale OR NEW.list_from IS NOT OLD.list_from OR OLD.closed_at IS NOT NULL
    OR (OLD.matched_at IS NULL AND (NEW.matched_at IS NULL OR NEW.closed_at IS NOT NULL))
    OR (OLD.matched_at IS NOT NULL AND (NEW.matched_at IS NOT OLD.matched_at OR NEW.closed_at IS NULL))
BEGIN SELECT RAISE(ABORT, 'a restore never changes but that it is matched, once, and then closed'); END;

---- What of the bank's list has no place

-- A payment that the lost file made, and that no sale here can be paid by as it stands: with the number of its sale, where this file has
-- that. It is tried again whenever a payment of that sale turns out not to have paid; until then, or until somebody looked, no money is
-- taken for the sale. `payment`: the bank's own object.
CREATE TABLE unmatched_payments (
    payment_id  TEXT PRIMARY KEY CHECK (payment_id <> ''),
    key         BLOB NOT NULL UNIQUE CHECK (length(key) = 16),
    reference   TEXT NOT NULL,
    sale_number INTEGER REFERENCES sales (number),
    payment     TEXT NOT NULL CHECK (json_valid(payment)),
    bank_id     BLOB NOT NULL CHECK (length(bank_id) = 16),
    merchant    TEXT NOT NULL,
    found_at    INTEGER NOT NULL,
    ended       TEXT CHECK (ended IN ('matched', 'acknowledged')),
    ended_at    INTEGER,
    CHECK ((ended IS NULL) = (ended_at IS NULL))
) STRICT, WITHOUT ROWID;

CREATE INDEX unmatched_payments_open ON unmatched_payments (sale_number) WHERE ended IS NULL AND sale_number IS NOT NULL;

CREATE TRIGGER unmatched_payments_begin BEFORE INSERT ON unmatched_payments
WHEN NEW.ended IS NOT NULL OR EXISTS (SELECT 1 FROM operations WHERE key = NEW.key)
BEGIN SELECT RAISE(ABORT, 'a payment that the till knows is matched'); END;

CREATE TRIGGER unmatched_payments_end_once BEFORE UPDATE ON unmatched_payments
WHEN NEW.payment_id IS NOT OLD.payment_id OR NEW.key IS NOT OLD.key OR NEW.reference IS NOT OLD.reference
    OR NEW.sale_number IS NOT OLD.sale_number OR NEW.payment IS NOT OLD.payment OR NEW.bank_id IS NOT OLD.bank_id
    OR NEW.merchant IS NOT OLD.merchant OR NEW.found_at IS NOT OLD.found_at OR OLD.ended IS NOT NULL OR NEW.ended IS NULL
    OR (NEW.ended = 'matched') <> EXISTS (SELECT 1 FROM operations WHERE key = OLD.key)
BEGIN SELECT RAISE(ABORT, 'a payment of the bank''s without a place is matched or looked at, once'); END;

CREATE TRIGGER unmatched_payments_stay BEFORE DELETE ON unmatched_payments
BEGIN SELECT RAISE(ABORT, 'a payment of the bank''s without a place is never forgotten'); END;

---- What waits

-- In each of these, what the bank approved already is taken over.
CREATE TRIGGER tenders_wait_for_the_second_match BEFORE INSERT ON tenders
WHEN EXISTS (SELECT 1 FROM restores JOIN sales ON sales.id = NEW.sale_id
             WHERE closed_at IS NULL AND matched_at IS NOT NULL AND sales.number <= restores.last_sale)
    AND NOT EXISTS (SELECT 1 FROM operations WHERE intent_id = unhex(replace(NEW.id, '-', '')) AND state = 'approved')
BEGIN SELECT RAISE(ABORT, 'an older sale of a restored file takes no payment before the bank''s payments were matched again'); END;

CREATE TRIGGER tenders_wait_for_a_look BEFORE INSERT ON tenders
WHEN EXISTS (SELECT 1 FROM sales JOIN unmatched_payments ON sale_number = sales.number WHERE sales.id = NEW.sale_id AND ended IS NULL)
    AND NOT EXISTS (SELECT 1 FROM operations WHERE intent_id = unhex(replace(NEW.id, '-', '')) AND state = 'approved')
BEGIN SELECT RAISE(ABORT, 'a sale takes no money while a payment of the bank''s for it has no place'); END;

CREATE TRIGGER refunds_wait_for_the_match BEFORE INSERT ON refunds
WHEN EXISTS (SELECT 1 FROM restores WHERE matched_at IS NULL)
BEGIN SELECT RAISE(ABORT, 'a restored file gives nothing back before the bank''s payments were matched'); END;

CREATE TRIGGER returns_wait_for_the_match BEFORE INSERT ON returns
WHEN EXISTS (SELECT 1 FROM restores WHERE matched_at IS NULL)
BEGIN SELECT RAISE(ABORT, 'a restored file gives nothing back before the bank''s payments were matched'); END;

CREATE TRIGGER cash_refunds_wait_for_the_match BEFORE INSERT ON cash_refunds
WHEN EXISTS (SELECT 1 FROM restores WHERE matched_at IS NULL)
BEGIN SELECT RAISE(ABORT, 'a restored file gives nothing back before the bank''s payments were matched'); END;

CREATE TRIGGER voids_wait_for_the_match BEFORE INSERT ON voids
WHEN EXISTS (SELECT 1 FROM restores WHERE matched_at IS NULL)
BEGIN SELECT RAISE(ABORT, 'a restored file gives nothing back before the bank''s payments were matched'); END;

-- Back to the cart, or given up: both say that nobody paid.
CREATE TRIGGER sales_wait_for_the_match BEFORE UPDATE ON sales
WHEN ((OLD.state = 'paying' AND NEW.state = 'open') OR (OLD.dropped_at IS NULL AND NEW.dropped_at IS NOT NULL AND OLD.number IS NOT NULL))
    AND EXISTS (SELECT 1 FROM restores WHERE matched_at IS NULL)
BEGIN SELECT RAISE(ABORT, 'a restored file gives no sale up before the bank''s payments were matched'); END;

CREATE TRIGGER late_declines_wait_for_the_match BEFORE UPDATE ON late_declines
WHEN NEW.reason IS NOT OLD.reason AND EXISTS (SELECT 1 FROM restores WHERE matched_at IS NULL)
BEGIN SELECT RAISE(ABORT, 'a restored file gives no sale up before the bank''s payments were matched'); END;

CREATE TRIGGER late_declines_begin_after_the_match BEFORE INSERT ON late_declines
WHEN NEW.reason IS NOT NULL AND EXISTS (SELECT 1 FROM restores WHERE matched_at IS NULL)
BEGIN SELECT RAISE(ABORT, 'a restored file gives no sale up before the bank''s payments were matched'); END;
