CREATE TABLE operations (
    id           INTEGER PRIMARY KEY,
    merchant     TEXT    NOT NULL,
    key          BLOB    NOT NULL CHECK (length(key) = 16),
    hash         BLOB    NOT NULL,
    payload      BLOB,
    created_ms   INTEGER NOT NULL,
    completed_ms INTEGER,
    status       INTEGER,
    payment_id   TEXT,
    body         BLOB,
    UNIQUE (merchant, key)
) STRICT;
CREATE INDEX operations_unfinished ON operations (id) WHERE status IS NULL;

CREATE TABLE payments (
    operation     INTEGER PRIMARY KEY REFERENCES operations (id),
    id            TEXT    NOT NULL UNIQUE,
    merchant      TEXT    NOT NULL,
    amount        INTEGER NOT NULL CHECK (amount > 0),
    currency      TEXT    NOT NULL,
    brand         TEXT,
    last4         TEXT,
    reference     TEXT,
    approval_code TEXT
) STRICT;
CREATE INDEX payments_by_merchant ON payments (merchant, operation);

CREATE TABLE postings (
    operation INTEGER NOT NULL REFERENCES operations (id),
    account   TEXT    NOT NULL,
    currency  TEXT    NOT NULL,
    amount    INTEGER NOT NULL CHECK (amount <> 0),
    PRIMARY KEY (operation, account)
) STRICT, WITHOUT ROWID;
