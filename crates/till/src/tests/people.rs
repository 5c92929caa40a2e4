//! Cashiers and managers: logging in, wrong PINs, rights and approvals, and what the file refuses.

use super::{Checked, Scene};
use crate::{
    Asked, ImportMode, Limit, Measure, NewPerson, Person, PersonChange, PinEntry, Refund, Right, Role, RoleRight,
    Settings, State, Till, TillError, audit::Signature, people, people::Try,
};
use jiff::{SignedDuration, Timestamp};
use protocol::Amount;
use rusqlite::Connection;
use uuid::Uuid;

pub(super) const BORIS: &str = "2847";
const ANNA: &str = "9031";

pub(super) fn pin(person: &Person, pin: &str) -> PinEntry {
    PinEntry { person_id: person.id, pin: pin.to_owned() }
}

fn new(name: &str, role: Role, pin: &str) -> NewPerson {
    NewPerson { name: name.to_owned(), role, pin: pin.to_owned() }
}

/// Boris, a manager, and Anna, a cashier, who is logged in.
pub(super) async fn staffed() -> Checked<(Scene, Person, Person)> {
    let scene = Scene::new()?;
    let boris = scene.till.add_person(new("Boris", Role::Manager, BORIS)).await?;
    let anna = scene.till.add_person(new("Anna", Role::Cashier, ANNA)).await?;
    scene.till.log_in(pin(&anna, ANNA)).await?;
    Ok((scene, boris, anna))
}

/// The till for one command that Boris approves.
pub(super) async fn by_boris(scene: &Scene, boris: &Person) -> Result<Till, TillError> {
    scene.till.approved_by(pin(boris, BORIS)).await
}

#[tokio::test]
async fn the_first_person_is_a_manager_and_ends_the_time_without_a_lock() -> Checked {
    let scene = Scene::new()?;
    assert!(!scene.till.session().await?.locked);
    let cashier = scene.till.add_person(new("Anna", Role::Cashier, ANNA)).await;
    assert!(matches!(cashier, Err(TillError::InvalidPerson(_))), "{cashier:?}");
    let boris = scene.till.add_person(new("  Boris ", Role::Manager, BORIS)).await?;
    assert_eq!((boris.name.as_str(), boris.role, boris.active), ("Boris", Role::Manager, true));
    let session = scene.till.session().await?;
    assert_eq!((session.locked, session.person.as_ref().map(|person| person.id)), (false, Some(boris.id)));
    scene.till.add_article("BAK-201", None).await?;
    assert!(scene.till.lock().await?.locked);
    assert!(matches!(scene.till.add_article("BAK-201", None).await, Err(TillError::Locked)));
    let entries = scene.till.as_program("test").audit(None, 1, 10).await?;
    let shown: Vec<_> = entries.iter().map(|entry| (entry.what.as_str(), entry.who.as_str())).collect();
    assert_eq!(shown, [("person-added", "cashier"), ("logged-in", "Boris"), ("locked", "Boris")]);
    assert_eq!(entries[1].person_id, Some(boris.id));
    Ok(())
}

#[tokio::test]
async fn a_locked_till_shows_everything_and_changes_nothing() -> Checked {
    let (scene, _, _) = staffed().await?;
    let till = &scene.till;
    let sale = scene.sale().await?;
    let operation = scene.by_card(&sale, 590).await?;
    till.lock().await?;
    let before = scene.count("SELECT count(*) FROM audit")?;
    let locked = [
        till.add_article("BAK-201", None).await.err(),
        till.hold_sale(sale.id).await.err(),
        till.cancel(operation.key).await.err(),
        till.save_settings(Settings { shop_name: "Other".into(), ..Settings::default() }).await.err(),
        till.add_person(new("Clara", Role::Cashier, "5172")).await.err(),
    ];
    assert!(locked.iter().all(|error| matches!(error, Some(TillError::Locked))), "{locked:?}");
    assert_eq!(scene.count("SELECT count(*) FROM audit")?, before);
    assert_eq!(till.sale(sale.id).await?.id, sale.id);
    assert_eq!(till.people().await?.len(), 2);
    // The bank's word is no person's.
    scene.settle(&operation, State::Approved).await?;
    // And who may run programs on the file may change it.
    till.as_program("command line").hold_sale(sale.id).await?;
    Ok(())
}

