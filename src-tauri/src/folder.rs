//! Folders that only the user who runs the till can look into.

use std::{fs::DirBuilder, io, path::Path};

/// Makes a folder, private to the user, where it is missing.
///
/// # Errors
/// Where it can't be made.
pub(crate) fn private_folder(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}
