-- Receipts on paper: which printer, and each print of each receipt. Times are Unix milliseconds, UTC.

-- One row, from the first start on. Not among the settings of the shop: it belongs to this machine, and what it holds is checked here.
CREATE TABLE receipt_printer (
    id         INTEGER PRIMARY KEY CHECK (id = 1),
    kind       TEXT NOT NULL CHECK (kind IN ('none', 'file', 'tcp')),
    target     TEXT NOT NULL,                                          -- file: a folder or a device; tcp: host:port
    columns    INTEGER NOT NULL CHECK (columns IN (32, 42, 48)),
    language   TEXT NOT NULL CHECK (language IN ('en', 'ru')),
    code_pages TEXT NOT NULL CHECK (code_pages IN ('ascii', 'western', 'cyrillic', 'both')),
    CHECK ((kind = 'none') = (target = ''))
) STRICT;

INSERT INTO receipt_printer (id, kind, target, columns, language, code_pages) VALUES (1, 'none', '', 42, 'en', 'both');

CREATE TRIGGER receipt_printer_stays BEFORE DELETE ON receipt_printer
BEGIN SELECT RAISE(ABORT, 'the printer settings are changed, not dropped'); END;

-- Every print. It is counted before a byte goes to the printer: a till that dies while it prints must not give out two originals.
CREATE TABLE receipt_prints (
    sale_id    TEXT NOT NULL REFERENCES sales (id),
    print      INTEGER NOT NULL CHECK (print >= 1),                    -- of this sale, without gaps
    of_receipt INTEGER NOT NULL CHECK (of_receipt IN (0, 1)),          -- 0: of a sale that was not paid yet, which is no receipt
    copy       INTEGER NOT NULL CHECK (copy >= 0),                     -- 0: the original
    at         INTEGER NOT NULL,
    -- NULL while it prints, and for ever where the till died then. What is not known to have failed may have been printed, and makes
    -- the next one a copy.
    outcome    TEXT CHECK (outcome IN ('printed', 'not_printed', 'unsure')),
    fault      TEXT CHECK (fault <> ''),                               -- the code of what was in the way
    PRIMARY KEY (sale_id, print),
    CHECK ((fault IS NOT NULL) = (outcome IS NOT NULL AND outcome <> 'printed'))
) STRICT, WITHOUT ROWID;

CREATE TRIGGER receipt_prints_begin BEFORE INSERT ON receipt_prints
WHEN NEW.print IS NOT (SELECT coalesce(max(print), 0) + 1 FROM receipt_prints WHERE sale_id = NEW.sale_id)
    OR NEW.outcome IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'prints are counted one by one, before they are made'); END;

CREATE TRIGGER receipt_prints_of_what_is_there BEFORE INSERT ON receipt_prints
WHEN (SELECT state FROM sales WHERE id = NEW.sale_id) IS NOT CASE NEW.of_receipt WHEN 1 THEN 'completed' ELSE 'paying' END
BEGIN SELECT RAISE(ABORT, 'only what is under payment or paid is printed, as what it is'); END;

CREATE TRIGGER receipt_prints_one_original BEFORE INSERT ON receipt_prints
WHEN NEW.copy IS NOT (SELECT count(*) FROM receipt_prints
                      WHERE sale_id = NEW.sale_id AND of_receipt = NEW.of_receipt AND outcome IS NOT 'not_printed')
BEGIN SELECT RAISE(ABORT, 'a receipt has one original, and its copies are counted'); END;

CREATE TRIGGER receipt_prints_keep_what_they_are BEFORE UPDATE ON receipt_prints
WHEN NEW.sale_id IS NOT OLD.sale_id OR NEW.print IS NOT OLD.print OR NEW.of_receipt IS NOT OLD.of_receipt
    OR NEW.copy IS NOT OLD.copy OR NEW.at IS NOT OLD.at OR OLD.outcome IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'a print never changes but for its outcome, once'); END;

CREATE TRIGGER receipt_prints_stay BEFORE DELETE ON receipt_prints
BEGIN SELECT RAISE(ABORT, 'a print is never dropped'); END;