#[tokio::test]
async fn every_start_is_locked_where_there_are_people() -> Checked {
    let (Scene { till, dir }, _, anna) = staffed().await?;
    assert_eq!(till.session().await?.person.map(|person| person.id), Some(anna.id));
    drop(till);
    let till = Till::open(&dir.path().join("data"))?;
    assert!(till.session().await?.locked);
    assert!(matches!(till.add_article("BAK-201", None).await, Err(TillError::Locked)));
    till.log_in(pin(&anna, ANNA)).await?;
    till.add_article("BAK-201", None).await?;
    Ok(())
}

#[tokio::test]
async fn a_person_who_left_can_neither_log_in_nor_go_on() -> Checked {
    let (scene, boris, anna) = staffed().await?;
    let till = &scene.till;
    let gone = PersonChange { id: anna.id, name: "Anna".into(), role: Role::Cashier, active: false };
    assert!(matches!(till.change_person(gone.clone()).await, Err(TillError::NotAllowed(_))));
    till.approved_by(pin(&boris, BORIS)).await?.change_person(gone).await?;
    assert!(till.session().await?.locked);
    let refused = till.log_in(pin(&anna, ANNA)).await;
    assert!(
        matches!(&refused, Err(TillError::NotAllowed(why)) if why.contains("Anna does not work here")),
        "{refused:?}"
    );
    assert_eq!(till.people().await?.iter().filter(|person| person.active).count(), 1);
    Ok(())
}

#[tokio::test]
async fn there_is_always_an_active_manager_and_no_two_names_alike() -> Checked {
    let (scene, boris, _) = staffed().await?;
    let till = scene.till.approved_by(pin(&boris, BORIS)).await?;
    for (role, active) in [(Role::Cashier, true), (Role::Manager, false)] {
        let last = PersonChange { id: boris.id, name: "Boris".into(), role, active };
        let refused = till.change_person(last).await;
        assert!(
            matches!(&refused, Err(TillError::InvalidPerson(why)) if why.contains("only active manager")),
            "{refused:?}"
        );
    }
    for name in ["anna", "", " ", "bank", "Command Line", "a\nb", "4111 1111 1111 1111", &"x".repeat(41)] {
        let refused = till.add_person(new(name, Role::Cashier, "5172")).await;
        assert!(matches!(refused, Err(TillError::InvalidPerson(_))), "{name}: {refused:?}");
    }
    let refused = till.add_person(new("Clara", Role::Cashier, "1234")).await;
    assert!(matches!(refused, Err(TillError::InvalidPin(_))), "{refused:?}");
    let file = scene.file()?;
    for (change, reason) in [
        ("DELETE FROM people", "never dropped"),
        ("UPDATE people SET active = 0", "always an active manager"),
        ("UPDATE people SET role = 'cashier'", "always an active manager"),
        ("UPDATE people SET id = id + 10", "keeps the id"),
        ("UPDATE people SET pin = '2847'", "CHECK constraint failed"),
        ("UPDATE people SET name = 'Boris'", "UNIQUE constraint failed"),
        ("DELETE FROM rights", "each role has each right"),
        ("UPDATE rights SET allowed = 0 WHERE role = 'manager' AND name = 'people'", "CHECK constraint failed"),
        ("UPDATE rights SET name = 'other' WHERE role = 'cashier' AND name = 'refund'", "each role has each right"),
        ("UPDATE rights SET allowed = 1, amount_max = 1 WHERE name = 'settings'", "CHECK constraint failed"),
        ("INSERT INTO sessions VALUES (2, 1, '00000000-0000-4000-8000-000000000000', 0)", "CHECK constraint failed"),
    ] {
        let refused = file.execute(change, []).expect_err(change).to_string();
        assert!(refused.contains(reason), "{change}: {refused}");
    }
    let empty = Scene::new()?;
    let cashier = "INSERT INTO people (name, role, pin, active, created_at, updated_at) VALUES ('A', 'cashier', '$argon2id$v=19$x', 1, 0, 0)";
    let refused = empty.file()?.execute(cashier, []).expect_err(cashier).to_string();
    assert!(refused.contains("the first person is a manager"), "{refused}");
    Ok(())
}

