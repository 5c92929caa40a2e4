//! The desktop app: one window over one till. It wires the till, the bundled bank and the window together, and decides
//! nothing itself.
//!
//! **The one invariant:** nothing is asked of the bank that the till has not made durable, and the queue goes on with what
//! was left before the window is shown.

mod bindings;
mod bundled;
mod commands;
mod display;
mod dto;
mod environment;
mod error;
mod events;
mod failure;
mod folder;
mod log;
mod shop;
mod window;

use std::process::ExitCode;

use tauri::async_runtime;

/// Runs the app until its window is closed. Where it can't start, it says why in one line on stderr and, where there is a
/// display, in a window, and the exit code is 1.
#[must_use]
pub fn run() -> ExitCode {
    if !display::there() {
        eprintln!("kassa: there is no display to open a window on");
        return ExitCode::FAILURE;
    }
    match window::embedded().and_then(|()| async_runtime::block_on(shop::Shop::open())).and_then(window::show) {
        Ok(code) => code,
        Err(error) => {
            failure::tell(&error);
            ExitCode::FAILURE
        }
    }
}

/// The configuration, the built window and what it may ask for, all in the program.
fn context() -> tauri::Context {
    tauri::generate_context!()
}
