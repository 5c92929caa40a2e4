-- Who works at the till, what each may do, an audit in which a change shows, and the shifts of its drawer.

---- People

-- Nobody is ever deleted: the audit names them. `pin` is a PHC string (argon2id), so that its parameters may grow with the years.
-- Wrong tries stand here and not in memory, so that a restart gives no new ones; `wrong_at` is when the last was counted.
CREATE TABLE people (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    name        TEXT NOT NULL UNIQUE COLLATE NOCASE CHECK (name = trim(name) AND length(name) BETWEEN 1 AND 40),
    role        TEXT NOT NULL CHECK (role IN ('cashier', 'manager')),
    pin         TEXT NOT NULL CHECK (pin GLOB '$argon2id$v=19$*'),
    active      INTEGER NOT NULL CHECK (active IN (0, 1)),
    wrong_tries INTEGER NOT NULL DEFAULT 0 CHECK (wrong_tries >= 0),
    wrong_at    INTEGER,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL,
    CHECK (wrong_tries = 0 OR wrong_at IS NOT NULL)
) STRICT;

CREATE TRIGGER people_begin_with_a_manager BEFORE INSERT ON people
WHEN (NEW.role <> 'manager' OR NEW.active <> 1) AND NOT EXISTS (SELECT 1 FROM people WHERE role = 'manager' AND active = 1)
BEGIN SELECT RAISE(ABORT, 'the first person is a manager, and active'); END;

CREATE TRIGGER people_keep_a_manager AFTER UPDATE ON people
WHEN NOT EXISTS (SELECT 1 FROM people WHERE role = 'manager' AND active = 1)
BEGIN SELECT RAISE(ABORT, 'there is always an active manager'); END;

CREATE TRIGGER people_keep_who_they_are BEFORE UPDATE ON people
WHEN NEW.id IS NOT OLD.id OR NEW.created_at IS NOT OLD.created_at
BEGIN SELECT RAISE(ABORT, 'a person keeps the id'); END;

CREATE TRIGGER people_stay BEFORE DELETE ON people
BEGIN SELECT RAISE(ABORT, 'a person is never dropped: the audit names them'); END;

-- Who is logged in. `opening` is an id that the program makes each time it opens the file: after a restart the row names another
-- opening, and nobody is logged in, without a write at the start.
CREATE TABLE sessions (
    id        INTEGER PRIMARY KEY CHECK (id = 1),
    person_id INTEGER NOT NULL REFERENCES people (id),
    opening   TEXT NOT NULL CHECK (length(opening) = 36),
    since     INTEGER NOT NULL
) STRICT;

-- What a role may do: not at all, up to a limit, or without one. Amounts in minor units of the till's currency, percents in thousandths.
CREATE TABLE rights (
    role        TEXT NOT NULL CHECK (role IN ('cashier', 'manager')),
    name        TEXT NOT NULL CHECK (name IN ('discount', 'price_override', 'refund', 'drop_sale', 'cash_out', 'no_sale',
        'offline_over_limit', 'write_off', 'close_shift', 'shift_report', 'settings', 'people', 'catalogue', 'restore', 'audit_export')),
    allowed     INTEGER NOT NULL CHECK (allowed IN (0, 1)),
    amount_max  INTEGER CHECK (amount_max >= 0),
    percent_max INTEGER CHECK (percent_max BETWEEN 0 AND 100000),
    PRIMARY KEY (role, name),
    CHECK (allowed = 1 OR (amount_max IS NULL AND percent_max IS NULL)),
    CHECK (amount_max IS NULL OR name IN ('discount', 'refund', 'cash_out')),
    CHECK (percent_max IS NULL OR name = 'discount'),
    -- Else nobody could ever set it right again.
    CHECK (role <> 'manager' OR name <> 'people' OR allowed = 1)
) STRICT, WITHOUT ROWID;

