//! How often the bank is asked: by figures that the rules give, over an hour or a second.

use outbox::answer::{Lost, Reading};
use outbox::decide::{Event, Wake, Which};

use crate::world::{Checked, Pending, World};

/// Until then, whatever was begun ends in turn as `end` says, and time passes only where nothing is under way.
fn play(world: &mut World, end_ms: i64, mut end: impl FnMut(&mut World, Pending) -> Checked) -> Checked {
    world.faults = false;
    world.feed(Event::Tick)?;
    while world.true_ms < end_ms {
        if world.pending.is_empty() {
            world.pass_time()?;
        } else {
            let pending = world.pending.remove(0);
            end(world, pending)?;
        }
    }
    Ok(())
}

fn away() -> Event {
    Event::Introduced(Err(Reading::NoConnection("refused".to_owned())))
}

#[test]
fn with_ten_thousand_waiting_an_outage_costs_one_probe_at_a_time() {
    let mut world = World::new(1, 10).unwrap();
    let mut probes = 0;
    let end_ms = world.true_ms + 3_600_000;
    let played = play(&mut world, end_ms, |world, pending| match pending {
        Pending::Introduction => {
            probes += 1;
            world.feed(away())
        }
        pending => world.end(pending),
    });
    played.unwrap();
    assert_eq!(world.sends, 0);
    // One in 15 s on average, once the bound has come to its 30 s.
    assert!((200..=290).contains(&probes), "{probes} probes in an hour");
}

#[test]
fn nothing_is_sent_before_the_bank_has_said_who_it_is() {
    let mut world = World::new(1, 1).unwrap();
    world.feed(Event::Tick).unwrap();
    assert!(world.pending.iter().any(|pending| matches!(pending, Pending::Introduction)));
    assert!(!world.pending.iter().any(|pending| matches!(pending, Pending::Scan { .. } | Pending::Begin { .. })));
}

#[test]
fn a_bank_that_fails_is_asked_ever_more_seldom_for_the_same_operation() {
    let mut world = World::new(1, 1).unwrap();
    let end_ms = world.true_ms + 3_600_000;
    let played = play(&mut world, end_ms, |world, pending| match pending {
        Pending::Call { key, .. } => world.feed(Event::Answered(key, Reading::trouble("internal"))),
        pending => world.end(pending),
    });
    played.unwrap();
    assert!((200..=290).contains(&world.sends), "{} in an hour", world.sends);
}

#[test]
fn whoever_clicks_ten_times_a_second_has_a_bank_that_is_away_asked_twice() {
    let mut world = World::new(1, 3).unwrap();
    world.faults = false;
    let mut probes = 0;
    for _ in 0..600 {
        world.feed(Event::Wake(Wake::CheckNow)).unwrap();
        while let Some(pending) = world.pending.pop() {
            match pending {
                Pending::Introduction => {
                    probes += 1;
                    world.feed(away()).unwrap();
                }
                pending => world.end(pending).unwrap(),
            }
        }
        world.true_ms += 100;
    }
    // The first few come sooner, by their own back-off.
    assert!((60..=126).contains(&probes), "{probes} probes in a minute");
}

#[test]
fn after_an_outage_twenty_go_in_the_first_second_and_twice_as_many_in_each_that_follows() {
    let mut world = World::new(1, 600).unwrap();
    let mut is_back_ms = None;
    let mut sent = [0_u32; 6];
    let end_ms = world.true_ms + 3_600_000;
    let played = play(&mut world, end_ms, |world, pending| match pending {
        Pending::Introduction if is_back_ms.is_none() && world.true_ms < end_ms - 3_500_000 => world.feed(away()),
        Pending::Introduction => {
            is_back_ms = Some(world.true_ms);
            world.end(pending)
        }
        Pending::Call { .. } => {
            let second = usize::try_from((world.true_ms - is_back_ms.unwrap_or(0)) / 1_000).unwrap();
            sent[second.min(5)] += 1;
            world.end(pending)
        }
        pending => world.end(pending),
    });
    played.unwrap();
    // What a millisecond more or less makes of each.
    for (second, most) in [21, 41, 81, 161, 321].into_iter().enumerate() {
        assert!(sent[second] <= most, "{sent:?}");
    }
    assert!(sent[..4].iter().sum::<u32>() >= 290 && world.open() == 0, "{sent:?}");
}

