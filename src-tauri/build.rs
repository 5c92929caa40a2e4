//! Lets Tauri read `tauri.conf.json`, and declares the commands that the window's capability may name: a command
//! missing here, or a slip in the capability, fails the build.

use std::{error::Error, fs};

/// Every command of the window, as `src/lib.rs` collects them.
const COMMANDS: &[&str] = &[
    "add_article",
    "add_at_price",
    "app_info",
    "articles",
    "attempts",
    "back_to_cart",
    "begin_cash_instead",
    "begin_collecting",
    "begin_tender",
    "begin_void",
    "cancel",
    "categories",
    "check_right",
    "clear_sale",
    "close_anyway",
    "collect_again",
    "collect_in_cash",
    "discount_line",
    "discount_sale",
    "drop_sale",
    "held_sales",
    "hold_sale",
    "lab_bank_start",
    "lab_bank_stop",
    "lab_clear",
    "lab_drain",
    "lab_faults",
    "lab_set_faults",
    "lab_state",
    "late_declines",
    "lock",
    "log_in",
    "new_sale",
    "note_contact",
    "offline_ask",
    "open_sale",
    "open_shift",
    "operation",
    "operations",
    "park_sale",
    "pay_card",
    "pay_cash",
    "pay_cash_instead",
    "people",
    "print_receipt",
    "printer_settings",
    "probe_storage",
    "receipt",
    "receipt_in",
    "remove_line",
    "resume_sale",
    "retry_now",
    "sale",
    "session",
    "set_note",
    "set_price",
    "set_quantity",
    "set_tip",
    "shift",
    "summary",
    "take_offline",
    "timeline",
    "undo",
    "void_of",
    "void_sale",
    "write_off",
];

fn main() -> Result<(), Box<dyn Error>> {
    // The window is embedded into the program, so its folder has to be there for any cargo command, also on a fresh
    // clone where nobody has built it yet.
    fs::create_dir_all("ui/dist")?;
    let manifest = tauri_build::AppManifest::new().commands(COMMANDS);
    tauri_build::try_build(tauri_build::Attributes::new().app_manifest(manifest))?;
    Ok(())
}