INSERT INTO rights (role, name, allowed, amount_max, percent_max) VALUES
    ('cashier', 'discount', 1, 500, 10000),
    ('cashier', 'price_override', 0, NULL, NULL),
    ('cashier', 'refund', 1, 2000, NULL),
    ('cashier', 'drop_sale', 1, NULL, NULL),
    ('cashier', 'cash_out', 0, NULL, NULL),
    ('cashier', 'no_sale', 1, NULL, NULL),
    ('cashier', 'offline_over_limit', 0, NULL, NULL),
    ('cashier', 'write_off', 0, NULL, NULL),
    ('cashier', 'close_shift', 1, NULL, NULL),
    -- It tells what the drawer should hold, which who counts it must not know before.
    ('cashier', 'shift_report', 0, NULL, NULL),
    ('cashier', 'settings', 0, NULL, NULL),
    ('cashier', 'people', 0, NULL, NULL),
    ('cashier', 'catalogue', 0, NULL, NULL),
    ('cashier', 'restore', 0, NULL, NULL),
    ('cashier', 'audit_export', 0, NULL, NULL);

INSERT INTO rights (role, name, allowed) SELECT 'manager', name, 1 FROM rights WHERE role = 'cashier';

-- What is given away on an open sale, by discounts and by other prices than the list's, that somebody let pass who may more than a cashier:
-- the amount in minor units, and who. So a manager is asked again only where it becomes more.
ALTER TABLE sales ADD COLUMN discount_allowed INTEGER CHECK (discount_allowed >= 0);
ALTER TABLE sales ADD COLUMN discount_allowed_by INTEGER REFERENCES people (id)
    CHECK ((discount_allowed IS NULL) = (discount_allowed_by IS NULL));
ALTER TABLE sales ADD COLUMN price_allowed INTEGER CHECK (price_allowed >= 0);
ALTER TABLE sales ADD COLUMN price_allowed_by INTEGER REFERENCES people (id)
    CHECK ((price_allowed IS NULL) = (price_allowed_by IS NULL));

CREATE TRIGGER sales_give_away_while_open BEFORE UPDATE ON sales
WHEN OLD.state <> 'open' AND (NEW.discount_allowed IS NOT OLD.discount_allowed OR NEW.discount_allowed_by IS NOT OLD.discount_allowed_by
    OR NEW.price_allowed IS NOT OLD.price_allowed OR NEW.price_allowed_by IS NOT OLD.price_allowed_by)
BEGIN SELECT RAISE(ABORT, 'a sale under payment is frozen: nobody lets more pass'); END;

CREATE TRIGGER rights_stay BEFORE DELETE ON rights
BEGIN SELECT RAISE(ABORT, 'each role has each right, allowed or not'); END;

CREATE TRIGGER rights_keep_their_names BEFORE UPDATE ON rights
WHEN NEW.role IS NOT OLD.role OR NEW.name IS NOT OLD.name
BEGIN SELECT RAISE(ABORT, 'each role has each right, allowed or not'); END;

---- Audit: chained, so that a change shows

-- Made anew: each entry has the SHA-256 of the one before it and its own, over all its other columns (their form is documented in
-- audit/chain.rs). `app_version` is unknown of what older programs wrote. `who` and `approved_by` are the names at that time, beside
-- the ids, so that an entry can be read alone.
ALTER TABLE audit RENAME TO audit_unchained;
DROP INDEX audit_by_sale;

CREATE TABLE audit (
    seq         INTEGER PRIMARY KEY,
    at          INTEGER NOT NULL,
    offset_s    INTEGER NOT NULL,                                      -- of the shop's zone at that moment, east positive
    app_version TEXT CHECK (app_version <> ''),
    who         TEXT NOT NULL CHECK (who <> ''),
    person_id   INTEGER REFERENCES people (id),
    approved_by TEXT CHECK (approved_by <> ''),
    approver_id INTEGER REFERENCES people (id),
    what        TEXT NOT NULL CHECK (what <> ''),
    sale_id     TEXT,
    details     TEXT NOT NULL CHECK (details <> ''),
    previous    BLOB NOT NULL CHECK (length(previous) = 32),           -- the hash of the entry before, 32 zero bytes for the first
    hash        BLOB NOT NULL CHECK (length(hash) = 32),
    CHECK ((approved_by IS NULL) = (approver_id IS NULL))
) STRICT;

