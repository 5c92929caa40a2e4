//! The till over its SQLite file.
