//! One app per data folder. The till's lock keeps the second one out; here the second one has the first come to the front.
//!
//! The app listens on a socket in its folder, which is the user's alone: whoever connects wants to see the window, and says
//! nothing. Where there is no such socket, a folder's path is too long for one, or the desktop lets no window come forward
//! by itself, the second start still says why it ended.

use std::{io, path::Path};

/// Lies beside the till's lock.
#[cfg(unix)]
const SOCKET_NAME: &str = "window.sock";

#[cfg(unix)]
pub(crate) use unix::{Raised, ask_first};

#[cfg(unix)]
mod unix {
    use std::{
        fs,
        io::Read,
        os::unix::{fs::PermissionsExt, net::UnixStream},
        path::PathBuf,
        time::Duration,
    };

    use tokio::{io::AsyncWriteExt, net::UnixListener};

    use super::{Path, SOCKET_NAME, io};

    /// For an answer of the first app; a window comes to the front in less, or its process stands still.
    const ANSWER_LIMIT: Duration = Duration::from_secs(2);
    /// What the first app answers once its window was told.
    const RAISED: &[u8] = b"raised\n";

    /// The first app's end.
    pub(crate) struct Raised {
        listener: UnixListener,
        path: PathBuf,
    }

    impl Raised {
        /// Listens for later starts. Only for who has the till's lock: what an earlier process left is removed.
        ///
        /// # Errors
        /// Where no socket can be had there.
        pub(crate) fn listen(data_dir: &Path) -> io::Result<Self> {
            let path = data_dir.join(SOCKET_NAME);
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let listener = UnixListener::bind(&path)?;
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
            Ok(Self { listener, path })
        }

        /// Has the window come to the front for each later start, for ever.
        pub(crate) async fn serve(self, raise: impl Fn()) {
            loop {
                match self.listener.accept().await {
                    Ok((mut second, _)) => {
                        raise();
                        // It may have given up waiting.
                        let _ = second.write_all(RAISED).await;
                    }
                    Err(error) => {
                        tracing::warn!("later starts can't bring this window to the front any more: {error}");
                        return;
                    }
                }
            }
        }
    }

    impl Drop for Raised {
        fn drop(&mut self) {
            // The next process removes it where this does not.
            let _ = fs::remove_file(&self.path);
        }
    }

    /// Asks the app that has this folder to come to the front. False where nobody answers.
    pub(crate) fn ask_first(data_dir: &Path) -> bool {
        let asked = || -> io::Result<bool> {
            let mut first = UnixStream::connect(data_dir.join(SOCKET_NAME))?;
            first.set_read_timeout(Some(ANSWER_LIMIT))?;
            let mut answer = [0; RAISED.len()];
            first.read_exact(&mut answer)?;
            Ok(answer == RAISED)
        };
        asked().unwrap_or(false)
    }
}

/// Nobody can be asked on this platform.
#[cfg(not(unix))]
pub(crate) fn ask_first(_data_dir: &Path) -> bool {
    false
}

#[cfg(all(test, unix))]
mod tests {
    use std::{
        os::unix::fs::PermissionsExt,
        sync::{
            Arc,
            atomic::{AtomicU32, Ordering},
        },
    };

    use super::*;

    async fn ask(data_dir: &Path) -> Result<bool, tokio::task::JoinError> {
        let data_dir = data_dir.to_owned();
        tokio::task::spawn_blocking(move || ask_first(&data_dir)).await
    }

    #[tokio::test]
    async fn each_later_start_brings_the_first_to_the_front() {
        let folder = tempfile::tempdir().unwrap();
        assert!(!ask(folder.path()).await.unwrap(), "nobody has the folder");
        // Left behind by a process that was killed.
        drop(std::os::unix::net::UnixListener::bind(folder.path().join(SOCKET_NAME)).unwrap());
        assert!(!ask(folder.path()).await.unwrap(), "nobody listens");

        let first = Raised::listen(folder.path()).unwrap();
        let mode = std::fs::metadata(folder.path().join(SOCKET_NAME)).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "others may connect");
        let raised = Arc::new(AtomicU32::new(0));
        let counting = Arc::clone(&raised);
        let serving = tokio::spawn(first.serve(move || {
            counting.fetch_add(1, Ordering::SeqCst);
        }));
        assert!(ask(folder.path()).await.unwrap());
        assert!(ask(folder.path()).await.unwrap());
        assert_eq!(raised.load(Ordering::SeqCst), 2);

        serving.abort();
        assert!(serving.await.unwrap_err().is_cancelled());
        assert!(!folder.path().join(SOCKET_NAME).exists(), "it is left behind");
    }

    #[tokio::test]
    async fn a_folder_with_too_long_a_path_has_none() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("x".repeat(120));
        std::fs::create_dir(&deep).unwrap();
        assert!(Raised::listen(&deep).is_err());
        assert!(!ask(&deep).await.unwrap());
    }
}
