//! Lets Tauri read `tauri.conf.json`, and declares the commands that the window's capability may name: a command
//! missing here, or a slip in the capability, fails the build.

use std::{error::Error, fs};

/// Every command of the window, as `src/lib.rs` collects them.
const COMMANDS: &[&str] = &[
    "add_article",
    "app_info",
    "articles",
    "back_to_cart",
    "begin_tender",
    "categories",
    "clear_sale",
    "held_sales",
    "hold_sale",
    "new_sale",
    "open_sale",
    "operation",
    "operations",
    "pay_card",
    "pay_cash",
    "probe_storage",
    "receipt",
    "remove_line",
    "resume_sale",
    "retry_now",
    "set_quantity",
    "summary",
    "timeline",
];

fn main() -> Result<(), Box<dyn Error>> {
    // The window is embedded into the program, so its folder has to be there for any cargo command, also on a fresh
    // clone where nobody has built it yet.
    fs::create_dir_all("ui/dist")?;
    let manifest = tauri_build::AppManifest::new().commands(COMMANDS);
    tauri_build::try_build(tauri_build::Attributes::new().app_manifest(manifest))?;
    Ok(())
}
