//! A small disk for one test: mounted in a namespace that ends with the test, so that nothing is left behind, whoever dies.

use std::{
    fs::{self, File},
    io::{BufRead as _, BufReader, ErrorKind, Write as _},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use anyhow::{Context, Result, bail, ensure};

use crate::harness::{process::Process, till::Till};

/// The name of what takes all the room that is left.
const FILLER: &str = "filler";

/// The disk, as long as it is held.
pub(crate) struct Room {
    /// The process whose namespace the disk is in. It ends when its input does.
    holder: Child,
    folder: PathBuf,
}

impl Room {
    /// Mounts a disk of that size at a folder; none where this system lets nobody mount. Then that is said aloud: what the
    /// test is about was not tried.
    pub(crate) fn mount(folder: &Path, kib: u32) -> Result<Option<Self>> {
        fs::create_dir_all(folder)?;
        let script = format!("mount -t tmpfs -o size={kib}k,mode=700 kassa-test \"$0\" && echo mounted && exec cat");
        let started = Command::new("unshare")
            .args(["--map-root-user", "--mount", "sh", "-c", &script])
            .arg(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let mut holder = match started {
            Ok(holder) => holder,
            Err(error) if error.kind() == ErrorKind::NotFound => return left_out("there is no `unshare` here"),
            Err(error) => return Err(error.into()),
        };
        let mut line = String::new();
        BufReader::new(holder.stdout.take().context("its output")?).read_line(&mut line)?;
        if line.trim() == "mounted" {
            return Ok(Some(Self { holder, folder: folder.to_owned() }));
        }
        let said = holder.wait_with_output()?.stderr;
        left_out(String::from_utf8_lossy(&said).trim())
    }

    /// The same command, run where the disk is.
    fn inside(&self, command: &Command) -> Command {
        let mut inside = Command::new("nsenter");
        inside.args(["--user", "--mount", "--preserve-credentials", "--target", &self.holder.id().to_string()]);
        inside.arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => inside.env(name, value),
                None => inside.env_remove(name),
            };
        }
        inside
    }

    /// Starts a command of a till whose folder is on the disk; what it says goes elsewhere.
    pub(crate) fn start(&self, till: &Till, name: &str, arguments: &[&str], bank_url: Option<&str>) -> Result<Process> {
        let elsewhere = self.folder.parent().context("it is in a folder")?;
        Process::start(name, &mut self.inside(&till.command(arguments, bank_url)?), elsewhere)
    }

    /// Runs a line of the shell where the disk is; `$0` is its folder.
    pub(crate) fn shell(&self, line: &str) -> Result<()> {
        let mut command = Command::new("sh");
        let ended = self.inside(command.args(["-c", line]).arg(&self.folder)).output()?;
        ensure!(ended.status.success(), "{line}: {}", String::from_utf8_lossy(&ended.stderr));
        Ok(())
    }

    /// A file on the disk, as seen from outside. Not for SQLite, which asks the system for the way there.
    pub(crate) fn seen(&self, file: &Path) -> PathBuf {
        let inside = file.strip_prefix("/").unwrap_or(file);
        PathBuf::from(format!("/proc/{}/root", self.holder.id())).join(inside)
    }

    /// Takes all the room that is left, to the last byte.
    pub(crate) fn fill(&self) -> Result<()> {
        let mut filler = File::create(self.seen(&self.folder.join(FILLER)))?;
        for bytes in [4096, 1] {
            loop {
                match filler.write(&vec![b'.'; bytes]) {
                    Ok(_) => {}
                    Err(error) if error.kind() == ErrorKind::StorageFull => break,
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(())
    }

    /// Gives the room back.
    pub(crate) fn make_room(&self) -> Result<()> {
        Ok(fs::remove_file(self.seen(&self.folder.join(FILLER)))?)
    }

    /// Copies a till's folder off the disk, and gives the till on it.
    pub(crate) fn bring_out(&self, till: &Till, folder: &Path) -> Result<Till> {
        let copy = Till::in_folder(folder);
        fs::create_dir(copy.data())?;
        for entry in fs::read_dir(self.seen(till.data()))? {
            let entry = entry?;
            fs::copy(entry.path(), copy.data().join(entry.file_name()))?;
        }
        Ok(copy)
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        drop(self.holder.stdin.take());
        if let Err(error) = self.holder.wait() {
            eprintln!("the disk may still be mounted: {error}");
        }
    }
}

fn left_out<T>(why: &str) -> Result<Option<T>> {
    // Where all is to be proved, what was not tried is a failure.
    if std::env::var_os("CI").is_some_and(|value| value == "true") {
        bail!("no disk can be mounted: {why}");
    }
    println!("LEFT OUT: no disk can be mounted here, so none was full or read-only: {why}");
    // Whoever runs all tests counts it: a green line alone would hide it.
    if let Some(list) = std::env::var_os("KASSA_LEFT_OUT") {
        let test = std::thread::current().name().unwrap_or("a test").to_owned();
        let mut list = File::options().append(true).create(true).open(list)?;
        // In one write: others append at the same time.
        list.write_all(format!("{test}: no disk can be mounted here\n").as_bytes())?;
    }
    Ok(None)
}
