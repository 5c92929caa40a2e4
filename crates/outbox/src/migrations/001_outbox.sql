-- The outbox: operations, their attempts, and what is known of the bank. Times are Unix milliseconds, UTC.

CREATE TABLE operations (
    seq           INTEGER PRIMARY KEY,
    key           BLOB    NOT NULL UNIQUE CHECK (length(key) = 16),
    -- Given before the click; unique over every state, final ones too.
    intent_id     BLOB    NOT NULL UNIQUE CHECK (length(intent_id) = 16),
    -- The intent that this one takes the place of: another card, collecting again.
    replaces      BLOB    UNIQUE REFERENCES operations (intent_id),
    -- One at a time in each lane.
    lane          TEXT    NOT NULL,
    kind          TEXT    NOT NULL CHECK (kind IN ('payment', 'refund')),
    -- The payment that a refund waits for.
    payment_key   BLOB    REFERENCES operations (key),
    -- The exact request; every attempt sends these bytes.
    method        TEXT    NOT NULL,
    path          TEXT    NOT NULL,
    body          BLOB,
    body_version  INTEGER NOT NULL,
    amount        INTEGER NOT NULL CHECK (amount > 0),
    currency      TEXT    NOT NULL CHECK (length(currency) = 3),
    state         TEXT    NOT NULL CHECK (state IN ('saved', 'sending', 'unknown', 'approved', 'declined', 'cancelled', 'needs_attention')),
    -- What the next call is: the request; a look first; the request again after the bank said that it knows no such key.
    ask           TEXT    NOT NULL DEFAULT 'send' CHECK (ask IN ('send', 'look_up', 'resend')),
    -- The start of the loop that last took it up.
    epoch         INTEGER NOT NULL DEFAULT 0,
    attempts      INTEGER NOT NULL DEFAULT 0,
    -- Failures in a row make the back-off longer, panics in its handling (ever) set it aside, deaths of the process in a row have
    -- it tried alone.
    failures      INTEGER NOT NULL DEFAULT 0,
    panics        INTEGER NOT NULL DEFAULT 0,
    deaths        INTEGER NOT NULL DEFAULT 0,
    first_sent_at INTEGER,
    -- NULL while a call is running.
    due_at        INTEGER,
    -- The bank's Retry-After; nothing passes it.
    not_before    INTEGER,
    reason        TEXT,
    last_answer   TEXT,
    result        TEXT,
    -- The bank of its first attempt; it goes to no other.
    bank_id       BLOB    CHECK (length(bank_id) = 16),
    merchant      TEXT,
    created_at    INTEGER NOT NULL,
    updated_at    INTEGER NOT NULL,
    settled_at    INTEGER,
    CHECK (body IS NOT NULL OR kind = 'refund'),
    CHECK ((bank_id IS NULL) = (merchant IS NULL)),
    CHECK ((settled_at IS NOT NULL) = (state IN ('approved', 'declined', 'cancelled')))
) STRICT;

-- What is open, oldest first. Stays small however many operations are final.
CREATE INDEX operations_open ON operations (seq, due_at, not_before)
    WHERE state IN ('saved', 'sending', 'unknown', 'needs_attention');
CREATE INDEX operations_open_lane ON operations (lane, seq) WHERE state IN ('saved', 'sending', 'unknown');
CREATE INDEX operations_attention ON operations (seq) WHERE state = 'needs_attention';
CREATE INDEX operations_payment ON operations (payment_key) WHERE payment_key IS NOT NULL;

CREATE TRIGGER operations_final BEFORE UPDATE ON operations
    WHEN OLD.state IN ('approved', 'declined', 'cancelled')
     AND (NEW.state IS NOT OLD.state OR NEW.result IS NOT OLD.result OR NEW.settled_at IS NOT OLD.settled_at)
    BEGIN SELECT RAISE(ABORT, 'a final result never changes'); END;

CREATE TRIGGER operations_request BEFORE UPDATE ON operations
    WHEN NEW.seq IS NOT OLD.seq OR NEW.key IS NOT OLD.key OR NEW.intent_id IS NOT OLD.intent_id
      OR NEW.replaces IS NOT OLD.replaces OR NEW.lane IS NOT OLD.lane OR NEW.kind IS NOT OLD.kind
      OR NEW.amount IS NOT OLD.amount OR NEW.currency IS NOT OLD.currency OR NEW.method IS NOT OLD.method
      OR NEW.path IS NOT OLD.path OR (OLD.body IS NOT NULL AND NEW.body IS NOT OLD.body)
      OR (OLD.bank_id IS NOT NULL AND (NEW.bank_id IS NOT OLD.bank_id OR NEW.merchant IS NOT OLD.merchant))
    BEGIN SELECT RAISE(ABORT, 'the request of an operation never changes'); END;

CREATE TRIGGER operations_kept BEFORE DELETE ON operations
    BEGIN SELECT RAISE(ABORT, 'operations are never deleted'); END;

CREATE TABLE attempts (
    seq       INTEGER PRIMARY KEY,
    key       BLOB    NOT NULL REFERENCES operations (key),
    -- 0 before the first.
    attempt   INTEGER NOT NULL,
    at        INTEGER NOT NULL,
    event     TEXT    NOT NULL,
    sent      TEXT,
    answer    INTEGER,
    reading   TEXT,
    detail    TEXT    NOT NULL DEFAULT ''
) STRICT;

CREATE INDEX attempts_key ON attempts (key, seq);

CREATE TRIGGER attempts_unchanged BEFORE UPDATE ON attempts
    BEGIN SELECT RAISE(ABORT, 'the log of attempts is append-only'); END;
CREATE TRIGGER attempts_kept BEFORE DELETE ON attempts
    BEGIN SELECT RAISE(ABORT, 'the log of attempts is append-only'); END;

-- One row: who owns the queue, and what is known of the bank.
CREATE TABLE outbox (
    id              INTEGER PRIMARY KEY CHECK (id = 1),
    epoch           INTEGER NOT NULL,
    -- Whose Retry-After `hold_until` is.
    address         TEXT,
    bank_id         BLOB,
    merchant        TEXT,
    hold_until      INTEGER,
    paused          TEXT,
    reachable       INTEGER,
    why             TEXT,
    probe_at        INTEGER,
    last_contact_at INTEGER
) STRICT;

INSERT INTO outbox (id, epoch) VALUES (1, 0);