-- The same of the slips of what came back.
CREATE TABLE return_prints (
    return_id TEXT NOT NULL REFERENCES returns (id),
    print     INTEGER NOT NULL CHECK (print >= 1),
    copy      INTEGER NOT NULL CHECK (copy >= 0),
    at        INTEGER NOT NULL,
    outcome   TEXT CHECK (outcome IN ('printed', 'not_printed', 'unsure')),
    fault     TEXT CHECK (fault <> ''),
    PRIMARY KEY (return_id, print),
    CHECK ((fault IS NOT NULL) = (outcome IS NOT NULL AND outcome <> 'printed'))
) STRICT, WITHOUT ROWID;

CREATE TRIGGER return_prints_begin BEFORE INSERT ON return_prints
WHEN NEW.print IS NOT (SELECT coalesce(max(print), 0) + 1 FROM return_prints WHERE return_id = NEW.return_id)
    OR NEW.outcome IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'prints are counted one by one, before they are made'); END;

CREATE TRIGGER return_prints_one_original BEFORE INSERT ON return_prints
WHEN NEW.copy IS NOT (SELECT count(*) FROM return_prints WHERE return_id = NEW.return_id AND outcome IS NOT 'not_printed')
BEGIN SELECT RAISE(ABORT, 'a slip has one original, and its copies are counted'); END;

CREATE TRIGGER return_prints_keep_what_they_are BEFORE UPDATE ON return_prints
WHEN NEW.return_id IS NOT OLD.return_id OR NEW.print IS NOT OLD.print OR NEW.copy IS NOT OLD.copy OR NEW.at IS NOT OLD.at
    OR OLD.outcome IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'a print never changes but for its outcome, once'); END;

CREATE TRIGGER return_prints_stay BEFORE DELETE ON return_prints
BEGIN SELECT RAISE(ABORT, 'a print is never dropped'); END;

---- Files that were brought back from a copy

-- Each time. What a copy holds is not all that happened: until the bank's payments since then were matched, nothing is paid on this file,
-- so that no sale that was paid on the lost one is paid again.
CREATE TABLE restores (
    id               INTEGER PRIMARY KEY CHECK (id >= 1),
    at               INTEGER NOT NULL,
    copied_at        INTEGER NOT NULL,                                 -- the last that the copy knows of
    -- The series goes on under another name: numbers up to the last one belong to the name before, and what the lost file gave after
    -- it is never given again under the same name.
    till_name_before TEXT NOT NULL CHECK (till_name_before <> ''),
    till_name        TEXT NOT NULL CHECK (till_name <> '' AND till_name <> till_name_before),
    last_sale        INTEGER NOT NULL CHECK (last_sale >= 0),
    matched_at       INTEGER
) STRICT;

CREATE TRIGGER restores_begin BEFORE INSERT ON restores
WHEN NEW.matched_at IS NOT NULL OR NEW.id IS NOT (SELECT coalesce(max(id), 0) + 1 FROM restores)
BEGIN SELECT RAISE(ABORT, 'a restored file begins unmatched'); END;

CREATE TRIGGER restores_are_matched_once BEFORE UPDATE ON restores
WHEN NEW.id IS NOT OLD.id OR NEW.at IS NOT OLD.at OR NEW.copied_at IS NOT OLD.copied_at
    OR NEW.till_name_before IS NOT OLD.till_name_before OR NEW.till_name IS NOT OLD.till_name
    OR NEW.last_sale IS NOT OLD.last_sale OR OLD.matched_at IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'a restore never changes but that it is matched, once'); END;

CREATE TRIGGER restores_stay BEFORE DELETE ON restores
BEGIN SELECT RAISE(ABORT, 'a restore is never forgotten'); END;

-- But what the bank approved already is taken over.
CREATE TRIGGER tenders_wait_for_the_match BEFORE INSERT ON tenders
WHEN EXISTS (SELECT 1 FROM restores WHERE matched_at IS NULL)
    AND NOT EXISTS (SELECT 1 FROM operations WHERE intent_id = unhex(replace(NEW.id, '-', '')) AND state = 'approved')
BEGIN SELECT RAISE(ABORT, 'a restored file takes no payment before the bank''s payments were matched'); END;
