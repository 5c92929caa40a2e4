//! A SQLite file with one writer.
