//! The one window, from the moment the queue runs until both have ended.

use std::{path::PathBuf, process::ExitCode, sync::Mutex};

use anyhow::{Result, ensure};
use tauri::{App, AppHandle, Manager, RunEvent, WebviewWindowBuilder, Window, WindowEvent, async_runtime};

use crate::{
    bindings, events, failure,
    guard::{self, CloseGuard},
    placement::Kept,
    shop::Shop,
};

/// Looks whether this program was built with its window in it. A program without one compiles all the same, so that the
/// rest can be worked on.
///
/// # Errors
/// Where there is none: says what to type.
pub(crate) fn embedded() -> Result<()> {
    let from_inside = cfg!(feature = "custom-protocol");
    let there = crate::context().assets().get(&"index.html".into()).is_some();
    ensure!(
        there || !from_inside,
        "this program was built without its window: type `cargo xtask run`, which builds both"
    );
    Ok(())
}

/// Shows the window and, when it is closed or the process is asked to end, closes the shop.
///
/// # Errors
/// Where the window system refuses. The shop is closed then.
pub(crate) fn show(shop: Shop) -> Result<ExitCode> {
    let bindings = bindings::builder();
    let told = shop.till.subscribe();
    let (till, bank, lab) = (shop.till.clone(), shop.bank.clone(), shop.lab.clone());
    let data_dir = till.data_dir().to_owned();
    let app = tauri::Builder::default()
        .manage(till.clone())
        .manage(bank)
        .manage(lab)
        .manage(CloseGuard::default())
        .manage(Kept::read(&data_dir))
        .on_window_event(watch)
        .invoke_handler(bindings.invoke_handler())
        .setup(move |app| {
            bindings.mount_events(app);
            async_runtime::spawn(events::forward(app.handle().clone(), till, told));
            async_runtime::spawn(end_on_signal(app.handle().clone()));
            // An error given back here would be a panic there.
            if let Err(error) = open(app) {
                failure::say(&format!("the window could not be opened: {error}"));
                app.handle().exit(1);
            }
            async_runtime::spawn(come_forward(app.handle().clone(), data_dir));
            Ok(())
        })
        .build(crate::context());
    let app = match app {
        Ok(app) => app,
        Err(error) => {
            async_runtime::block_on(shop.close());
            return Err(error.into());
        }
    };
    let shop = Mutex::new(Some(shop));
    let code = app.run_return(move |app, event| {
        if let RunEvent::Exit = event
            && let Ok(mut shop) = shop.lock()
            && let Some(shop) = shop.take()
        {
            app.state::<Kept>().save();
            async_runtime::block_on(shop.close());
        }
    });
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
}

fn watch(window: &Window, event: &WindowEvent) {
    match event {
        WindowEvent::CloseRequested { api, .. } if !guard::may_close(window.app_handle()) => api.prevent_close(),
        WindowEvent::Moved(_) | WindowEvent::Resized(_) => window.state::<Kept>().note(window),
        _ => {}
    }
}

fn open(app: &App) -> tauri::Result<()> {
    let kept = app.state::<Kept>();
    for window in &app.config().app.windows {
        // Shown once it is in its place: else it would jump there.
        let opened = WebviewWindowBuilder::from_config(app, window)?.visible(!kept.is_there()).build()?;
        if kept.is_there() {
            if let Err(error) = kept.restore(&opened) {
                tracing::warn!("the window does not come back to its place: {error}");
            }
            opened.show()?;
        }
    }
    Ok(())
}

/// Brings the window to the front for each later start on this folder, as far as the desktop allows.
#[cfg(unix)]
async fn come_forward(app: AppHandle, data_dir: PathBuf) {
    let raise = move || {
        for window in app.webview_windows().into_values() {
            if let Err(error) = window.unminimize().and_then(|()| window.show()).and_then(|()| window.set_focus()) {
                tracing::warn!("the window does not come to the front: {error}");
            }
        }
    };
    match crate::instance::Raised::listen(&data_dir) {
        Ok(later_starts) => later_starts.serve(raise).await,
        Err(error) => tracing::warn!("a later start can't bring this window to the front: {error}"),
    }
}

#[cfg(not(unix))]
async fn come_forward(_app: AppHandle, _data_dir: PathBuf) {}

/// A polite request to end is a close like any other.
#[cfg(unix)]
async fn end_on_signal(app: AppHandle) {
    use tokio::signal::unix::{SignalKind, signal};

    match (signal(SignalKind::terminate()), signal(SignalKind::interrupt())) {
        (Ok(mut terminate), Ok(mut interrupt)) => {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            app.exit(0);
        }
        (Err(error), _) | (_, Err(error)) => tracing::warn!("signals only end the app at once: {error}"),
    }
}

#[cfg(not(unix))]
async fn end_on_signal(app: AppHandle) {
    match tokio::signal::ctrl_c().await {
        Ok(()) => app.exit(0),
        Err(error) => tracing::warn!("signals only end the app at once: {error}"),
    }
}