-- `audit_hash` is this program's own, there while the file is brought up to date. One entry after the other, in the order of their
-- places; a gap, which no till ever made, is carried over for the check to find.
INSERT INTO audit (seq, at, offset_s, who, what, sale_id, details, previous, hash)
WITH RECURSIVE chain (seq, previous, hash) AS (
    SELECT 0, NULL, zeroblob(32)
    UNION ALL
    SELECT entry.seq, chain.hash, audit_hash(chain.hash, entry.seq, entry.at, entry.offset_s, NULL, entry.who, NULL, NULL, NULL,
        entry.what, entry.sale_id, entry.details)
    FROM chain CROSS JOIN audit_unchained AS entry
    WHERE entry.seq = (SELECT min(later.seq) FROM audit_unchained AS later WHERE later.seq > chain.seq)
)
SELECT entry.seq, entry.at, entry.offset_s, entry.who, entry.what, entry.sale_id, entry.details, chain.previous, chain.hash
FROM chain CROSS JOIN audit_unchained AS entry WHERE entry.seq = chain.seq;

DROP TABLE audit_unchained;

CREATE INDEX audit_by_sale ON audit (sale_id, seq) WHERE sale_id IS NOT NULL;

-- Where the chain ends, in a row of its own, changed in the same commit: a tail that is cut off shows.
CREATE TABLE audit_head (
    id   INTEGER PRIMARY KEY CHECK (id = 1),
    seq  INTEGER NOT NULL CHECK (seq >= 0),
    hash BLOB NOT NULL CHECK (length(hash) = 32)
) STRICT;

INSERT INTO audit_head (id, seq, hash)
SELECT 1, coalesce(max(seq), 0), coalesce((SELECT hash FROM audit ORDER BY seq DESC LIMIT 1), zeroblob(32)) FROM audit;

CREATE TRIGGER audit_appends BEFORE INSERT ON audit
WHEN NEW.seq IS NOT (SELECT seq + 1 FROM audit_head) OR NEW.previous IS NOT (SELECT hash FROM audit_head) OR NEW.app_version IS NULL
BEGIN SELECT RAISE(ABORT, 'the audit is append-only, without gaps: an entry follows its head'); END;

CREATE TRIGGER audit_moves_its_head AFTER INSERT ON audit
BEGIN UPDATE audit_head SET seq = NEW.seq, hash = NEW.hash; END;

CREATE TRIGGER audit_never_changes BEFORE UPDATE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit is append-only'); END;

CREATE TRIGGER audit_never_shrinks BEFORE DELETE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit is append-only'); END;

CREATE TRIGGER audit_head_follows BEFORE UPDATE ON audit_head
WHEN NEW.id IS NOT OLD.id OR NEW.seq IS NOT OLD.seq + 1
    OR NOT EXISTS (SELECT 1 FROM audit WHERE seq = NEW.seq AND hash = NEW.hash AND previous = OLD.hash)
BEGIN SELECT RAISE(ABORT, 'the head of the audit follows its last entry'); END;

CREATE TRIGGER audit_head_is_one BEFORE INSERT ON audit_head
BEGIN SELECT RAISE(ABORT, 'the audit has one head'); END;

CREATE TRIGGER audit_head_stays BEFORE DELETE ON audit_head
BEGIN SELECT RAISE(ABORT, 'the audit has one head'); END;

---- Shifts: one drawer, one after the other

