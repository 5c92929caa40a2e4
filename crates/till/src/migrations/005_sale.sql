-- What a cashier does to a sale before Pay, and what a shop does to its catalogue. Only columns are added to what was there: every
-- row of an older file stays what it was, a sale with nothing taken off and a line at the catalogue's price.

---- Catalogue

-- An article's own colour; without one it has that of its category.
ALTER TABLE articles ADD COLUMN colour TEXT
    CHECK (colour GLOB '#[0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f]');
-- Its price is asked for when it is rung up, so that it has none here.
ALTER TABLE articles ADD COLUMN open_price INTEGER NOT NULL DEFAULT 0
    CHECK (open_price IN (0, 1) AND (open_price = 0 OR price = 0));

-- The order in which articles are shown: the first of many are found without a look at the others.
CREATE INDEX articles_in_order ON articles (favourite DESC, position, id);
CREATE INDEX articles_in_order_by_category ON articles (category, favourite DESC, position, id);
-- The catalogue's own order, in which it is written out, has its index since the second step; that of a category is the one above now.
DROP INDEX articles_by_category;

-- What the first digits of a code from a scale mean, see the program's documentation: nothing, until the shop says so. Where no
-- setting is there yet, the first start writes all.
INSERT INTO settings (name, value) SELECT 'scale_barcodes', '' WHERE EXISTS (SELECT 1 FROM settings);

---- Lines

-- How its price came: from the catalogue, asked for at ring-up, or from the label of a scale. A line that did not come from the
-- catalogue alone stays by itself: the same article again is another line.
ALTER TABLE lines ADD COLUMN origin TEXT NOT NULL DEFAULT 'article' CHECK (origin IN ('article', 'open_price', 'label'));
-- The price before a cashier set another one: what was taken off, or put on, is always to be seen.
ALTER TABLE lines ADD COLUMN list_price INTEGER CHECK (list_price >= 0 AND list_price <> unit_price);
ALTER TABLE lines ADD COLUMN note TEXT CHECK (length(note) BETWEEN 1 AND 200);
-- The discount as it was asked for; `discount` is what came of it, frozen at Pay. A rate is in thousandths of a percent. None is
-- NULL, and never zero.
ALTER TABLE lines ADD COLUMN discount_percent INTEGER CHECK (discount_percent BETWEEN 1 AND 100000);
ALTER TABLE lines ADD COLUMN discount_amount INTEGER CHECK (discount_amount IS NULL OR (discount_amount >= 1 AND discount_percent IS NULL));

---- Sales

ALTER TABLE sales ADD COLUMN name TEXT CHECK (length(name) BETWEEN 1 AND 64);          -- under which it was parked
ALTER TABLE sales ADD COLUMN discount_percent INTEGER CHECK (discount_percent BETWEEN 1 AND 100000);
ALTER TABLE sales ADD COLUMN discount_amount INTEGER CHECK (discount_amount IS NULL OR (discount_amount >= 1 AND discount_percent IS NULL));
ALTER TABLE sales ADD COLUMN tip_percent INTEGER CHECK (tip_percent BETWEEN 1 AND 100000);
ALTER TABLE sales ADD COLUMN tip_amount INTEGER CHECK (tip_amount IS NULL OR (tip_amount >= 1 AND tip_percent IS NULL));
-- A sale that was given up. It stays, with its lines: a cart that went away after the customer paid is what an owner looks for. Its
-- state is still `open`, which means here that it was never paid.
ALTER TABLE sales ADD COLUMN dropped_at INTEGER CHECK (dropped_at IS NULL OR (state = 'open' AND held = 1 AND has_cart = 1));

DROP INDEX sales_put_aside;
CREATE INDEX sales_put_aside ON sales (created_at, id)
    WHERE held = 1 AND has_cart = 1 AND state <> 'completed' AND dropped_at IS NULL;

CREATE TRIGGER sales_terms_change_while_open BEFORE UPDATE ON sales
WHEN (OLD.state <> 'open' OR NEW.state <> 'open')
    AND (NEW.discount_percent IS NOT OLD.discount_percent OR NEW.discount_amount IS NOT OLD.discount_amount
        OR NEW.tip_percent IS NOT OLD.tip_percent OR NEW.tip_amount IS NOT OLD.tip_amount)
BEGIN SELECT RAISE(ABORT, 'a sale under payment is frozen: its discount and tip do not change'); END;

