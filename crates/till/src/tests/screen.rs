//! How the window looks and is worked, and the bank that was entered: kept, checked, signed, and no secret anywhere else.

use super::{Checked, Scene};
use crate::{
    Command, ExportFormat, Exported, KeyBindings, Language, NewBankAccess, NewPerson, PinEntry, Role, ScreenSettings,
    Secret, Shortcut, Theme, Till, TillError,
};
use std::{collections::BTreeMap, fs};

#[tokio::test]
async fn the_window_looks_as_it_was_set_and_as_in_a_new_till_before() -> Checked {
    let scene = Scene::new()?;
    assert_eq!(scene.till.screen_settings().await?, ScreenSettings::default());
    let mut keys = BTreeMap::from(KeyBindings::default());
    keys.insert(Command::Park, vec!["F6".parse()?, "Ctrl+K".parse()?]);
    let set = ScreenSettings {
        language: Language::Russian,
        theme: Theme::Dark,
        text_percent: 200,
        lock_after_s: Some(300),
        scanner_prefix: Some("]C1".to_owned()),
        keys: KeyBindings::new(keys)?,
    };
    scene.till.save_screen_settings(set.clone()).await?;
    scene.till.save_screen_settings(set.clone()).await?;
    let scene = scene.killed()?;
    assert_eq!(scene.till.screen_settings().await?, set);
    assert_eq!(scene.till.settings().await?.shop_name, "Kassa Demo Shop", "the shop's own are beside it");
    let written = scene.till.audit(None, 0, 10).await?;
    let saved: Vec<_> = written.iter().filter(|entry| entry.what == "screen-settings-saved").collect();
    assert_eq!(saved.len(), 1, "the second click changed nothing");
    assert_eq!(
        (&saved[0].details["before"]["theme"], &saved[0].details["after"]["theme"]),
        (&"system".into(), &"dark".into())
    );
    for wrong in [
        ScreenSettings { text_percent: 99, ..set.clone() },
        ScreenSettings { text_percent: 201, ..set.clone() },
        ScreenSettings { lock_after_s: Some(14), ..set.clone() },
        ScreenSettings { lock_after_s: Some(86_401), ..set.clone() },
        ScreenSettings { scanner_prefix: Some(String::new()), ..set.clone() },
        ScreenSettings { scanner_prefix: Some("~~~~~".to_owned()), ..set.clone() },
        ScreenSettings { scanner_prefix: Some("4".to_owned()), ..set.clone() },
    ] {
        let refused = scene.till.save_screen_settings(wrong).await;
        assert!(matches!(refused, Err(TillError::InvalidSetting(_))), "{refused:?}");
    }
    assert_eq!(scene.till.screen_settings().await?, set);
    // Changed by a hand that left a key twice: the window shows all the same.
    scene.file()?.execute("UPDATE settings SET value = replace(value, 'F6', 'F8') WHERE name = 'screen'", [])?;
    assert_eq!(scene.till.screen_settings().await?, ScreenSettings::default());
    Ok(())
}

#[tokio::test]
async fn how_it_looks_is_anybodys_and_what_keys_do_is_for_who_may_change_settings() -> Checked {
    let scene = Scene::new()?;
    let till = &scene.till;
    let pin = |person_id, pin: &str| PinEntry { person_id, pin: pin.to_owned() };
    let boris = till.add_person(NewPerson { name: "Boris".into(), role: Role::Manager, pin: "2847".into() }).await?;
    let anna = till.add_person(NewPerson { name: "Anna".into(), role: Role::Cashier, pin: "9031".into() }).await?;
    till.lock().await?;
    let large = ScreenSettings { text_percent: 150, ..ScreenSettings::default() };
    assert!(matches!(till.save_screen_settings(large.clone()).await, Err(TillError::Locked)));
    till.log_in(pin(anna.id, "9031")).await?;
    till.save_screen_settings(large.clone()).await?;
    let mut keys = BTreeMap::from(KeyBindings::default());
    keys.insert(Command::Pay, vec!["F11".parse::<Shortcut>()?]);
    let other_keys = ScreenSettings { keys: KeyBindings::new(keys)?, ..large.clone() };
    for wish in [
        other_keys.clone(),
        ScreenSettings { lock_after_s: Some(60), ..large.clone() },
        ScreenSettings { scanner_prefix: Some("~".to_owned()), ..large },
    ] {
        let refused = till.save_screen_settings(wish).await;
        assert!(matches!(refused, Err(TillError::NotAllowed(_))), "{refused:?}");
    }
    till.approved_by(pin(boris.id, "2847")).await?.save_screen_settings(other_keys.clone()).await?;
    assert_eq!(till.screen_settings().await?, other_keys);
    Ok(())
}

const SECRET: &str = "s3cret-of-the-shop";

fn entered(url: &str, secret: Option<&str>) -> NewBankAccess {
    NewBankAccess { url: url.to_owned(), secret: secret.map(Secret::new) }
}