-- The number of a shift is that of its Z report: from 1, without gaps. A closed one never changes; `report` is its Z report, whole, as it
-- was. (NULL is said apart: to SQLite before 3.45 it is no valid JSON.) `opened_seq` is the last entry of the audit that an earlier shift's Z
-- report counted; of the first shift, the last before it.
CREATE TABLE shifts (
    number       INTEGER PRIMARY KEY CHECK (number >= 1),
    intent_id    TEXT NOT NULL UNIQUE CHECK (length(intent_id) = 36),
    currency     TEXT NOT NULL CHECK (length(currency) = 3),
    float_amount INTEGER NOT NULL CHECK (float_amount >= 0),
    business_day TEXT NOT NULL CHECK (business_day GLOB '[0-9][0-9][0-9][0-9]-[0-1][0-9]-[0-3][0-9]'),
    opened_at    INTEGER NOT NULL,
    opened_by    TEXT NOT NULL CHECK (opened_by <> ''),
    opened_seq   INTEGER NOT NULL CHECK (opened_seq >= 0),
    expected     INTEGER,                                              -- these five: known at its closing
    counted      INTEGER CHECK (counted >= 0),
    closed_at    INTEGER,
    closed_by    TEXT CHECK (closed_by <> ''),
    report       TEXT CHECK (report IS NULL OR json_valid(report)),
    CHECK ((closed_at IS NULL) = (expected IS NULL) AND (closed_at IS NULL) = (counted IS NULL)
        AND (closed_at IS NULL) = (closed_by IS NULL) AND (closed_at IS NULL) = (report IS NULL))
) STRICT;

CREATE UNIQUE INDEX shifts_one_open ON shifts ((1)) WHERE closed_at IS NULL;

-- What goes into the drawer and out of it beside the sales: never changed, never dropped. `refund` is cash that is given back.
CREATE TABLE drawer_moves (
    id          TEXT PRIMARY KEY CHECK (length(id) = 36),
    shift       INTEGER NOT NULL REFERENCES shifts (number),
    kind        TEXT NOT NULL CHECK (kind IN ('in', 'out', 'no_sale', 'refund')),
    amount      INTEGER NOT NULL CHECK (amount >= 0),
    reason      TEXT NOT NULL CHECK (reason <> ''),
    who         TEXT NOT NULL CHECK (who <> ''),
    approved_by TEXT CHECK (approved_by <> ''),
    at          INTEGER NOT NULL,
    CHECK ((kind = 'no_sale') = (amount = 0))
) STRICT;

CREATE INDEX drawer_moves_by_shift ON drawer_moves (shift, at, id);

-- Each count of the drawer, also those that were counted again: `expected` was told to nobody before.
CREATE TABLE drawer_counts (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    shift    INTEGER NOT NULL REFERENCES shifts (number),
    counted  INTEGER NOT NULL CHECK (counted >= 0),
    expected INTEGER NOT NULL,
    pieces   TEXT CHECK (pieces IS NULL OR json_valid(pieces)),                          -- by coin and note, where it was counted so
    who      TEXT NOT NULL CHECK (who <> ''),
    at       INTEGER NOT NULL
) STRICT;

CREATE INDEX drawer_counts_by_shift ON drawer_counts (shift, id);

