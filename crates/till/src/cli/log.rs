//! What goes to stderr beside the commands' own lines.

use std::{
    fmt::Display,
    io::{self, IsTerminal as _, StderrLock, Write as _},
    sync::atomic::{AtomicBool, Ordering},
};
use tracing_subscriber::{
    EnvFilter,
    fmt::{MakeWriter, writer::OptionalWriter},
};

/// Whether the last word was said. Read and written only by who holds the lock of stderr.
static IS_SAID: AtomicBool = AtomicBool::new(false);

/// Logs go to stderr, and a line that can't be written there is lost: warnings, or what `KASSA_LOG` or `RUST_LOG` ask for.
pub(super) fn to_stderr() {
    let filter = ["KASSA_LOG", "RUST_LOG"]
        .into_iter()
        .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
        .and_then(|directives| EnvFilter::try_new(directives).ok())
        .unwrap_or_else(|| EnvFilter::new("warn"));
    let is_terminal = io::stderr().is_terminal();
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(is_terminal)
        .with_writer(UntilLastWord)
        .log_internal_errors(false)
        .init();
}

/// Why the process ends, as the last line of stderr: whoever reads the end of it finds the reason there. A thread that writes to a
/// file which fails may still be at it, and what it meets now is that same fault once more.
pub(super) fn last_word(why: impl Display) {
    let mut stderr = io::stderr().lock();
    IS_SAID.store(true, Ordering::Relaxed);
    // The exit code tells it too.
    let _ = writeln!(stderr, "kassa-till: {why}");
}

struct UntilLastWord;

impl<'a> MakeWriter<'a> for UntilLastWord {
    type Writer = OptionalWriter<StderrLock<'static>>;

    fn make_writer(&'a self) -> Self::Writer {
        // Locked before the look, and held until the line is out.
        let stderr = io::stderr().lock();
        if IS_SAID.load(Ordering::Relaxed) { OptionalWriter::none() } else { OptionalWriter::some(stderr) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_the_last_word_nothing_is_logged() {
        assert!(matches!(UntilLastWord.make_writer(), OptionalWriter::A(_)));
        last_word("the end");
        assert!(matches!(UntilLastWord.make_writer(), OptionalWriter::B(_)));
    }
}
