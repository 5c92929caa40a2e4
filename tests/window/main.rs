//! The real window, driven by WebDriver under a display of its own, with a real bank. Each test asserts what is seen and
//! what was charged at the gateway. Needs `cargo build --workspace` with the window built; `cargo xtask test` does both.

#[path = "../harness/mod.rs"]
#[allow(dead_code, reason = "shared with the tests that open no window, which use the rest")]
mod harness;

mod display;
mod driver;
mod real_window;
mod screen;
mod stage;
mod surroundings;
