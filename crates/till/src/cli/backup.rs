//! `backup` and `restore`: a copy of the file, and back.

use super::{Failure, complain, output::Out, progress::Progress};
use serde_json::json;
use std::{path::Path, process::ExitCode};
use till::Till;

pub(super) async fn backup(till: &Till, file: &Path) -> Result<ExitCode, Failure> {
    let mut progress = Progress::new();
    let done = till
        .backup(file, move |told| {
            progress.show(told.done.into(), told.of.into());
            if told.done == told.of {
                progress.clear();
            }
        })
        .await?;
    let line = json!({"file": file.to_string_lossy(), "bytes": done.bytes});
    Out::new().line(&line.to_string())?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn restore(data_dir: &Path, file: &Path, name: Option<&str>) -> Result<ExitCode, Failure> {
    let restored = Till::restore(data_dir, file, name)?;
    // That it could not be printed is no refusal: it is done.
    if let Err(error) = Out::new().line(&serde_json::to_string(&restored)?) {
        complain(format_args!("restored as {}, but it could not be printed ({error})", restored.till_name));
    }
    Ok(ExitCode::SUCCESS)
}