-- The shift in which a sale completed, in which cash was taken, in which a card's refund was approved. 0: before there were shifts.
-- The triggers below set it. What happens while none is open (the bank's late answer at night) belongs to the next one.
ALTER TABLE sales ADD COLUMN shift INTEGER;
ALTER TABLE tenders ADD COLUMN shift INTEGER;
ALTER TABLE refunds ADD COLUMN shift INTEGER;
UPDATE sales SET shift = 0 WHERE state = 'completed';
UPDATE tenders SET shift = 0 WHERE kind = 'cash';
UPDATE refunds SET shift = 0 WHERE state = 'approved';
CREATE INDEX sales_by_shift ON sales (shift) WHERE shift > 0;
CREATE INDEX tenders_by_shift ON tenders (shift) WHERE shift > 0;
CREATE INDEX refunds_by_shift ON refunds (shift) WHERE shift > 0;

-- The shift that what happens now belongs to.
CREATE VIEW shift_now (number) AS
SELECT CASE WHEN EXISTS (SELECT 1 FROM shifts)
    THEN coalesce((SELECT number FROM shifts WHERE closed_at IS NULL), (SELECT max(number) + 1 FROM shifts)) ELSE 0 END;

-- What each shift's drawer should hold: its float, the cash that was taken and stayed, and what was put in and taken out.
CREATE VIEW drawers (shift, expected) AS
SELECT number, float_amount
    + (SELECT coalesce(sum(amount), 0) FROM tenders WHERE tenders.shift = number AND tenders.shift > 0 AND kind = 'cash')
    + (SELECT coalesce(sum(CASE kind WHEN 'in' THEN amount ELSE -amount END), 0) FROM drawer_moves WHERE drawer_moves.shift = number)
FROM shifts;

CREATE TRIGGER shifts_follow_each_other BEFORE INSERT ON shifts
WHEN NEW.number IS NOT (SELECT coalesce(max(number), 0) + 1 FROM shifts) OR NEW.closed_at IS NOT NULL
    OR EXISTS (SELECT 1 FROM shifts WHERE closed_at IS NULL)
BEGIN SELECT RAISE(ABORT, 'a shift begins open, after the one before it was closed, and is numbered without gaps'); END;

CREATE TRIGGER shifts_keep_what_they_are BEFORE UPDATE ON shifts
WHEN OLD.closed_at IS NOT NULL OR NEW.number IS NOT OLD.number OR NEW.intent_id IS NOT OLD.intent_id
    OR NEW.currency IS NOT OLD.currency OR NEW.float_amount IS NOT OLD.float_amount OR NEW.business_day IS NOT OLD.business_day
    OR NEW.opened_at IS NOT OLD.opened_at OR NEW.opened_by IS NOT OLD.opened_by OR NEW.opened_seq IS NOT OLD.opened_seq
BEGIN SELECT RAISE(ABORT, 'a shift never changes, but to be closed once'); END;

CREATE TRIGGER shifts_close_as_counted BEFORE UPDATE ON shifts
WHEN NEW.closed_at IS NOT NULL AND (
    NEW.expected IS NOT (SELECT expected FROM drawers WHERE shift = OLD.number)
    OR NOT EXISTS (SELECT 1 FROM drawer_counts WHERE id = (SELECT max(id) FROM drawer_counts WHERE shift = OLD.number)
        AND counted = NEW.counted AND expected = NEW.expected))
BEGIN SELECT RAISE(ABORT, 'a shift closes with what its drawer should hold and what was counted last'); END;

CREATE TRIGGER shifts_stay BEFORE DELETE ON shifts
BEGIN SELECT RAISE(ABORT, 'a shift is never dropped'); END;

CREATE TRIGGER drawer_moves_in_the_open_shift BEFORE INSERT ON drawer_moves
WHEN NEW.shift IS NOT (SELECT number FROM shifts WHERE closed_at IS NULL)
    OR (NEW.kind IN ('out', 'refund') AND NEW.amount > (SELECT expected FROM drawers WHERE shift = NEW.shift))
BEGIN SELECT RAISE(ABORT, 'the drawer moves in the open shift, and gives no more than it holds'); END;

CREATE TRIGGER drawer_moves_never_change BEFORE UPDATE ON drawer_moves
BEGIN SELECT RAISE(ABORT, 'what went through the drawer never changes'); END;

CREATE TRIGGER drawer_moves_stay BEFORE DELETE ON drawer_moves
BEGIN SELECT RAISE(ABORT, 'what went through the drawer never changes'); END;

CREATE TRIGGER drawer_counts_in_the_open_shift BEFORE INSERT ON drawer_counts
WHEN NEW.shift IS NOT (SELECT number FROM shifts WHERE closed_at IS NULL)
    OR NEW.expected IS NOT (SELECT expected FROM drawers WHERE shift = NEW.shift)
BEGIN SELECT RAISE(ABORT, 'the drawer of the open shift is counted, against what it should hold'); END;

CREATE TRIGGER drawer_counts_never_change BEFORE UPDATE ON drawer_counts
BEGIN SELECT RAISE(ABORT, 'a count never changes'); END;

CREATE TRIGGER drawer_counts_stay BEFORE DELETE ON drawer_counts
BEGIN SELECT RAISE(ABORT, 'a count never changes'); END;

CREATE TRIGGER sales_complete_in_a_shift AFTER UPDATE ON sales
WHEN OLD.state <> 'completed' AND NEW.state = 'completed'
BEGIN UPDATE sales SET shift = (SELECT number FROM shift_now) WHERE id = NEW.id; END;

CREATE TRIGGER sales_keep_their_shift BEFORE UPDATE ON sales
WHEN NEW.shift IS NOT OLD.shift
    AND (OLD.shift IS NOT NULL OR OLD.state <> 'completed' OR NEW.shift IS NOT (SELECT number FROM shift_now))
BEGIN SELECT RAISE(ABORT, 'a sale belongs to the shift in which it completed'); END;

CREATE TRIGGER sales_begin_in_no_shift BEFORE INSERT ON sales
WHEN NEW.shift IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'a sale belongs to the shift in which it completed'); END;

