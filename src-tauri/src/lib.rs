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
mod guard;
mod instance;
mod lab;
mod log;
mod placement;
mod shop;
mod window;

use std::{io::Write, process::ExitCode};

use anyhow::Result;
use tauri::async_runtime;
use till::TillError;
use tracing_appender::non_blocking::WorkerGuard;

use crate::{environment::Environment, shop::Shop};

/// Runs the app until its window is closed. Where it can't start, it says why in one line on stderr and, where there is a
/// display, in a window, and the exit code is 1.
#[must_use]
pub fn run() -> ExitCode {
    if !display::there() {
        // Where nobody reads it, the exit code tells it.
        let _ = writeln!(std::io::stderr(), "kassa: there is no display to open a window on");
        return ExitCode::FAILURE;
    }
    // Held to the very end: what is told once it is dropped, a failed start before all, is in no log.
    let mut log = None;
    match start(&mut log) {
        Ok(code) => code,
        Err(error) => {
            tell(&error);
            ExitCode::FAILURE
        }
    }
}

/// Says why there is no new window: on stderr alone where the app that has the folder comes to the front instead.
fn tell(error: &anyhow::Error) {
    let has_it = matches!(error.downcast_ref(), Some(TillError::InUse(_)));
    match Environment::read() {
        Ok(environment) if has_it && instance::ask_first(&environment.data_dir) => {
            failure::say(&format!("{error:#}: its window is in front now"));
        }
        _ => failure::tell(error),
    }
}

fn start(log: &mut Option<WorkerGuard>) -> Result<ExitCode> {
    window::embedded()?;
    let environment = Environment::read()?;
    *log = Some(log::start(&environment.data_dir)?);
    window::show(async_runtime::block_on(Shop::open(environment))?)
}

/// The configuration, the built window and what it may ask for, all in the program.
fn context() -> tauri::Context {
    tauri::generate_context!()
}