#[test]
fn a_bank_that_says_who_it_is_and_completes_nothing_is_asked_ever_more_seldom() {
    let mut world = World::new(1, 200).unwrap();
    let mut probes = 0;
    let end_ms = world.true_ms + 3_600_000;
    let played = play(&mut world, end_ms, |world, pending| match pending {
        Pending::Call { key, .. } => {
            world.in_the_way = true;
            world.feed(Event::Answered(key, Reading::NoAnswer { how: Lost::Torn, detail: String::new() }))
        }
        pending => {
            probes += u32::from(matches!(pending, Pending::Introduction));
            world.end(pending)
        }
    });
    played.unwrap();
    assert!((100..=290).contains(&probes), "{probes} probes in an hour");
}

#[test]
fn what_completes_makes_the_next_outage_a_new_one() {
    let mut world = World::new(1, 8).unwrap();
    world.faults = false;
    let outage = |world: &mut World| {
        // As after an address that was entered anew: it is asked at once, and away for ten minutes.
        world.in_the_way = true;
        world.feed(Event::BankChanged { same_address: true })?;
        let (begin_ms, mut probes) = (world.true_ms, Vec::new());
        play(world, begin_ms + 600_000, |world, pending| match pending {
            Pending::Introduction if world.true_ms < begin_ms + 500_000 => {
                probes.push(world.true_ms - begin_ms);
                world.feed(away())
            }
            pending => world.end(pending),
        })?;
        Ok::<_, proptest::test_runner::TestCaseError>(probes)
    };
    let first = outage(&mut world).unwrap();
    assert_eq!(world.open(), 0, "all has completed meanwhile");
    let second = outage(&mut world).unwrap();
    for probes in [first, second] {
        let soon = probes.iter().filter(|at| **at <= 7_500).count();
        assert!(soon >= 4, "the first four failures cost 7.5 s at most: {probes:?}");
    }
}

#[test]
fn what_is_saved_while_the_file_is_scanned_is_scanned_for_at_once() {
    let mut world = World::new(1, 0).unwrap();
    let begin_ms = world.true_ms;
    play(&mut world, begin_ms + 1, |world, pending| world.end(pending)).unwrap();
    while !world.pending.iter().any(|pending| matches!(pending, Pending::Scan { .. })) {
        world.pass_time().unwrap();
    }
    let nothing = Event::Found { rows: Vec::new(), next_due_at: None, other_bank: None };
    world.pending.clear();
    world.feed(nothing.clone()).unwrap();
    assert!(world.pending.is_empty(), "with nobody's word it is left alone for a slice: {:?}", world.pending);
    while world.pending.is_empty() {
        world.pass_time().unwrap();
    }
    world.pending.clear();
    world.feed(Event::Wake(Wake::NewOperation)).unwrap();
    assert!(world.pending.is_empty(), "one scan at a time: {:?}", world.pending);
    world.feed(nothing).unwrap();
    assert!(matches!(world.pending[..], [Pending::Scan { .. }]), "{:?}", world.pending);
}

#[test]
fn what_could_not_be_made_due_is_made_due_again_and_moved_as_far() {
    let mut world = World::new(1, 1).unwrap();
    let by = jiff::SignedDuration::from_hours(1);
    world.feed(Event::Tick).unwrap();
    world.feed(Event::ClockJumped { by }).unwrap();
    for _ in 0..3 {
        let at = |world: &World| world.pending.iter().position(|pending| matches!(pending, Pending::MakeDue(_)));
        let until_ms = world.true_ms + 30_000;
        while at(&world).is_none() && world.true_ms < until_ms {
            world.pass_time().unwrap();
        }
        let Some(Pending::MakeDue(make_due)) = at(&world).map(|at| world.pending.swap_remove(at)) else {
            panic!("nothing is made due any more: {:?}", world.pending)
        };
        assert_eq!((make_due.which, make_due.shift), (Which::All, by));
        world.feed(Event::MakeDueFailed(make_due)).unwrap();
    }
}
