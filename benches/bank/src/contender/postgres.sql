CREATE TABLE operations (
    id           bigint  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    merchant     text    NOT NULL,
    key          uuid    NOT NULL,
    hash         bytea   NOT NULL,
    payload      bytea,
    created_ms   bigint  NOT NULL,
    completed_ms bigint,
    status       integer,
    payment_id   text,
    body         bytea,
    UNIQUE (merchant, key)
);
CREATE INDEX operations_unfinished ON operations (id) WHERE status IS NULL;

CREATE TABLE payments (
    operation     bigint  PRIMARY KEY REFERENCES operations (id),
    id            text    NOT NULL UNIQUE,
    merchant      text    NOT NULL,
    amount        bigint  NOT NULL CHECK (amount > 0),
    currency      text    NOT NULL,
    brand         text,
    last4         text,
    reference     text,
    approval_code text
);
CREATE INDEX payments_by_merchant ON payments (merchant, operation);

CREATE TABLE postings (
    operation bigint  NOT NULL REFERENCES operations (id),
    account   text    NOT NULL,
    currency  text    NOT NULL,
    amount    bigint  NOT NULL CHECK (amount <> 0),
    PRIMARY KEY (operation, account)
);
