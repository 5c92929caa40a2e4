//! Where the window was when it was closed: kept in a small file beside the till's data, and used at the next start.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use serde::{Deserialize, Serialize};
use tauri::{Monitor, PhysicalPosition, PhysicalSize, WebviewWindow, Window};

const FILE_NAME: &str = "window.json";
/// How much of the window must lie on a screen for a hand to get hold of it, in pixels.
const SEEN_MIN: (i64, i64) = (120, 60);
/// What no window of ours is smaller than, in pixels: a smaller one was never ours.
const SIZE_MIN: u32 = 200;

/// A window's place, in physical pixels of the desktop: its outer corner and its inner size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Placement {
    x: i32,
    y: i32,
    width: u32,
    height: u32,
    /// It filled the screen; the rest is what it had before.
    maximized: bool,
}

/// A screen of the desktop.
#[derive(Debug, Clone, Copy)]
struct Screen {
    x: i64,
    y: i64,
    width: i64,
    height: i64,
}

/// The window's place of this run, and its file.
pub(crate) struct Kept {
    file: PathBuf,
    last: Mutex<Option<Placement>>,
}

impl Kept {
    /// What an earlier run left. A file that is none is as if there were none.
    pub(crate) fn read(data_dir: &Path) -> Self {
        let file = data_dir.join(FILE_NAME);
        let last = match fs::read(&file) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .inspect_err(|error| tracing::warn!("{} says no place of a window: {error}", file.display()))
                .ok()
                .filter(|placement: &Placement| placement.width.min(placement.height) >= SIZE_MIN),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                tracing::warn!("{} can't be read: {error}", file.display());
                None
            }
        };
        Self { file, last: Mutex::new(last) }
    }

    /// Whether there is a place to go back to.
    pub(crate) fn is_there(&self) -> bool {
        self.last().is_some()
    }

    /// Puts a new window where the last one was, as far as there is a screen.
    ///
    /// # Errors
    /// Where the window system refuses.
    pub(crate) fn restore(&self, window: &WebviewWindow) -> tauri::Result<()> {
        let Some(before) = self.last() else { return Ok(()) };
        let screens: Vec<Screen> = window.available_monitors()?.iter().map(Screen::of).collect();
        let Placement { x, y, width, height, maximized } = on_screen(before, &screens);
        window.set_size(PhysicalSize::new(width, height))?;
        window.set_position(PhysicalPosition::new(x, y))?;
        if maximized {
            window.maximize()?;
        }
        Ok(())
    }

    /// Notes where the window is now. One that fills the screen keeps the place that it had before.
    pub(crate) fn note(&self, window: &Window) {
        if window.is_minimized().unwrap_or(false) {
            return;
        }
        let maximized = window.is_maximized().unwrap_or(false);
        let (Ok(position), Ok(size)) = (window.outer_position(), window.inner_size()) else { return };
        let now = Placement { x: position.x, y: position.y, width: size.width, height: size.height, maximized };
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        *last = Some(match *last {
            Some(before) if maximized => Placement { maximized, ..before },
            _ => now,
        });
    }

    /// Writes it down, whole or not at all. A window that opens elsewhere is no reason to hold an end up.
    pub(crate) fn save(&self) {
        let Some(last) = self.last() else { return };
        let written = serde_json::to_vec(&last).map_err(io::Error::other).and_then(|bytes| {
            let fresh = self.file.with_extension("json.new");
            fs::write(&fresh, bytes)?;
            private(&fresh)?;
            fs::rename(&fresh, &self.file)
        });
        if let Err(error) = written {
            tracing::warn!("the window's place is not kept: {}: {error}", self.file.display());
        }
    }

    fn last(&self) -> Option<Placement> {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(unix)]
fn private(file: &Path) -> io::Result<()> {
    fs::set_permissions(file, std::os::unix::fs::PermissionsExt::from_mode(0o600))
}

#[cfg(not(unix))]
fn private(_file: &Path) -> io::Result<()> {
    Ok(())
}

impl Screen {
    fn of(monitor: &Monitor) -> Self {
        let (position, size) = (monitor.position(), monitor.size());
        Self { x: position.x.into(), y: position.y.into(), width: size.width.into(), height: size.height.into() }
    }

