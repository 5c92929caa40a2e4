-- Refunds that wait for their payment, cancellation, what was accepted offline, requests without money, the bank's clock. Times are Unix
-- milliseconds, UTC. The table of operations is made anew, because a CHECK can't be changed.

CREATE TABLE operations_new (
    seq           INTEGER PRIMARY KEY,
    key           BLOB    NOT NULL UNIQUE CHECK (length(key) = 16),
    -- Given before the click; unique over every state, final ones too.
    intent_id     BLOB    NOT NULL UNIQUE CHECK (length(intent_id) = 16),
    -- The intent that this one takes the place of: another card, collecting again.
    replaces      BLOB    UNIQUE REFERENCES operations (intent_id),
    -- One at a time in each lane.
    lane          TEXT    NOT NULL,
    kind          TEXT    NOT NULL CHECK (kind IN ('payment', 'refund', 'message')),
    -- The payment that a refund gives back, and waits for.
    payment_key   BLOB    REFERENCES operations (key),
    -- The exact request; every attempt sends these bytes. A refund has none before its payment is approved.
    method        TEXT    NOT NULL,
    path          TEXT    NOT NULL,
    body          BLOB,
    body_version  INTEGER NOT NULL,
    -- Of a payment or refund.
    amount        INTEGER CHECK (amount > 0),
    currency      TEXT    CHECK (length(currency) = 3),
    state         TEXT    NOT NULL CHECK (state IN ('saved', 'sending', 'unknown', 'approved', 'declined', 'cancelled', 'needs_attention')),
    -- What the next call is: the request; a look first; the request again after the bank said that it knows no such key; the cancellation.
    ask           TEXT    NOT NULL DEFAULT 'send' CHECK (ask IN ('send', 'look_up', 'resend', 'cancel')),
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
    -- The bank of its first call; it goes to no other.
    bank_id       BLOB    CHECK (length(bank_id) = 16),
    merchant      TEXT,
    created_at    INTEGER NOT NULL,
    updated_at    INTEGER NOT NULL,
    settled_at    INTEGER,
    -- The goods were handed over before the bank answered.
    accepted_offline_at INTEGER,
    -- From then on only its cancellation is sent.
    cancel_wished_at INTEGER,
    -- It was cancelled though the goods are gone.
    write_off     INTEGER NOT NULL DEFAULT 0 CHECK (write_off IN (0, 1)),
    -- It was cancelled here, and the bank is still to be told.
    tombstone     INTEGER NOT NULL DEFAULT 0 CHECK (tombstone IN (0, 1)),
    CHECK (body IS NOT NULL OR kind = 'refund'),
    CHECK ((payment_key IS NOT NULL) = (kind = 'refund')),
    CHECK ((amount IS NULL) = (kind = 'message') AND (amount IS NULL) = (currency IS NULL)),
    CHECK ((bank_id IS NULL) = (merchant IS NULL)),
    CHECK ((settled_at IS NOT NULL) = (state IN ('approved', 'declined', 'cancelled'))),
    CHECK (accepted_offline_at IS NULL OR kind = 'payment'),
    CHECK (accepted_offline_at IS NULL OR cancel_wished_at IS NULL OR write_off = 1),
    CHECK (tombstone = 0 OR state = 'cancelled')
) STRICT;

INSERT INTO operations_new (seq, key, intent_id, replaces, lane, kind, payment_key, method, path, body, body_version, amount, currency,
    state, ask, epoch, attempts, failures, panics, deaths, first_sent_at, due_at, not_before, reason, last_answer, result, bank_id,
    merchant, created_at, updated_at, settled_at)
SELECT seq, key, intent_id, replaces, lane, kind, payment_key, method, path, body, body_version, amount, currency,
    state, ask, epoch, attempts, failures, panics, deaths, first_sent_at, due_at, not_before, reason, last_answer, result, bank_id,
    merchant, created_at, updated_at, settled_at
FROM operations;

DROP TABLE operations;
ALTER TABLE operations_new RENAME TO operations;

-- What a call may be due for, oldest first. Stays small however many operations are final.
CREATE INDEX operations_open ON operations (seq, due_at, not_before)
    WHERE state IN ('saved', 'sending', 'unknown', 'needs_attention') OR tombstone = 1;
CREATE INDEX operations_open_lane ON operations (lane, seq)
    WHERE state IN ('saved', 'sending', 'unknown') AND body IS NOT NULL;
