//! What could not be tried here. A run that is green says beside it how much that is.

use std::{fs, io, path::PathBuf, process::Command};

use anyhow::{Context, Result};

use crate::step::target;

/// The file that tests add a line to for what they left out.
const LIST: &str = "KASSA_LEFT_OUT";

/// Gathers what was left out, by this program and by the tests that it starts.
pub(crate) struct LeftOut {
    list: PathBuf,
    own: usize,
}

impl LeftOut {
    pub(crate) fn new() -> Result<Self> {
        fs::create_dir_all(target())?;
        Self::with_list(target().join("left-out.txt"))
    }

    fn with_list(list: PathBuf) -> Result<Self> {
        match fs::remove_file(&list) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(error).with_context(|| list.display().to_string())
            }
            _ => Ok(Self { list, own: 0 }),
        }
    }

    /// Says at once what is left out, and counts it.
    pub(crate) fn add(&mut self, what: &str) {
        println!("\n==> LEFT OUT: {what}");
        self.own += 1;
    }

    /// The command of tests that add to it.
    pub(crate) fn of_tests<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.env(LIST, &self.list)
    }

    /// Names what tests left out, and gives how much it is in all for the last line; nothing where nothing was.
    pub(crate) fn said(&self) -> Result<String> {
        let of_tests = match fs::read_to_string(&self.list) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            read => read.with_context(|| self.list.display().to_string())?,
        };
        of_tests.lines().for_each(|line| println!("    LEFT OUT: {line}"));
        Ok(match self.own + of_tests.lines().count() {
            0 => String::new(),
            count => format!(", {count} LEFT OUT"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_here_and_by_tests_is_in_the_last_line() -> Result<()> {
        let list = std::env::temp_dir().join(format!("kassa-left-out-{}", std::process::id()));
        fs::write(&list, "of an earlier run\n")?;
        let mut left_out = LeftOut::with_list(list.clone())?;
        assert_eq!(left_out.said()?, "");
        left_out.add("something");
        let mut test = Command::new("sh");
        test.args(["-c", &format!("echo one >> \"${LIST}\"; echo two >> \"${LIST}\"")]);
        assert!(left_out.of_tests(&mut test).status()?.success());
        assert_eq!(left_out.said()?, ", 3 LEFT OUT");
        fs::remove_file(list)?;
        Ok(())
    }
}
