//! Named points at which a test has the process die: by a real SIGKILL, at exactly that place of the program.
//!
//! `KASSA_DIE_AT=counted` names the point, `KASSA_DIE_AT=counted:3` its third pass. A name that there isn't ends the process
//! with one line, so that no test goes green because of a typing error.
//!
//! **None of it is in what ships.** The feature `points` of this crate is off, only the tests' own dependencies turn it on, and a
//! build without debug assertions (`--release`) has no points even with it. Then [`reach`] and [`check`] are empty and the variable
//! is not read.

/// A place to die at. All of them stand here, whichever crate passes them, so that a test can go through the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// Before a migration: its copy is written, and not yet under its name.
    Copying,
    /// Before a migration: the copy aside is whole and durable, nothing is changed.
    Copied,
    /// A step of a migration has run, its COMMIT has not.
    Migrating,
    /// A step of a migration is durable.
    Migrated,
    /// An operation is inserted, its commit has not come.
    Inserted,
    /// The commit of a click is durable, and nobody was told.
    Saved,
    /// A start has taken the queue over, its commit has not come.
    TakingOver,
    /// A start has taken the queue over, durably, and has done nothing with it.
    TakenOver,
    /// The attempt is counted, durably, and its call has not begun.
    Counted,
    /// The answer of a call was read, and nothing of it is written.
    Answered,
    /// A refund has its bytes, in the commit that stores its payment's approval, which has not come.
    RefundReady,
    /// A cancellation, or the wish for one, is durable, and nobody was told.
    CancelSaved,
    /// The bank has answered about one that was cancelled here before it was ever sent, and nothing of it is written.
    TombstoneTold,
    /// The outcome of a call is written, its commit has not come.
    ResultWritten,
    /// The outcome of a call is durable, and nobody was told.
    ResultSaved,
}

impl Point {
    /// Every point.
    pub const ALL: [Point; 15] = [
        Point::Copying,
        Point::Copied,
        Point::Migrating,
        Point::Migrated,
        Point::Inserted,
        Point::Saved,
        Point::TakingOver,
        Point::TakenOver,
        Point::Counted,
        Point::Answered,
        Point::RefundReady,
        Point::CancelSaved,
        Point::TombstoneTold,
        Point::ResultWritten,
        Point::ResultSaved,
    ];

    /// Its name in `KASSA_DIE_AT`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Point::Copying => "copying",
            Point::Copied => "copied",
            Point::Migrating => "migrating",
            Point::Migrated => "migrated",
            Point::Inserted => "inserted",
            Point::Saved => "saved",
            Point::TakingOver => "taking-over",
            Point::TakenOver => "taken-over",
            Point::Counted => "counted",
            Point::Answered => "answered",
            Point::RefundReady => "refund-ready",
            Point::CancelSaved => "cancel-saved",
            Point::TombstoneTold => "tombstone-told",
            Point::ResultWritten => "result-written",
            Point::ResultSaved => "result-saved",
        }
    }
}

#[cfg(all(feature = "points", debug_assertions))]
mod armed {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::Point;

    /// The variable that names the point.
    const VARIABLE: &str = "KASSA_DIE_AT";

    /// Where to die, and at which pass of it.
    type Death = (Point, u32);

    static DEATH: OnceLock<Option<Death>> = OnceLock::new();
    static PASSES: AtomicU32 = AtomicU32::new(0);

    /// Dies where this pass of this point is the one that was named.
    pub fn reach(point: Point) {
        if let Some((at, pass)) = wanted()
            && at == point
            && PASSES.fetch_add(1, Ordering::Relaxed) + 1 == pass
        {
            die();
        }
    }

    /// Refuses a name that there isn't, before anything is done.
    pub fn check() {
        wanted();
    }

    fn wanted() -> Option<Death> {
        *DEATH.get_or_init(|| {
            let named = std::env::var_os(VARIABLE)?;
            let death = named.to_str().and_then(parse);
            if death.is_none() {
                let names = Point::ALL.map(Point::name).join(", ");
                eprintln!("{VARIABLE}: no point {named:?}; there are {names}, each also as NAME:PASS");
                std::process::exit(2);
            }
            death
        })
    }

    pub(super) fn parse(named: &str) -> Option<Death> {
        let (name, pass) = match named.split_once(':') {
            Some((name, pass)) => (name, pass.parse().ok().filter(|&pass| pass > 0)?),
            None => (named, 1),
        };
        Point::ALL.into_iter().find(|point| point.name() == name).map(|point| (point, pass))
    }

    #[cfg(unix)]
    fn die() {
        use rustix::process::{Signal, getpid, kill_process};
        // Nothing of the program runs after it: no thread of a process that is killed comes back from the kernel.
        let _ = kill_process(getpid(), Signal::KILL);
        std::process::abort();
    }

    #[cfg(not(unix))]
    fn die() {
        std::process::abort();
    }
}

#[cfg(all(feature = "points", debug_assertions))]
pub use armed::{check, reach};

/// Nothing: this build has no points.
#[cfg(not(all(feature = "points", debug_assertions)))]
#[inline(always)]
pub fn reach(_: Point) {}

/// Nothing: this build has no points.
#[cfg(not(all(feature = "points", debug_assertions)))]
#[inline(always)]
pub fn check() {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_points_have_one_name() {
        for (n, point) in Point::ALL.into_iter().enumerate() {
            assert!(Point::ALL[..n].iter().all(|other| other.name() != point.name()), "{point:?}");
            assert!(!point.name().contains(':'), "{point:?}");
        }
    }

    #[cfg(all(feature = "points", debug_assertions))]
    #[test]
    fn a_point_is_named_with_or_without_its_pass() {
        use armed::parse;
        assert_eq!(parse("counted"), Some((Point::Counted, 1)));
        assert_eq!(parse("result-saved:12"), Some((Point::ResultSaved, 12)));
        for wrong in ["", "count", "counted:", "counted:0", "counted:-1", "counted:x", "counted:1:2", ":1", " counted"]
        {
            assert_eq!(parse(wrong), None, "{wrong:?}");
        }
    }
}