CREATE INDEX operations_attention ON operations (seq) WHERE state = 'needs_attention';
CREATE INDEX operations_payment ON operations (payment_key) WHERE payment_key IS NOT NULL;

CREATE TRIGGER operations_final BEFORE UPDATE ON operations
    WHEN OLD.state IN ('approved', 'declined', 'cancelled')
     AND (NEW.state IS NOT OLD.state OR NEW.result IS NOT OLD.result OR NEW.settled_at IS NOT OLD.settled_at
       OR NEW.tombstone > OLD.tombstone)
    BEGIN SELECT RAISE(ABORT, 'a final result never changes'); END;

CREATE TRIGGER operations_request BEFORE UPDATE ON operations
    WHEN NEW.seq IS NOT OLD.seq OR NEW.key IS NOT OLD.key OR NEW.intent_id IS NOT OLD.intent_id
      OR NEW.replaces IS NOT OLD.replaces OR NEW.lane IS NOT OLD.lane OR NEW.kind IS NOT OLD.kind
      OR NEW.payment_key IS NOT OLD.payment_key OR NEW.created_at IS NOT OLD.created_at
      OR NEW.amount IS NOT OLD.amount OR NEW.currency IS NOT OLD.currency OR NEW.method IS NOT OLD.method
      OR NEW.path IS NOT OLD.path OR (OLD.body IS NOT NULL AND NEW.body IS NOT OLD.body)
      -- What was counted and never left is as free as before.
      OR (OLD.bank_id IS NOT NULL AND (NEW.bank_id IS NOT OLD.bank_id OR NEW.merchant IS NOT OLD.merchant)
          AND NOT (NEW.state = 'saved' AND NEW.bank_id IS NULL AND NEW.merchant IS NULL))
    BEGIN SELECT RAISE(ABORT, 'the request of an operation never changes'); END;

-- What is left of a payment is all that can be given back, refunds that are under way counted.
CREATE TRIGGER operations_refunds_within BEFORE INSERT ON operations
    WHEN NEW.kind = 'refund'
     AND NEW.amount + (SELECT coalesce(sum(amount), 0) FROM operations
                       WHERE payment_key = NEW.payment_key AND state NOT IN ('declined', 'cancelled'))
       > coalesce((SELECT amount FROM operations
                   WHERE key = NEW.payment_key AND kind = 'payment' AND currency = NEW.currency
                     AND state NOT IN ('declined', 'cancelled')), 0)
    BEGIN SELECT RAISE(ABORT, 'a refund is never over what is left of its payment'); END;

-- A wish to cancel, and the acceptance offline, are never taken back; and no request goes out after the wish.
CREATE TRIGGER operations_wishes BEFORE UPDATE ON operations
    WHEN (OLD.accepted_offline_at IS NOT NULL AND NEW.accepted_offline_at IS NOT OLD.accepted_offline_at)
      OR (OLD.cancel_wished_at IS NOT NULL AND NEW.cancel_wished_at IS NOT OLD.cancel_wished_at)
      OR (OLD.cancel_wished_at IS NOT NULL AND NEW.attempts > OLD.attempts)
    BEGIN SELECT RAISE(ABORT, 'what was accepted or is to be cancelled stays so'); END;

-- Taken offline or cancelled after the end is neither.
CREATE TRIGGER operations_wished_in_time BEFORE UPDATE ON operations
    WHEN OLD.state IN ('approved', 'declined', 'cancelled')
     AND (NEW.accepted_offline_at IS NOT OLD.accepted_offline_at OR NEW.cancel_wished_at IS NOT OLD.cancel_wished_at)
    BEGIN SELECT RAISE(ABORT, 'a final result never changes'); END;

CREATE TRIGGER operations_kept BEFORE DELETE ON operations
    BEGIN SELECT RAISE(ABORT, 'operations are never deleted'); END;

-- What the bank's clock said in its answer.
ALTER TABLE attempts ADD COLUMN bank_at INTEGER;

-- By how much our clock is ahead of the bank's, in seconds.
ALTER TABLE outbox ADD COLUMN clock_gap_s INTEGER;
-- The backlog of the last outage: up to which operation it goes, and how many were unsettled.
ALTER TABLE outbox ADD COLUMN backlog_through INTEGER;
ALTER TABLE outbox ADD COLUMN backlog_total INTEGER;