CREATE TRIGGER tenders_take_cash_in_a_shift BEFORE INSERT ON tenders
WHEN NEW.shift IS NOT NULL OR (NEW.kind = 'cash' AND EXISTS (SELECT 1 FROM shifts) AND NOT EXISTS (
    SELECT 1 FROM shifts WHERE closed_at IS NULL AND currency = (SELECT currency FROM sales WHERE id = NEW.sale_id)))
BEGIN SELECT RAISE(ABORT, 'cash is taken in an open shift, in the currency of its drawer'); END;

CREATE TRIGGER tenders_of_cash_belong_to_a_shift AFTER INSERT ON tenders
WHEN NEW.kind = 'cash'
BEGIN UPDATE tenders SET shift = (SELECT number FROM shift_now) WHERE id = NEW.id; END;

CREATE TRIGGER tenders_keep_their_shift BEFORE UPDATE ON tenders
WHEN NEW.shift IS NOT OLD.shift
    AND (OLD.shift IS NOT NULL OR OLD.kind <> 'cash' OR NEW.shift IS NOT (SELECT number FROM shift_now))
BEGIN SELECT RAISE(ABORT, 'cash belongs to the shift in which it was taken'); END;

CREATE TRIGGER refunds_are_approved_in_a_shift AFTER UPDATE ON refunds
WHEN OLD.state <> 'approved' AND NEW.state = 'approved'
BEGIN UPDATE refunds SET shift = (SELECT number FROM shift_now) WHERE id = NEW.id; END;

CREATE TRIGGER refunds_keep_their_shift BEFORE UPDATE ON refunds
WHEN NEW.shift IS NOT OLD.shift
    AND (OLD.shift IS NOT NULL OR OLD.state <> 'approved' OR NEW.shift IS NOT (SELECT number FROM shift_now))
BEGIN SELECT RAISE(ABORT, 'a refund belongs to the shift in which it was approved'); END;

-- The business day is the shop's, and not the machine's: an empty zone is the machine's all the same.
INSERT INTO settings (name, value)
SELECT new.column1, new.column2 FROM (VALUES ('time_zone', ''), ('day_start_hour', '0')) AS new WHERE EXISTS (SELECT 1 FROM settings);

CREATE TRIGGER settings_keep_the_currency_of_a_drawer BEFORE UPDATE ON settings
WHEN NEW.name = 'currency' AND NEW.value IS NOT OLD.value AND EXISTS (SELECT 1 FROM shifts WHERE closed_at IS NULL)
BEGIN SELECT RAISE(ABORT, 'the currency stays while a shift is open'); END;
