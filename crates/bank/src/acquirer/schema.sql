-- What the bank is: made with the file, and never changed.
CREATE TABLE bank (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    id  BLOB NOT NULL CHECK (length(id) = 16)
) STRICT;

-- What is asked of the gateway for an operation: under which key, of which gateway, and how often. A key is stored
-- before its first use.
CREATE TABLE gateway_calls (
    operation INTEGER NOT NULL REFERENCES operations (id),
    purpose   TEXT    NOT NULL CHECK (purpose IN ('charge', 'refund', 'reversal')),
    key       BLOB    NOT NULL CHECK (length(key) = 16),
    -- NULL until it is known which gateway it is; then never another.
    gateway   BLOB    CHECK (length(gateway) = 16),
    attempts  INTEGER NOT NULL,
    PRIMARY KEY (operation, purpose)
) STRICT, WITHOUT ROWID;

CREATE TABLE payments (
    operation     INTEGER PRIMARY KEY REFERENCES operations (id),
    id            TEXT    NOT NULL UNIQUE,
    merchant      TEXT    NOT NULL,
    status        TEXT    NOT NULL CHECK (status IN ('approved', 'declined')),
    amount        INTEGER NOT NULL CHECK (amount > 0),
    currency      TEXT    NOT NULL,
    brand         TEXT,
    last4         TEXT,
    reference     TEXT,
    approval_code TEXT,
    decline_code  TEXT
) STRICT;
CREATE INDEX payments_by_merchant ON payments (merchant, operation);

-- A refund is here from its claim on: what runs is taken from what is left to refund.
CREATE TABLE refunds (
    operation    INTEGER PRIMARY KEY REFERENCES operations (id),
    id           TEXT    NOT NULL UNIQUE,
    merchant     TEXT    NOT NULL,
    payment      INTEGER NOT NULL REFERENCES payments (operation),
    status       TEXT    NOT NULL CHECK (status IN ('processing', 'approved', 'declined', 'cancelled')),
    amount       INTEGER NOT NULL CHECK (amount > 0),
    decline_code TEXT
) STRICT;
CREATE INDEX refunds_by_payment ON refunds (payment);

-- The ledger, in double entry: the amounts of an entry add up to nothing. Only ever added to.
CREATE TABLE postings (
    operation INTEGER NOT NULL REFERENCES operations (id),
    entry     TEXT    NOT NULL CHECK (entry IN ('charge', 'refund', 'reversal')),
    account   TEXT    NOT NULL,
    currency  TEXT    NOT NULL,
    amount    INTEGER NOT NULL CHECK (amount <> 0),
    PRIMARY KEY (operation, entry, account)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER postings_are_not_changed BEFORE UPDATE ON postings BEGIN SELECT RAISE (ABORT, 'the ledger is only added to'); END;
CREATE TRIGGER postings_are_not_deleted BEFORE DELETE ON postings BEGIN SELECT RAISE (ABORT, 'the ledger is only added to'); END;
