-- What the gateway is: made with the file, and never changed.
CREATE TABLE gateway (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    id  BLOB NOT NULL CHECK (length(id) = 16)
) STRICT;

-- What was asked for a card, approved and declined.
CREATE TABLE charges (
    operation     INTEGER PRIMARY KEY REFERENCES operations (id),
    id            TEXT    NOT NULL,
    reference     TEXT    NOT NULL,
    status        TEXT    NOT NULL CHECK (status IN ('approved', 'declined')),
    amount        INTEGER NOT NULL CHECK (amount > 0),
    currency      TEXT    NOT NULL,
    account       INTEGER,
    brand         TEXT,
    last4         TEXT,
    approval_code TEXT,
    decline_code  TEXT,
    refunded      INTEGER NOT NULL DEFAULT 0 CHECK (refunded BETWEEN 0 AND amount),
    created_ms    INTEGER NOT NULL
) STRICT;
CREATE INDEX charges_by_reference ON charges (reference);

CREATE TABLE refunds (
    operation    INTEGER PRIMARY KEY REFERENCES operations (id),
    id           TEXT    NOT NULL,
    charge       INTEGER NOT NULL REFERENCES charges (operation),
    reference    TEXT    NOT NULL,
    status       TEXT    NOT NULL CHECK (status IN ('approved', 'declined')),
    amount       INTEGER NOT NULL CHECK (amount > 0),
    currency     TEXT    NOT NULL,
    decline_code TEXT,
    created_ms   INTEGER NOT NULL
) STRICT;
CREATE INDEX refunds_by_reference ON refunds (reference);

-- What is left on an account, once it has been drawn on.
CREATE TABLE accounts (
    number   INTEGER NOT NULL,
    currency TEXT    NOT NULL,
    balance  INTEGER NOT NULL CHECK (balance >= 0),
    PRIMARY KEY (number, currency)
) STRICT, WITHOUT ROWID;

-- How often each key was received, repeats and refusals included. Counted where the lab is open.
CREATE TABLE requests (
    key   BLOB    PRIMARY KEY,
    count INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