-- Pay freezes what was asked for. What comes of a percentage is the engine's to say.
CREATE TRIGGER sales_freeze_what_was_asked BEFORE UPDATE ON sales
WHEN OLD.state = 'open' AND NEW.state = 'paying' AND (
    NEW.tip IS NOT CASE
        WHEN OLD.tip_amount IS NOT NULL THEN OLD.tip_amount
        WHEN OLD.tip_percent IS NULL THEN 0
        ELSE NEW.tip END
    OR NEW.discount IS NOT CASE
        WHEN OLD.discount_amount IS NOT NULL
            THEN min(OLD.discount_amount, (SELECT sum(total + sale_discount) FROM lines WHERE sale_id = OLD.id))
        WHEN OLD.discount_percent IS NULL THEN 0
        ELSE NEW.discount END)
BEGIN SELECT RAISE(ABORT, 'a sale is frozen whole: with the discount and the tip that were asked for'); END;

CREATE TRIGGER lines_freeze_what_was_asked BEFORE UPDATE OF discount ON lines
WHEN (SELECT state FROM sales WHERE id = OLD.sale_id) = 'open' AND NEW.discount IS NOT NULL
    AND NEW.discount IS NOT CASE
        WHEN NEW.discount_amount IS NOT NULL THEN min(NEW.discount_amount, NEW.gross)
        WHEN NEW.discount_percent IS NULL THEN 0
        ELSE NEW.discount END
BEGIN SELECT RAISE(ABORT, 'a line is frozen with the discount that was asked for'); END;

---- What was dropped stays as it was

CREATE TRIGGER sales_begin_undropped BEFORE INSERT ON sales
WHEN NEW.dropped_at IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'a sale begins open'); END;

CREATE TRIGGER sales_dropped_never_change BEFORE UPDATE ON sales
WHEN OLD.dropped_at IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'a sale that was dropped never changes'); END;

CREATE TRIGGER sales_dropped_unpaid BEFORE UPDATE OF dropped_at ON sales
WHEN NEW.dropped_at IS NOT NULL
    AND EXISTS (SELECT 1 FROM tenders WHERE sale_id = OLD.id AND state NOT IN ('declined', 'cancelled'))
BEGIN SELECT RAISE(ABORT, 'a sale is not dropped while a tender of it pays or may have paid'); END;

CREATE TRIGGER sales_dropped_stay BEFORE DELETE ON sales
WHEN OLD.dropped_at IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'a sale that was dropped never goes'); END;

CREATE TRIGGER lines_not_into_dropped_sales BEFORE INSERT ON lines
WHEN (SELECT dropped_at FROM sales WHERE id = NEW.sale_id) IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'a sale that was dropped never changes: no line is added'); END;

CREATE TRIGGER lines_of_dropped_sales_never_change BEFORE UPDATE ON lines
WHEN (SELECT dropped_at FROM sales WHERE id = OLD.sale_id) IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'a sale that was dropped never changes: no line changes'); END;

CREATE TRIGGER lines_of_dropped_sales_stay BEFORE DELETE ON lines
WHEN (SELECT dropped_at FROM sales WHERE id = OLD.sale_id) IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'a sale that was dropped never changes: no line is removed'); END;

---- Undo

-- The last changes of an open sale, each with what it changed as that was before. Taken back from the last one on.
CREATE TABLE sale_changes (
    sale_id TEXT NOT NULL REFERENCES sales (id) ON DELETE CASCADE,
    step    INTEGER NOT NULL CHECK (step >= 1),
    what    TEXT NOT NULL CHECK (what <> ''),
    before  TEXT NOT NULL CHECK (json_valid(before)),
    PRIMARY KEY (sale_id, step)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER sale_changes_of_open_sales BEFORE INSERT ON sale_changes
WHEN (SELECT state FROM sales WHERE id = NEW.sale_id) IS NOT 'open'
    OR (SELECT dropped_at FROM sales WHERE id = NEW.sale_id) IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'only an open sale has changes to take back'); END;

CREATE TRIGGER sale_changes_are_as_they_were BEFORE UPDATE ON sale_changes
BEGIN SELECT RAISE(ABORT, 'what was before a change never changes'); END;

-- As far back as anybody remembers; a sale of a day's work must not carry its history along.
CREATE TRIGGER sale_changes_are_the_last BEFORE INSERT ON sale_changes
BEGIN DELETE FROM sale_changes WHERE sale_id = NEW.sale_id AND step <= NEW.step - 50; END;

-- What was paid for, or given up, is not taken back.
CREATE TRIGGER sale_changes_end_at_pay AFTER UPDATE OF state, dropped_at ON sales
WHEN NEW.state <> 'open' OR NEW.dropped_at IS NOT NULL
BEGIN DELETE FROM sale_changes WHERE sale_id = NEW.id; END;
