//! Where the bank is and our secret there, as somebody entered it: in a file of its own beside the till's, which only its owner can read.
//! It is in no copy of the till's file, no export and no entry of the audit; that says when the address changed and when the secret did.

use crate::{Bank, Right, Secret, TillError, audit, audit::Signature, rights, rights::Measure, trouble};
use outbox::HttpTransport;
use rusqlite::Connection;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::{
    fs::{self, File, OpenOptions},
    io::{self, ErrorKind, Write as _},
    path::{Path, PathBuf},
};

/// The file's name in the data folder.
const FILE_NAME: &str = "bank-access.json";
/// That of the next one, before it takes the place of the last.
const NEXT_NAME: &str = "bank-access.json.new";

/// The bank as it is named in the settings: with no secret in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BankAccess {
    /// Its address.
    pub url: String,
    /// Whether there is a secret.
    pub has_secret: bool,
}

/// The bank as somebody enters it.
#[derive(Debug, Clone)]
pub struct NewBankAccess {
    /// Its address: `https://…`, or `http://` on this machine. No user and no query.
    pub url: String,
    /// Our secret there; none for the one that is kept, which goes to no other address.
    pub secret: Option<Secret>,
}

/// As the file has it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    url: String,
    secret: String,
}

/// What is kept; none where nothing was entered.
pub(crate) fn read(data_dir: &Path) -> Result<Option<Bank>, TillError> {
    let path = data_dir.join(FILE_NAME);
    let text = match fs::read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(TillError::NotRead(trouble::of_io(&error, &path))),
    };
    let kept: Kept = serde_json::from_slice(&text).map_err(|_| {
        // Never what stands in it.
        TillError::NoBank("the bank's address and secret that were entered can't be read: enter them again".to_owned())
    })?;
    Ok(Some(Bank::new(kept.url, kept.secret)))
}

/// What a window may know of it.
pub(crate) fn shown(bank: &Bank) -> BankAccess {
    BankAccess { url: bank.url.clone(), has_secret: !bank.token.expose().is_empty() }
}

/// What is to be kept, looked at: an address that can be asked, with a secret that can be sent.
pub(crate) fn checked(kept: Option<&Bank>, new: NewBankAccess) -> Result<Bank, TillError> {
    let url = new.url.trim().to_owned();
    let secret = match (new.secret, kept) {
        (Some(secret), _) => secret,
        (None, Some(kept)) if kept.url == url => kept.token.clone(),
        (None, _) => return Err(TillError::NoBank("another address needs its own secret: enter it too".to_owned())),
    };
    let bank = Bank::new(url, secret.expose());
    HttpTransport::new(&bank).map_err(|error| TillError::NoBank(error.to_string()))?;
    Ok(bank)
}

/// A file that was written, and has not taken its place.
pub(crate) struct Next {
    path: PathBuf,
    place: PathBuf,
}

/// Writes it, for its owner alone from the first byte on.
pub(crate) fn write(data_dir: &Path, bank: &Bank) -> Result<Next, TillError> {
    let next = Next { path: data_dir.join(NEXT_NAME), place: data_dir.join(FILE_NAME) };
    let kept = Kept { url: bank.url.clone(), secret: bank.token.expose().to_owned() };
    let text =
        serde_json::to_vec(&kept).map_err(|_| TillError::Internal("an address could not be written".to_owned()))?;
    next.drop_left_over()?;
    let written = create(&next.path).and_then(|mut file| {
        file.write_all(&text)?;
        file.sync_all()
    });
    match written {
        Ok(()) => Ok(next),
        Err(error) => Err(next.refused(&error)),
    }
}

impl Next {
    fn refused(&self, error: &io::Error) -> TillError {
        TillError::Storage(trouble::of_io(error, &self.path))
    }

    fn drop_left_over(&self) -> Result<(), TillError> {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(self.refused(&error)),
            _ => Ok(()),
        }
    }

    /// Takes the place of the last one.
    pub(crate) fn take_place(self) -> Result<(), TillError> {
        fs::rename(&self.path, &self.place)
            .and_then(|()| sync_folder(&self.place))
            .map_err(|error| self.refused(&error))
    }
}

impl Drop for Next {
    /// Whatever it was not needed for, no secret stays behind.
    fn drop(&mut self) {
        if let Err(error) = self.drop_left_over() {
            tracing::warn!(%error, "a secret that is not needed could not be removed");
        }
    }
}

/// Removes what is kept.
pub(crate) fn forget(data_dir: &Path) -> Result<(), TillError> {
    let path = data_dir.join(FILE_NAME);
    match fs::remove_file(&path).and_then(|()| sync_folder(&path)) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(TillError::Storage(trouble::of_io(&error, &path))),
        _ => Ok(()),
    }
}

fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Makes a name durable, where the system has folders that can be opened.
fn sync_folder(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(folder) if cfg!(unix) => File::open(folder)?.sync_all(),
        _ => Ok(()),
    }
}

/// Lets somebody change it who may, and writes down that it changed.
pub(crate) fn note(
    tx: &Connection,
    signature: &Signature,
    before: Option<&Bank>,
    after: Option<&Bank>,
) -> Result<(), TillError> {
    let signature = rights::allow(tx, signature, Right::Settings, Measure::Whole)?;
    let url = |bank: Option<&Bank>| bank.map(|bank| bank.url.clone());
    let is_other = before.map(|bank| &bank.token) != after.map(|bank| &bank.token);
    let details = json!({"before": url(before), "after": url(after), "secret_changed": is_other});
    audit::append(tx, &signature, "bank-changed", None, &details)
}