    /// How much of the place lies on it, across and down.
    fn shows(&self, placement: &Placement) -> (i64, i64) {
        let shared = |from: i64, long: i64, at: i32, wide: u32| {
            (from + long).min(i64::from(at) + i64::from(wide)) - from.max(i64::from(at))
        };
        (
            shared(self.x, self.width, placement.x, placement.width),
            shared(self.y, self.height, placement.y, placement.height),
        )
    }
}

/// The place as it can be had: no larger than the screen it is on; and where the screen is gone, or its upper edge with all
/// that one gets hold of it by lies outside, in the middle of the first screen.
fn on_screen(before: Placement, screens: &[Screen]) -> Placement {
    let Some(first) = screens.first() else { return before };
    let seen = |screen: &&Screen| {
        let (across, down) = screen.shows(&before);
        across >= SEEN_MIN.0 && down >= SEEN_MIN.1 && i64::from(before.y) >= screen.y
    };
    let found = screens.iter().filter(seen).max_by_key(|screen| {
        let (across, down) = screen.shows(&before);
        across * down
    });
    let screen = found.unwrap_or(first);
    let fitting = |wanted: u32, most: i64| u32::try_from(i64::from(wanted).min(most)).unwrap_or(wanted);
    let (width, height) = (fitting(before.width, screen.width), fitting(before.height, screen.height));
    let (x, y) = match found {
        Some(_) => (before.x, before.y),
        None => (middle(screen.x, screen.width, width), middle(screen.y, screen.height, height)),
    };
    Placement { x, y, width, height, ..before }
}

fn middle(from: i64, long: i64, wide: u32) -> i32 {
    i32::try_from(from + (long - i64::from(wide)) / 2).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAPTOP: Screen = Screen { x: 0, y: 0, width: 1_920, height: 1_080 };
    const BESIDE: Screen = Screen { x: 1_920, y: -200, width: 2_560, height: 1_440 };

    fn at(x: i32, y: i32, width: u32, height: u32) -> Placement {
        Placement { x, y, width, height, maximized: false }
    }

    #[test]
    fn a_place_that_is_on_a_screen_is_kept() {
        for place in [at(10, 20, 1_280, 800), at(2_000, -150, 1_280, 800), at(1_700, 900, 1_280, 800)] {
            assert_eq!(on_screen(place, &[LAPTOP, BESIDE]), place);
        }
        assert_eq!(on_screen(at(9_000, 9_000, 800, 600), &[]), at(9_000, 9_000, 800, 600), "nothing is known");
    }

    #[test]
    fn a_place_off_every_screen_comes_to_the_middle_of_the_first() {
        let middle = at(320, 140, 1_280, 800);
        // The second screen is gone; only a corner is seen; the upper edge is above the screen.
        for place in [at(2_000, 100, 1_280, 800), at(1_850, 1_050, 1_280, 800), at(100, -30, 1_280, 800)] {
            assert_eq!(on_screen(place, &[LAPTOP]), middle);
        }
        let filling = Placement { maximized: true, ..at(2_000, 100, 1_280, 800) };
        assert_eq!(on_screen(filling, &[LAPTOP]), Placement { maximized: true, ..middle });
    }

    #[test]
    fn a_window_is_no_larger_than_its_screen() {
        assert_eq!(on_screen(at(0, 0, 3_000, 2_000), &[LAPTOP]), at(0, 0, 1_920, 1_080));
    }

    #[test]
    fn what_is_saved_is_read_again_and_anything_else_is_none() {
        let folder = tempfile::tempdir().unwrap();
        assert!(!Kept::read(folder.path()).is_there());
        let place = at(-5, 7, 1_024, 768);
        let kept = Kept { file: folder.path().join(FILE_NAME), last: Mutex::new(Some(place)) };
        kept.save();
        assert_eq!(Kept::read(folder.path()).last(), Some(place));
        for torn in ["", "{\"x\":1", "{\"x\":1,\"y\":2,\"width\":3,\"height\":4,\"maximized\":false}"] {
            fs::write(folder.path().join(FILE_NAME), torn).unwrap();
            assert!(!Kept::read(folder.path()).is_there(), "{torn}");
        }
    }
}
