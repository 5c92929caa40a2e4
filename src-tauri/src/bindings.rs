//! The window's commands and events, collected once: for the program to answer, and for the window's types to be
//! written from.

use tauri_specta::{Builder, collect_commands, collect_events};

use crate::{commands, events};

pub(crate) fn builder() -> Builder<tauri::Wry> {
    Builder::new()
        // A type looks the same on its way in and on its way out.
        .disable_serde_phases()
        .commands(collect_commands![
            commands::app::app_info,
            commands::app::close_anyway,
            commands::app::probe_storage,
            commands::catalogue::articles,
            commands::catalogue::categories,
            commands::sale::add_article,
            commands::sale::add_at_price,
            commands::sale::back_to_cart,
            commands::sale::clear_sale,
            commands::sale::drop_sale,
            commands::sale::held_sales,
            commands::sale::hold_sale,
            commands::sale::new_sale,
            commands::sale::open_sale,
            commands::sale::park_sale,
            commands::sale::remove_line,
            commands::sale::resume_sale,
            commands::sale::sale,
            commands::sale::set_quantity,
            commands::editing::discount_line,
            commands::editing::discount_sale,
            commands::editing::set_note,
            commands::editing::set_price,
            commands::editing::set_tip,
            commands::editing::undo,
            commands::pay::begin_cash_instead,
            commands::pay::begin_tender,
            commands::pay::cancel,
            commands::pay::pay_card,
            commands::pay::pay_cash,
            commands::pay::pay_cash_instead,
            commands::offline::note_contact,
            commands::offline::offline_ask,
            commands::offline::take_offline,
            commands::late::begin_collecting,
            commands::late::collect_again,
            commands::late::collect_in_cash,
            commands::late::late_declines,
            commands::late::write_off,
            commands::void::begin_void,
            commands::void::void_of,
            commands::void::void_sale,
            commands::payments::attempts,
            commands::payments::operation,
            commands::payments::operations,
            commands::payments::retry_now,
            commands::payments::summary,
            commands::payments::timeline,
            commands::receipts::print_receipt,
            commands::receipts::printer_settings,
            commands::receipts::receipt,
            commands::receipts::receipt_in,
            commands::people::check_right,
            commands::people::lock,
            commands::people::log_in,
            commands::people::people,
            commands::people::session,
            commands::shift::open_shift,
            commands::shift::shift,
            commands::lab::lab_bank_start,
            commands::lab::lab_bank_stop,
            commands::lab::lab_clear,
            commands::lab::lab_drain,
            commands::lab::lab_faults,
            commands::lab::lab_set_faults,
            commands::lab::lab_state,
        ])
        .events(collect_events![
            events::CatalogueChanged,
            events::CloseRequested,
            events::LateDeclined,
            events::OperationChanged,
            events::SaleChanged,
            events::SessionChanged,
            events::ShiftChanged,
            events::SummaryChanged,
        ])
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, env, fs, path::Path};

    use specta_typescript::Typescript;

    const HEADER: &str = "// Written by `cargo xtask bindings` from the commands in src-tauri.\n";

    #[test]
    fn the_windows_types_are_those_of_the_commands() {
        let committed = Path::new(env!("CARGO_MANIFEST_DIR")).join("ui/src/lib/ipc.gen.ts");
        let folder = tempfile::tempdir().unwrap();
        let fresh = folder.path().join("ipc.gen.ts");
        super::builder().export(Typescript::default().header(HEADER), &fresh).unwrap();
        let fresh = fs::read_to_string(&fresh).unwrap();
        if env::var_os("UPDATE").is_some_and(|value| value == "1") {
            fs::write(&committed, &fresh).unwrap();
        }
        assert!(
            fs::read_to_string(&committed).unwrap_or_default() == fresh,
            "ui/src/lib/ipc.gen.ts is not what the commands say: type `cargo xtask bindings`"
        );
    }

    /// A command that the window can't reach, or one that is allowed and isn't there, would show only when it is used.
    #[test]
    fn the_window_may_ask_for_its_commands_and_no_others() {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
        let source = fs::read_to_string(manifest.join("src-tauri/src/bindings.rs")).unwrap();
        let collected: BTreeSet<String> = source
            .lines()
            .filter_map(|line| line.trim().strip_prefix("commands::")?.strip_suffix(','))
            .filter_map(|path| Some(path.rsplit_once("::")?.1.replace('_', "-")))
            .collect();
        let conf: serde_json::Value =
            serde_json::from_str(&fs::read_to_string(manifest.join("tauri.conf.json")).unwrap()).unwrap();
        let allowed: BTreeSet<String> = conf["app"]["security"]["capabilities"][0]["permissions"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|permission| Some(permission.as_str()?.strip_prefix("allow-")?.to_owned()))
            .collect();
        assert!(!allowed.is_empty());
        assert_eq!(collected, allowed);
    }
}
