//! Whether a window can be opened at all. The window system's own library panics where it can't.

/// Whether there is a display, and it answers.
#[cfg(target_os = "linux")]
pub(crate) fn there() -> bool {
    gtk::init().is_ok()
}

/// Whether there is a display: there always is one on this platform.
#[cfg(not(target_os = "linux"))]
pub(crate) fn there() -> bool {
    true
}
