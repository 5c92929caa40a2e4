-- Holds the place of the step that keeps what a restored file was called.
SELECT 1;
