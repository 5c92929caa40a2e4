-- The till's own tables. Times are Unix milliseconds, UTC; amounts are minor units. What a database can refuse, it refuses: the triggers below hold whatever the program above them does.

CREATE TABLE settings (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- The last number given of each series. A number is taken in the commit that uses it, so that none is lost.
CREATE TABLE counters (
    name TEXT PRIMARY KEY CHECK (name IN ('sale', 'receipt')),
    last INTEGER NOT NULL CHECK (last >= 0)
) STRICT, WITHOUT ROWID;

INSERT INTO counters (name, last) VALUES ('sale', 0), ('receipt', 0);

CREATE TRIGGER counters_go_up_by_one BEFORE UPDATE ON counters
WHEN NEW.name <> OLD.name OR NEW.last <> OLD.last + 1
BEGIN SELECT RAISE(ABORT, 'a number series only goes up by one'); END;

CREATE TRIGGER counters_stay BEFORE DELETE ON counters
BEGIN SELECT RAISE(ABORT, 'a number series is never dropped'); END;

---- Catalogue

CREATE TABLE categories (
    id       TEXT PRIMARY KEY CHECK (id <> ''),
    name     TEXT NOT NULL CHECK (name <> ''),
    colour   TEXT NOT NULL CHECK (colour GLOB '#[0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f]'),
    position INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE articles (
    id        INTEGER PRIMARY KEY,
    sku       TEXT NOT NULL UNIQUE CHECK (sku <> ''),
    name      TEXT NOT NULL CHECK (name <> ''),
    category  TEXT NOT NULL REFERENCES categories (id),
    unit      TEXT NOT NULL CHECK (unit IN ('piece', 'weight')),
    price     INTEGER NOT NULL CHECK (price >= 0),                     -- minor units, for one piece or one kilogram
    tax_rate  INTEGER NOT NULL CHECK (tax_rate BETWEEN 0 AND 100000),  -- thousandths of a percent
    favourite INTEGER NOT NULL DEFAULT 0 CHECK (favourite IN (0, 1)),
    position  INTEGER NOT NULL
) STRICT;

CREATE INDEX articles_by_category ON articles (category, position);
CREATE INDEX articles_by_position ON articles (position);

CREATE TABLE barcodes (
    barcode    TEXT PRIMARY KEY CHECK (barcode <> ''),
    article_id INTEGER NOT NULL REFERENCES articles (id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE INDEX barcodes_by_article ON barcodes (article_id);

CREATE VIRTUAL TABLE article_words USING fts5 (
    words,
    tokenize = "unicode61 remove_diacritics 2",
    prefix = '1 2 3'
);

CREATE TRIGGER articles_inserted AFTER INSERT ON articles
BEGIN INSERT INTO article_words (rowid, words) VALUES (NEW.id, NEW.name || ' ' || NEW.sku); END;

CREATE TRIGGER articles_updated AFTER UPDATE OF name, sku ON articles
BEGIN
    UPDATE article_words
    SET words = NEW.name || ' ' || NEW.sku
        || coalesce((SELECT ' ' || group_concat(barcode, ' ') FROM barcodes WHERE article_id = NEW.id), '')
    WHERE rowid = NEW.id;
END;

CREATE TRIGGER articles_deleted AFTER DELETE ON articles
BEGIN DELETE FROM article_words WHERE rowid = OLD.id; END;

CREATE TRIGGER barcodes_inserted AFTER INSERT ON barcodes
BEGIN UPDATE article_words SET words = words || ' ' || NEW.barcode WHERE rowid = NEW.article_id; END;

CREATE TRIGGER barcodes_deleted AFTER DELETE ON barcodes
BEGIN
    UPDATE article_words
    SET words = (SELECT name || ' ' || sku FROM articles WHERE id = OLD.article_id)
        || coalesce((SELECT ' ' || group_concat(barcode, ' ') FROM barcodes WHERE article_id = OLD.article_id), '')
    WHERE rowid = OLD.article_id AND EXISTS (SELECT 1 FROM articles WHERE id = OLD.article_id);
END;

CREATE TRIGGER barcodes_stay_as_they_are BEFORE UPDATE ON barcodes
BEGIN SELECT RAISE(ABORT, 'a barcode is deleted and added, not changed'); END;

---- Sales

CREATE TABLE sales (
    id                 TEXT PRIMARY KEY CHECK (length(id) = 36),
    state              TEXT NOT NULL CHECK (state IN ('open', 'paying', 'completed')),
    held               INTEGER NOT NULL CHECK (held IN (0, 1)),
    has_cart           INTEGER NOT NULL CHECK (has_cart IN (0, 1)),    -- 0: an amount charged with no cart before it, which no cashier ever has in front
    currency           TEXT NOT NULL CHECK (length(currency) = 3),
    prices_include_tax INTEGER NOT NULL CHECK (prices_include_tax IN (0, 1)),
    cash_step          INTEGER NOT NULL CHECK (cash_step >= 1),
    cash_rounding      TEXT NOT NULL CHECK (cash_rounding IN ('nearest', 'up', 'down')),
    number             INTEGER UNIQUE CHECK (number >= 1),             -- given at the first Pay, kept ever after
    net                INTEGER CHECK (net >= 0),                       -- these five: frozen at Pay
    tax                INTEGER CHECK (tax >= 0),
    tip                INTEGER CHECK (tip >= 0),
    discount           INTEGER CHECK (discount >= 0),
    total              INTEGER CHECK (total >= 0),
    rounding           INTEGER,                                        -- of the part paid in cash, known at the end
    receipt_number     INTEGER UNIQUE CHECK (receipt_number >= 1),
    created_at         INTEGER NOT NULL,
    updated_at         INTEGER NOT NULL,
    completed_at       INTEGER,
    CHECK (state = 'open' OR number IS NOT NULL),
    CHECK ((state = 'open') = (net IS NULL) AND (net IS NULL) = (tax IS NULL) AND (net IS NULL) = (tip IS NULL)
        AND (net IS NULL) = (discount IS NULL) AND (net IS NULL) = (total IS NULL)),
    CHECK (total = net + tax + tip),
    CHECK ((state = 'completed') = (receipt_number IS NOT NULL)
        AND (receipt_number IS NULL) = (rounding IS NULL) AND (receipt_number IS NULL) = (completed_at IS NULL))
) STRICT;

-- The one sale in front of the cashier. A completed one stays in front until the cashier has seen it and gone on.
CREATE UNIQUE INDEX sales_one_in_front ON sales ((1)) WHERE held = 0;
-- What a cashier put aside. Stays small however many payments without a cart are open or declined.
CREATE INDEX sales_put_aside ON sales (created_at, id) WHERE held = 1 AND has_cart = 1 AND state <> 'completed';

CREATE TABLE lines (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,                   -- never used again: a late click finds its own line or none
    sale_id       TEXT NOT NULL REFERENCES sales (id),
    sku           TEXT NOT NULL,
    name          TEXT NOT NULL,
    unit          TEXT NOT NULL CHECK (unit IN ('piece', 'weight')),
    unit_price    INTEGER NOT NULL CHECK (unit_price >= 0),
    quantity      INTEGER NOT NULL CHECK (quantity > 0),               -- thousandths
    tax_rate      INTEGER NOT NULL CHECK (tax_rate >= 0),              -- thousandths of a percent
    gross         INTEGER CHECK (gross >= 0),                          -- these four: frozen at Pay
    discount      INTEGER CHECK (discount >= 0),
    sale_discount INTEGER CHECK (sale_discount >= 0),
    total         INTEGER CHECK (total >= 0),
    CHECK ((gross IS NULL) = (discount IS NULL) AND (gross IS NULL) = (sale_discount IS NULL) AND (gross IS NULL) = (total IS NULL)),
    CHECK (total = gross - discount - sale_discount),
    CHECK (unit = 'weight' OR quantity % 1000 = 0)
) STRICT;

CREATE INDEX lines_by_sale ON lines (sale_id, id);

-- The tax table of a sale, frozen at Pay.
CREATE TABLE sale_taxes (
    sale_id TEXT NOT NULL REFERENCES sales (id),
    rate    INTEGER NOT NULL CHECK (rate >= 0),
    net     INTEGER NOT NULL CHECK (net >= 0),
    tax     INTEGER NOT NULL CHECK (tax >= 0),
    PRIMARY KEY (sale_id, rate)
) STRICT, WITHOUT ROWID;

-- A tender's id is the intent of its operation. `settling` while the bank has not said its final word.
CREATE TABLE tenders (
    id         TEXT PRIMARY KEY CHECK (length(id) = 36),
    sale_id    TEXT NOT NULL REFERENCES sales (id),
    position   INTEGER NOT NULL CHECK (position >= 1),
    kind       TEXT NOT NULL CHECK (kind IN ('card', 'cash')),
    state      TEXT NOT NULL CHECK (state IN ('settling', 'approved', 'declined', 'cancelled', 'needs_attention', 'taken')),
    amount     INTEGER NOT NULL,
    tendered   INTEGER,
    change     INTEGER,
    reference  TEXT,                                                   -- what the bank was given for a card
    replaces   TEXT UNIQUE REFERENCES tenders (id),
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    UNIQUE (sale_id, position),
    CHECK (kind <> 'card' OR (state <> 'taken' AND amount BETWEEN 1 AND 99999999 AND tendered IS NULL AND change IS NULL AND reference IS NOT NULL)),
    CHECK (kind <> 'cash' OR (state = 'taken' AND amount >= 0 AND change >= 0 AND tendered = amount + change AND tendered IS NOT NULL AND change IS NOT NULL))
) STRICT;

---- What is frozen stays frozen

CREATE TRIGGER lines_only_into_open_sales BEFORE INSERT ON lines
WHEN (SELECT state FROM sales WHERE id = NEW.sale_id) IS NOT 'open'
BEGIN SELECT RAISE(ABORT, 'a sale under payment is frozen: no line is added'); END;

CREATE TRIGGER lines_change_in_open_sales BEFORE UPDATE ON lines
WHEN NEW.sale_id IS NOT OLD.sale_id OR NEW.id IS NOT OLD.id OR (SELECT state FROM sales WHERE id = OLD.sale_id) IS NOT 'open'
BEGIN SELECT RAISE(ABORT, 'a sale under payment is frozen: no line changes'); END;

CREATE TRIGGER lines_leave_open_sales BEFORE DELETE ON lines
WHEN (SELECT state FROM sales WHERE id = OLD.sale_id) IS NOT 'open'
BEGIN SELECT RAISE(ABORT, 'a sale under payment is frozen: no line is removed'); END;

CREATE TRIGGER sale_taxes_only_into_open_sales BEFORE INSERT ON sale_taxes
WHEN (SELECT state FROM sales WHERE id = NEW.sale_id) IS NOT 'open'
BEGIN SELECT RAISE(ABORT, 'a sale under payment is frozen: no tax is added'); END;

CREATE TRIGGER sale_taxes_stay_as_they_are BEFORE UPDATE ON sale_taxes
BEGIN SELECT RAISE(ABORT, 'a frozen tax never changes'); END;

CREATE TRIGGER sale_taxes_leave_open_sales BEFORE DELETE ON sale_taxes
WHEN (SELECT state FROM sales WHERE id = OLD.sale_id) IS NOT 'open'
BEGIN SELECT RAISE(ABORT, 'a sale under payment is frozen: no tax is removed'); END;

CREATE TRIGGER sales_begin_open BEFORE INSERT ON sales
WHEN NEW.state <> 'open' OR NEW.number IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'a sale begins open'); END;

CREATE TRIGGER sales_keep_what_they_are BEFORE UPDATE ON sales
WHEN NEW.id IS NOT OLD.id OR NEW.created_at IS NOT OLD.created_at OR NEW.has_cart IS NOT OLD.has_cart
    OR NEW.currency IS NOT OLD.currency OR NEW.prices_include_tax IS NOT OLD.prices_include_tax
    OR NEW.cash_step IS NOT OLD.cash_step OR NEW.cash_rounding IS NOT OLD.cash_rounding
    OR (OLD.number IS NOT NULL AND NEW.number IS NOT OLD.number)
    OR (OLD.state <> 'open' AND NEW.state <> 'open' AND (NEW.net IS NOT OLD.net OR NEW.tax IS NOT OLD.tax
        OR NEW.tip IS NOT OLD.tip OR NEW.discount IS NOT OLD.discount OR NEW.total IS NOT OLD.total))
BEGIN SELECT RAISE(ABORT, 'a frozen figure never changes'); END;

CREATE TRIGGER sales_move_forward BEFORE UPDATE ON sales
WHEN NEW.state <> OLD.state AND NOT (
    (OLD.state = 'open' AND NEW.state = 'paying') OR (OLD.state = 'paying' AND NEW.state IN ('open', 'completed')))
BEGIN SELECT RAISE(ABORT, 'a sale goes from open to paying to completed'); END;

CREATE TRIGGER sales_completed_are_closed BEFORE UPDATE ON sales
WHEN OLD.state = 'completed'
    AND (NEW.receipt_number IS NOT OLD.receipt_number OR NEW.rounding IS NOT OLD.rounding OR NEW.completed_at IS NOT OLD.completed_at)
BEGIN SELECT RAISE(ABORT, 'a completed sale never changes'); END;

-- Pay: the parts must add up to what is frozen, to the last cent.
CREATE TRIGGER sales_freeze_whole BEFORE UPDATE ON sales
WHEN OLD.state = 'open' AND NEW.state = 'paying' AND (
    NOT EXISTS (SELECT 1 FROM lines WHERE sale_id = OLD.id)
    OR EXISTS (SELECT 1 FROM lines WHERE sale_id = OLD.id AND total IS NULL)
    OR (SELECT sum(total) FROM lines WHERE sale_id = OLD.id)
        IS NOT CASE NEW.prices_include_tax WHEN 1 THEN NEW.net + NEW.tax ELSE NEW.net END
    OR (SELECT sum(sale_discount) FROM lines WHERE sale_id = OLD.id) IS NOT NEW.discount
    OR (SELECT sum(net) FROM sale_taxes WHERE sale_id = OLD.id) IS NOT NEW.net
    OR (SELECT sum(tax) FROM sale_taxes WHERE sale_id = OLD.id) IS NOT NEW.tax)
BEGIN SELECT RAISE(ABORT, 'a sale is frozen whole: its lines and taxes add up to its total'); END;

CREATE TRIGGER sales_open_again_unpaid BEFORE UPDATE ON sales
WHEN OLD.state = 'paying' AND NEW.state = 'open'
    AND EXISTS (SELECT 1 FROM tenders WHERE sale_id = OLD.id AND state NOT IN ('declined', 'cancelled'))
BEGIN SELECT RAISE(ABORT, 'a sale under payment stays frozen until its tenders are declined or cancelled'); END;

CREATE TRIGGER sales_complete_paid BEFORE UPDATE ON sales
WHEN OLD.state = 'paying' AND NEW.state = 'completed' AND (
    EXISTS (SELECT 1 FROM tenders WHERE sale_id = OLD.id AND state IN ('settling', 'needs_attention'))
    OR NEW.total + NEW.rounding IS NOT
        (SELECT coalesce(sum(amount), 0) FROM tenders WHERE sale_id = OLD.id AND state IN ('approved', 'taken'))
    OR abs(NEW.rounding) >= NEW.cash_step
    OR (NEW.rounding <> 0 AND NOT EXISTS (SELECT 1 FROM tenders WHERE sale_id = OLD.id AND kind = 'cash')))
BEGIN SELECT RAISE(ABORT, 'a sale completes when it is paid in full'); END;

CREATE TRIGGER sales_stay BEFORE DELETE ON sales
WHEN OLD.state <> 'open' OR OLD.number IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'a sale that was under payment is never dropped'); END;

---- Tenders: one operation each, ever

CREATE TRIGGER tenders_begin_within_what_is_due BEFORE INSERT ON tenders
WHEN (SELECT state FROM sales WHERE id = NEW.sale_id) IS NOT 'paying'
    OR NEW.state IS NOT CASE NEW.kind WHEN 'card' THEN 'settling' ELSE 'taken' END
    OR NEW.amount + (SELECT coalesce(sum(amount), 0) FROM tenders
                     WHERE sale_id = NEW.sale_id AND state NOT IN ('declined', 'cancelled'))
        > (SELECT total + CASE NEW.kind WHEN 'cash' THEN cash_step - 1 ELSE 0 END FROM sales WHERE id = NEW.sale_id)
BEGIN SELECT RAISE(ABORT, 'a tender is for a sale under payment and never over what is due'); END;

CREATE TRIGGER tenders_replace_what_did_not_pay BEFORE INSERT ON tenders
WHEN NEW.replaces IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM tenders WHERE id = NEW.replaces AND sale_id = NEW.sale_id AND state IN ('declined', 'cancelled'))
BEGIN SELECT RAISE(ABORT, 'a tender replaces one that was declined or cancelled'); END;

CREATE TRIGGER tenders_keep_what_they_are BEFORE UPDATE ON tenders
WHEN NEW.id IS NOT OLD.id OR NEW.sale_id IS NOT OLD.sale_id OR NEW.position IS NOT OLD.position OR NEW.kind IS NOT OLD.kind
    OR NEW.amount IS NOT OLD.amount OR NEW.tendered IS NOT OLD.tendered OR NEW.change IS NOT OLD.change
    OR NEW.reference IS NOT OLD.reference OR NEW.replaces IS NOT OLD.replaces OR NEW.created_at IS NOT OLD.created_at
BEGIN SELECT RAISE(ABORT, 'a tender never changes but for its state'); END;

CREATE TRIGGER tenders_final_is_final BEFORE UPDATE ON tenders
WHEN NEW.state <> OLD.state AND OLD.state NOT IN ('settling', 'needs_attention')
BEGIN SELECT RAISE(ABORT, 'a final result never changes'); END;

CREATE TRIGGER tenders_stay BEFORE DELETE ON tenders
BEGIN SELECT RAISE(ABORT, 'a tender is never dropped'); END;

---- Audit: append-only

CREATE TABLE audit (
    seq      INTEGER PRIMARY KEY,
    at       INTEGER NOT NULL,
    offset_s INTEGER NOT NULL,                                         -- of the till's local time at that moment, east positive
    who      TEXT NOT NULL CHECK (who <> ''),
    what     TEXT NOT NULL CHECK (what <> ''),
    sale_id  TEXT,
    details  TEXT NOT NULL CHECK (details <> '')
) STRICT;

CREATE INDEX audit_by_sale ON audit (sale_id, seq) WHERE sale_id IS NOT NULL;

CREATE TRIGGER audit_appends BEFORE INSERT ON audit
WHEN NEW.seq IS NOT (SELECT coalesce(max(seq), 0) + 1 FROM audit)
BEGIN SELECT RAISE(ABORT, 'the audit is append-only, without gaps'); END;

CREATE TRIGGER audit_never_changes BEFORE UPDATE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit is append-only'); END;

CREATE TRIGGER audit_never_shrinks BEFORE DELETE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit is append-only'); END;