#[tokio::test]
async fn wrong_pins_wait_longer_and_longer_and_a_restart_gives_no_new_tries() -> Checked {
    let (Scene { mut till, dir }, boris, anna) = staffed().await?;
    for left in [4, 3, 2, 1] {
        let wrong = till.log_in(pin(&anna, "0001")).await;
        assert!(
            matches!(wrong, Err(TillError::WrongPin { tries_left, wait_s: 0 }) if tries_left == left),
            "{left}: {wrong:?}"
        );
        drop(till);
        till = Till::open(&dir.path().join("data"))?;
    }
    let fifth = till.log_in(pin(&anna, "0001")).await;
    assert!(matches!(fifth, Err(TillError::WrongPin { tries_left: 0, wait_s: 30 })), "{fifth:?}");
    drop(till);
    let till = Till::open(&dir.path().join("data"))?;
    // Now the right one isn't looked at either.
    let waiting = till.log_in(pin(&anna, ANNA)).await;
    assert!(matches!(waiting, Err(TillError::PinWait { wait_s: 29..=30 })), "{waiting:?}");
    // It is Anna who waits.
    till.log_in(pin(&boris, BORIS)).await?;
    let tries: Vec<_> = till.people().await?.iter().map(|person| person.wrong_tries).collect();
    assert_eq!(tries, [5, 0]);
    let wrong = till
        .as_program("test")
        .audit(None, 0, 100)
        .await?
        .into_iter()
        .filter(|entry| entry.what == "pin-wrong")
        .count();
    assert_eq!(wrong, 5);
    // Another PIN, set by a manager, ends it.
    till.set_pin(anna.id, "6350").await?;
    till.log_in(pin(&anna, "6350")).await?;
    Ok(())
}

#[tokio::test]
async fn a_right_pin_has_the_count_begin_anew() -> Checked {
    let (scene, _, anna) = staffed().await?;
    for _ in 0..2 {
        for _ in 0..4 {
            assert!(matches!(scene.till.log_in(pin(&anna, "0001")).await, Err(TillError::WrongPin { wait_s: 0, .. })));
        }
        scene.till.log_in(pin(&anna, ANNA)).await?;
    }
    Ok(())
}

fn tried(file: &Connection, id: i64, at: Timestamp) -> Checked<Try> {
    Ok(people::begin_try(file, id, at)?)
}

