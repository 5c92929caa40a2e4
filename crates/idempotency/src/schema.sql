-- One row for each key that was ever used or cancelled. Rows are never deleted: the stored response expires, the
-- claim does not.
CREATE TABLE operations (
    id            INTEGER PRIMARY KEY,
    -- Whose key it is: the same key in another scope is another operation.
    scope         TEXT    NOT NULL,
    key           BLOB    NOT NULL CHECK (length(key) = 16),
    -- 0 processing, 1 settled, 2 cancelled, 3 needs attention
    state         INTEGER NOT NULL CHECK (state BETWEEN 0 AND 3),
    -- What the work is; NULL on a tombstone, which was cancelled before any request came.
    kind          TEXT,
    -- What the request means: the digest, the version of its making, and a short digest of each member.
    meaning       BLOB,
    meaning_made  INTEGER,
    members       BLOB,
    -- What the work needs to run again after a crash; gone once the operation is final.
    payload       BLOB,
    -- Who may write: the process's epoch in the upper half, the run within it in the lower one.
    owner         INTEGER NOT NULL,
    cancel_wanted INTEGER NOT NULL DEFAULT 0 CHECK (cancel_wanted IN (0, 1)),
    -- How it ended, in the work's own word, and the work's own name for what it made.
    outcome       TEXT,
    subject       TEXT,
    -- Why it needs attention.
    reason        TEXT,
    created_ms    INTEGER NOT NULL,
    completed_ms  INTEGER,
    -- The stored response; NULL before there is one and after it has been purged.
    status        INTEGER,
    content_type  TEXT,
    location      TEXT,
    body          BLOB,
    UNIQUE (scope, key),
    CHECK (state <> 1 OR (outcome IS NOT NULL AND completed_ms IS NOT NULL)),
    CHECK (state <> 0 OR (payload IS NOT NULL AND kind IS NOT NULL))
) STRICT;

CREATE INDEX operations_processing ON operations (id) WHERE state = 0;
CREATE INDEX operations_attention ON operations (id) WHERE state = 3;
CREATE INDEX operations_stored ON operations (completed_ms) WHERE body IS NOT NULL;

-- How often a process has owned this file. A row of an older epoch has a dead owner.
CREATE TABLE operations_epoch (
    one   INTEGER PRIMARY KEY CHECK (one = 1),
    epoch INTEGER NOT NULL
) STRICT;
INSERT INTO operations_epoch (one, epoch) VALUES (1, 0);
