-- Who works at the till, what each may do, and an audit in which a change shows.

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
    offset_s    INTEGER NOT NULL,                                      -- of the till's local time at that moment, east positive
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