#[tokio::test]
async fn a_try_is_counted_before_its_pin_is_looked_at_and_the_clock_shortens_no_wait() -> Checked {
    let (scene, _, anna) = staffed().await?;
    let file = scene.file()?;
    let begin: Timestamp = "2026-11-30T09:00:00Z".parse()?;
    let after = |s: i64| begin.saturating_add(SignedDuration::from_secs(s));
    let counted = |tried: &Try| matches!(tried, Try::Counted { .. });
    for _ in 0..5 {
        assert!(counted(&tried(&file, anna.id, begin)?));
    }
    assert_eq!(tried(&file, anna.id, begin)?, Try::Wait { wait_s: 30 });
    assert_eq!(tried(&file, anna.id, after(29)?)?, Try::Wait { wait_s: 1 });
    // Set back by a day: the wait begins anew from there, and ends, however far back that is.
    let back = after(-86_400)?;
    assert_eq!(tried(&file, anna.id, back)?, Try::Wait { wait_s: 30 });
    assert_eq!(tried(&file, anna.id, back.checked_add(SignedDuration::from_secs(10))?)?, Try::Wait { wait_s: 20 });
    assert!(counted(&tried(&file, anna.id, back.checked_add(SignedDuration::from_secs(30))?)?));
    // The sixth wrong one waits a minute.
    assert_eq!(tried(&file, anna.id, back.checked_add(SignedDuration::from_secs(31))?)?, Try::Wait { wait_s: 59 });
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn many_tries_at_once_are_no_more_than_there_are() -> Checked {
    let (scene, _, anna) = staffed().await?;
    let tries = (0..12).map(|n| {
        let (till, entry) = (scene.till.clone(), pin(&anna, &format!("00{n:02}")));
        tokio::spawn(async move { till.log_in(entry).await })
    });
    let mut looked_at = 0;
    for tried in tries.collect::<Vec<_>>() {
        match tried.await? {
            Err(TillError::WrongPin { .. }) => looked_at += 1,
            Err(TillError::PinWait { .. }) => {}
            other => return Err(format!("{other:?}").into()),
        }
    }
    assert_eq!(looked_at, 5);
    Ok(())
}

async fn refund(till: &Till, payment: protocol::Key, amount: i64) -> Result<crate::Operation, TillError> {
    let amount = Amount::new(amount).map_err(|error| TillError::InvalidAmount(error.to_string()))?;
    till.refund(Refund { intent_id: Uuid::now_v7(), payment, amount }).await
}

#[tokio::test]
async fn a_cashier_acts_up_to_the_limit_and_beyond_it_with_a_managers_pin() -> Checked {
    let (scene, boris, anna) = staffed().await?;
    let till = &scene.till;
    till.add_article("CAF-101", Some("20")).await?;
    let sale = till.open_sale().await?;
    assert_eq!(sale.total, 4_400);
    let payment = scene.by_card(&sale, 4_400).await?;
    scene.settle(&payment, State::Approved).await?;

    let over = refund(till, payment.key, 2_001).await;
    let said = "a refund of 20.01 is over Anna's limit of 20.00: it needs the PIN of Boris";
    assert!(matches!(&over, Err(TillError::NotAllowed(why)) if why == said), "{over:?}");
    refund(till, payment.key, 1_500).await?;
    // A cashier's own PIN raises no limit.
    let own = till.approved_by(pin(&anna, ANNA)).await?;
    assert!(matches!(refund(&own, payment.key, 2_001).await, Err(TillError::NotAllowed(_))));
    let wrong = till.approved_by(pin(&boris, ANNA)).await;
    assert!(matches!(wrong, Err(TillError::WrongPin { tries_left: 4, .. })));
    let approved = till.approved_by(pin(&boris, BORIS)).await?;
    let intent = Refund { intent_id: Uuid::now_v7(), payment: payment.key, amount: Amount::new(2_001)? };
    let first = approved.refund(intent).await?;
    // What is saved is given back to whoever clicks again, with no PIN.
    assert_eq!(till.refund(intent).await?.key, first.key);

    let entries = till.audit(Some(sale.id), 0, 100).await?;
    let refunds: Vec<_> = entries
        .iter()
        .filter(|entry| entry.what == "refund-begun")
        .map(|entry| (entry.who.as_str(), entry.person_id, entry.approved_by.as_deref(), entry.approver_id))
        .collect();
    let anna_alone = ("Anna", Some(anna.id), None, None);
    assert_eq!(refunds, [anna_alone, ("Anna", Some(anna.id), Some("Boris"), Some(boris.id))]);
    // An approval that was not needed is not named.
    refund(&by_boris(&scene, &boris).await?, payment.key, 100).await?;
    let last = till.audit(Some(sale.id), 0, 100).await?;
    assert_eq!(last.last().and_then(|entry| entry.approved_by.clone()), None);
    Ok(())
}

#[tokio::test]
async fn what_a_cashier_gives_away_over_the_limit_is_a_managers_too() -> Checked {
    let (scene, boris, _) = staffed().await?;
    let till = &scene.till;
    let sale = scene.sale().await?;
    let (line, percent) = (sale.lines[0].id, |text: &str| Asked::percent(text).map(Some));
    let refused = [
        till.set_price(line, 150).await.err(),
        till.discount_line(line, percent("10.001")?).await.err(),
        till.discount_line(line, Some(Asked::Amount(501))).await.err(),
        till.discount_sale(sale.id, percent("50")?).await.err(),
        till.discount_sale(sale.id, Some(Asked::Amount(501))).await.err(),
        till.remove_article("BAK-201").await.err(),
        till.import_catalogue(till.export_catalogue().await?, ImportMode::Merge, |_| ()).await.err(),
    ];
    assert!(refused.iter().all(|error| matches!(error, Some(TillError::NotAllowed(_)))), "{refused:?}");
    assert_eq!(till.sale(sale.id).await?, sale);
    till.discount_line(line, percent("10")?).await?;
    till.discount_sale(sale.id, Some(Asked::Amount(463))).await?;
    by_boris(&scene, &boris).await?.set_price(line, 150).await?;
    by_boris(&scene, &boris).await?.discount_sale(sale.id, percent("50")?).await?;
    // To take a change away needs nobody.
    till.set_price(line, 185).await?;
    till.discount_sale(sale.id, None).await?;
    let entries = till.audit(Some(sale.id), 0, 100).await?;
    let told: Vec<_> = entries.iter().map(|entry| (entry.what.as_str(), entry.approved_by.is_some())).collect();
    assert_eq!(
        told,
        [
            ("line-discounted", false),
            ("sale-discounted", false),
            ("price-changed", true),
            ("sale-discounted", true),
            ("price-changed", false),
            ("sale-discounted", false)
        ]
    );
    let none = Limit { allowed: false, amount_max: None, percent_max: None };
    let right = RoleRight { role: Role::Cashier, right: Right::DropSale, limit: none };
    by_boris(&scene, &boris).await?.set_right(right).await?;
    assert!(matches!(till.clear_sale().await, Err(TillError::NotAllowed(_))));
    assert!(matches!(till.drop_sale(sale.id).await, Err(TillError::NotAllowed(_))));
    by_boris(&scene, &boris).await?.drop_sale(sale.id).await?;
    Ok(())
}

#[tokio::test]
async fn a_manager_sets_how_far_a_right_goes() -> Checked {
    let (scene, boris, _) = staffed().await?;
    let (till, approved) = (&scene.till, by_boris(&scene, &boris).await?);
    let settings = Settings { shop_name: "Corner".into(), ..Settings::default() };
    assert!(matches!(till.save_settings(settings.clone()).await, Err(TillError::NotAllowed(_))));
    let limit = |allowed, amount_max, percent_max| Limit { allowed, amount_max, percent_max };
    let right = |role, right, limit| RoleRight { role, right, limit };
    let to_cashiers = right(Role::Cashier, Right::Settings, limit(true, None, None));
    assert!(matches!(till.set_right(to_cashiers).await, Err(TillError::NotAllowed(_))));
    approved.set_right(to_cashiers).await?;
    assert!(till.rights().await?.contains(&to_cashiers));
    till.check_right(Right::Discount, Measure::Percent(10_000)).await?;
    let over = till.check_right(Right::Discount, Measure::Percent(10_500)).await;
    let said = "a discount of 10.5 % is over Anna's limit of 10 %: it needs the PIN of Boris";
    assert!(matches!(&over, Err(TillError::NotAllowed(why)) if why == said), "{over:?}");
    assert!(matches!(approved.check_right(Right::People, Measure::Whole).await, Err(TillError::NotAllowed(_))));
    let approved = by_boris(&scene, &boris).await?;
    approved.check_right(Right::Discount, Measure::Percent(100_000)).await?;
    till.save_settings(settings).await?;
    for wrong in [
        right(Role::Manager, Right::People, limit(false, None, None)),
        right(Role::Cashier, Right::Settings, limit(true, Some(1), None)),
        right(Role::Cashier, Right::Refund, limit(true, None, Some(1))),
        right(Role::Cashier, Right::Refund, limit(false, Some(1), None)),
        right(Role::Cashier, Right::Refund, limit(true, Some(-1), None)),
        right(Role::Cashier, Right::Discount, limit(true, None, Some(100_001))),
    ] {
        assert!(matches!(approved.set_right(wrong).await, Err(TillError::InvalidSetting(_))), "{wrong:?}");
    }
    let entries = till.as_program("test").audit(None, 0, 100).await?;
    let changed = entries.iter().find(|entry| entry.what == "right-changed").ok_or("no entry")?;
    assert_eq!((changed.who.as_str(), changed.approved_by.as_deref()), ("Anna", Some("Boris")));
    assert_eq!(
        (&changed.details["before"]["allowed"], &changed.details["after"]["allowed"]),
        (&false.into(), &true.into())
    );
    assert_eq!(till.rights().await?.len(), 2 * Right::ALL.len());
    Ok(())
}

#[tokio::test]
async fn one_sets_ones_own_pin_with_the_old_one() -> Checked {
    let (scene, boris, anna) = staffed().await?;
    let till = &scene.till;
    assert!(matches!(till.set_pin(anna.id, "6350").await, Err(TillError::NotAllowed(_))));
    let own = till.approved_by(pin(&anna, ANNA)).await?;
    assert!(matches!(own.set_pin(boris.id, "6350").await, Err(TillError::NotAllowed(_))));
    own.set_pin(anna.id, "6350").await?;
    assert!(matches!(till.log_in(pin(&anna, ANNA)).await, Err(TillError::WrongPin { .. })));
    till.log_in(pin(&anna, "6350")).await?;
    let kept: String = scene.file()?.query_row("SELECT group_concat(pin) FROM people", [], |row| row.get(0))?;
    assert!(kept.starts_with("$argon2id$v=19$m=19456,t=2,p=1$") && !kept.contains("6350"), "{kept}");
    Ok(())
}

#[tokio::test]
async fn a_face_resolves_who_acts_and_a_program_does_not() -> Checked {
    let (scene, _, _) = staffed().await?;
    let file = scene.file()?;
    let program = Signature::of_program("command line", Timestamp::now());
    let allowed = crate::rights::allow(&file, &program, Right::Restore, Measure::Whole)?;
    assert_eq!((allowed.who(), allowed.person.is_none()), ("command line", true));
    Ok(())
}

#[tokio::test]
async fn an_approval_is_for_one_command_of_who_was_logged_in() -> Checked {
    let (scene, boris, anna) = staffed().await?;
    let till = &scene.till;
    let settings = |name: &str| Settings { shop_name: name.to_owned(), ..Settings::default() };
    let boss = by_boris(&scene, &boris).await?;
    // Asking uses nothing up, nor does what needs no approval, nor what is refused.
    boss.check_right(Right::Settings, Measure::Whole).await?;
    boss.add_article("BAK-201", None).await?;
    assert!(matches!(boss.save_settings(settings("")).await, Err(TillError::InvalidSetting(_))));
    boss.save_settings(settings("Corner")).await?;
    for kept in [&boss, &boss.clone(), &boss.acting_as("window")] {
        let refused = kept.save_settings(settings("Other")).await;
        assert!(matches!(&refused, Err(TillError::NotAllowed(why)) if why.contains("the PIN of Boris")), "{refused:?}");
    }
    // Another till handle has its own word, and two commands at once are not both approved.
    let boss = by_boris(&scene, &boris).await?;
    let (one, other) = tokio::join!(boss.save_settings(settings("One")), boss.save_settings(settings("Other")));
    assert_eq!(usize::from(one.is_ok()) + usize::from(other.is_ok()), 1, "{one:?} {other:?}");
    // What was approved for Anna is not for Clara.
    let boss = by_boris(&scene, &boris).await?;
    let clara = by_boris(&scene, &boris).await?.add_person(new("Clara", Role::Cashier, "5172")).await?;
    till.log_in(pin(&clara, "5172")).await?;
    assert!(matches!(boss.save_settings(settings("Clara's")).await, Err(TillError::NotAllowed(_))));
    till.log_in(pin(&anna, ANNA)).await?;
    boss.save_settings(settings("Anna's")).await?;
    Ok(())
}

#[tokio::test]
async fn a_copy_is_made_by_who_may_restore_one() -> Checked {
    let (scene, boris, _) = staffed().await?;
    let till = &scene.till;
    let copy = |name: &str| scene.dir.path().join(name);
    let refused = till.backup(&copy("a"), |_| ()).await;
    assert!(matches!(refused, Err(TillError::NotAllowed(_))), "{refused:?}");
    assert!(!copy("a").exists());
    till.approved_by(pin(&boris, BORIS)).await?.backup(&copy("b"), |_| ()).await?;
    till.as_program("command line").backup(&copy("c"), |_| ()).await?;
    till.lock().await?;
    assert!(matches!(till.backup(&copy("d"), |_| ()).await, Err(TillError::Locked)));
    Ok(())
}