#[tokio::test]
async fn the_banks_secret_is_kept_for_its_owner_and_stands_nowhere_else() -> Checked {
    let scene = Scene::new()?;
    let till = &scene.till;
    assert_eq!(till.bank_access().await?, None);
    let url = "https://bank.example/v1";
    let shown = till.save_bank_access(entered(&format!(" {url} "), Some(SECRET))).await?;
    assert_eq!((shown.url.as_str(), shown.has_secret), (url, true));
    let file = scene.dir.path().join("data/bank-access.json");
    #[cfg(unix)]
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&file)?.permissions()) & 0o777, 0o600);
    // The same address keeps its secret; another one never gets it.
    till.save_bank_access(entered(url, None)).await?;
    let refused = till.save_bank_access(entered("https://evil.example", None)).await;
    assert!(matches!(&refused, Err(TillError::NoBank(why)) if why.contains("its own secret")), "{refused:?}");
    for (wrong, secret) in [
        ("http://bank.example", SECRET),
        ("https://user:pass@bank.example", SECRET),
        ("https://bank.example/?key=1", SECRET),
        ("bank", SECRET),
        (url, "a\nb"),
    ] {
        let refused = till.save_bank_access(entered(wrong, Some(secret))).await;
        assert!(matches!(&refused, Err(TillError::NoBank(why)) if !why.contains(secret)), "{wrong}: {refused:?}");
    }
    let names = || -> Checked<Vec<String>> {
        let names =
            fs::read_dir(scene.dir.path().join("data"))?.map(|entry| Ok(entry?.file_name().to_string_lossy().into()));
        names.collect::<Checked<_>>()
    };
    assert!(!names()?.iter().any(|name| name.ends_with(".new")), "no secret is left behind: {:?}", names()?);
    let again = Till::open_read_only(&scene.dir.path().join("data"))?.entered_bank().await?.ok_or("no bank")?;
    assert_eq!((again.url.as_str(), again.token.expose()), (url, SECRET));
    assert!(!format!("{again:?} {:?}", entered(url, Some(SECRET))).contains(SECRET));

    // Not in the till's file, its log, a copy of it, an export or the audit.
    let copy = scene.dir.path().join("copy.db");
    till.backup(&copy, |_| {}).await?;
    let mut all = [
        fs::read(&copy)?,
        fs::read(scene.dir.path().join("data/till.db"))?,
        fs::read(scene.dir.path().join("data/till.db-wal"))?,
    ];
    for what in [Exported::Sales, Exported::Payments, Exported::Taxes, Exported::Audit] {
        let out = scene.dir.path().join("export");
        till.export(what, ExportFormat::Json, Box::new(fs::File::create(&out)?)).await?;
        all[0].extend(fs::read(&out)?);
    }
    let holds = |bytes: &[u8], text: &str| bytes.windows(text.len()).any(|part| part == text.as_bytes());
    assert!(all.iter().all(|bytes| !holds(bytes, SECRET)));
    assert!(holds(&all[0], "bank-changed"), "what is looked through is what was written");
    let entries = till.audit(None, 0, 50).await?;
    let changed: Vec<_> = entries.iter().filter(|entry| entry.what == "bank-changed").collect();
    assert_eq!(changed.len(), 2);
    assert_eq!((&changed[0].details["after"], &changed[0].details["secret_changed"]), (&url.into(), &true.into()));
    assert_eq!(changed[1].details["secret_changed"], false);

    // What a hand made of it is entered anew, and not told.
    fs::write(&file, format!("{{\"url\": \"{SECRET}"))?;
    let refused = till.bank_access().await;
    assert!(matches!(&refused, Err(TillError::NoBank(why)) if !why.contains(SECRET)), "{refused:?}");
    till.save_bank_access(entered("http://127.0.0.1:9", Some("t"))).await?;
    till.forget_bank_access().await?;
    assert_eq!((till.bank_access().await?, file.exists()), (None, false));
    Ok(())
}

#[tokio::test]
async fn who_may_not_change_settings_changes_no_bank() -> Checked {
    let scene = Scene::new()?;
    let till = &scene.till;
    till.add_person(NewPerson { name: "Boris".into(), role: Role::Manager, pin: "2847".into() }).await?;
    let anna = till.add_person(NewPerson { name: "Anna".into(), role: Role::Cashier, pin: "9031".into() }).await?;
    till.save_bank_access(entered("https://bank.example", Some(SECRET))).await?;
    till.log_in(PinEntry { person_id: anna.id, pin: "9031".into() }).await?;
    for refused in [
        till.save_bank_access(entered("https://evil.example", Some("x"))).await.map(drop),
        till.forget_bank_access().await,
    ] {
        assert!(matches!(refused, Err(TillError::NotAllowed(_))), "{refused:?}");
    }
    assert_eq!(till.bank_access().await?.map(|bank| bank.url).as_deref(), Some("https://bank.example"));
    assert!(!scene.dir.path().join("data/bank-access.json.new").exists());
    Ok(())
}
