//! The environment that every app of a test runs in, whoever starts it: nothing of the user's own shows through.

use std::{ffi::OsString, fs, path::Path, process::Command};

use anyhow::Result;

use crate::{
    display::Display,
    harness::bank::{Bank, SECRET},
};

/// Variables of a test's apps.
pub(crate) struct Surroundings {
    variables: Vec<(&'static str, OsString)>,
}

impl Surroundings {
    /// A display, a till's data, a bank where one is named, and folders of the test's own for all else.
    pub(crate) fn new(display: &Display, data: &Path, bank: Option<&Bank>, folder: &Path) -> Result<Self> {
        let mut variables: Vec<(&str, OsString)> = vec![
            ("DISPLAY", (&display.name).into()),
            ("NO_AT_BRIDGE", "1".into()),
            ("GDK_BACKEND", "x11".into()),
            ("LC_ALL", "C.UTF-8".into()),
            ("KASSA_DATA_DIR", data.into()),
        ];
        if let Some(bank) = bank {
            variables.push(("KASSA_BANK_URL", (&bank.url).into()));
            variables.push(("KASSA_BANK_TOKEN", SECRET.into()));
        }
        for (variable, name) in [
            ("XDG_DATA_HOME", "data"),
            ("XDG_CONFIG_HOME", "config"),
            ("XDG_CACHE_HOME", "cache"),
            ("XDG_RUNTIME_DIR", "run"),
        ] {
            let private = folder.join("xdg").join(name);
            fs::create_dir_all(&private)?;
            variables.push((variable, private.into()));
        }
        Ok(Self { variables })
    }

    /// Gives them to a program, in place of what it would inherit.
    pub(crate) fn give(&self, command: &mut Command) {
        for inherited in ["WAYLAND_DISPLAY", "KASSA_BANK_URL", "KASSA_BANK_TOKEN", "KASSA_LOG"] {
            command.env_remove(inherited);
        }
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
    }
}
