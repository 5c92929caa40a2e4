//! The real outbox, over a real file and in a runtime that dies at any moment, against a plain model of what must be: a bank that
//! answers anything, clocks that jump, copies of the file, banks that change places. In the end all heals, and all must settle.
//!
//! `MODEL_SEED=… cargo test -p outbox --test model` runs the same cases again.

mod bank;
mod checking;
mod clock;
mod commands;
mod expected;
mod healing;
mod network;
mod passing;
mod process;
mod rare;
mod steps;
mod wire;
mod world;

use std::sync::{Mutex, MutexGuard, PoisonError};

use outbox::answer::Lost;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest};

use crate::steps::{How, SoFar, Step, Steps};
use crate::world::World;

const CASES: u32 = 200;

/// What is rarest comes some ten times in a round, so that one in ten thousand may miss it. The next one is only played then; that
/// all of these miss the same is no chance any more.
const ROUNDS_MAX: u64 = 4;

struct Outbox;

impl StateMachineTest for Outbox {
    type SystemUnderTest = World;
    type Reference = Steps;

    fn init_test(asked: &SoFar) -> World {
        let world = World::new(asked.bank);
        assert!(world.is_ok(), "{:?}", world.err());
        world.unwrap_or_else(|_| unreachable!("it was just looked at"))
    }

    fn apply(mut world: World, _: &SoFar, step: Step) -> World {
        let done = world.step(&step);
        assert!(done.is_ok(), "{step:?}: {:?}", done.err());
        world
    }

    fn teardown(mut world: World, _: SoFar) {
        let healed = world.heal();
        assert!(healed.is_ok(), "in the end: {:?}", healed.err());
    }
}

fn config() -> Config {
    Config {
        cases: CASES,
        failure_persistence: None,
        max_shrink_iters: 3_000,
        max_shrink_time: 240_000,
        ..Config::default()
    }
}

/// One half of the run.
fn run(seed: u64) -> Result<(), String> {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(config(), rng);
    let ran = runner.run(&Steps::sequential_strategy(5..70), |(saved, steps, seen)| {
        Outbox::test_sequential(config(), saved, steps, seen);
        Ok(())
    });
    ran.map_err(|error| format!("MODEL_SEED={seed}: {error}"))
}

/// What is counted is counted for one test at a time.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn whatever_happens_the_file_is_what_the_rules_say_and_in_the_end_all_is_settled() {
    let given = std::env::var("MODEL_SEED").ok();
    let seed = given.as_ref().map_or_else(rand::random, |seed| seed.parse::<u64>().unwrap());
    println!("MODEL_SEED={seed}");
    let _alone = alone();
    let before = rare::counts();
    let begin = std::time::Instant::now();
    let mut cases = 0;
    for round in 0..ROUNDS_MAX {
        let seeds = [0, 1].map(|half| seed.wrapping_add(2 * round + half));
        let ran: Vec<_> = std::thread::scope(|scope| {
            let halves: Vec<_> = seeds.map(|seed| (seed, scope.spawn(move || run(seed)))).into_iter().collect();
            let ended = |(seed, half): (u64, std::thread::ScopedJoinHandle<'_, _>)| {
                half.join().unwrap_or_else(|_| Err(format!("MODEL_SEED={seed}: it broke off")))
            };
            halves.into_iter().map(ended).collect()
        });
        cases += 2 * CASES;
        let failed: Vec<_> = ran.into_iter().filter_map(Result::err).collect();
        assert!(failed.is_empty(), "{}", failed.join("\n"));
        if reached_since(&before).all(|(_, count)| count > 0) {
            break;
        }
    }
    for (what, count) in reached_since(&before) {
        println!("{count:6} × {what}");
    }
    println!("{cases} cases in {:.1} s", begin.elapsed().as_secs_f64());
    let never: Vec<_> = reached_since(&before).filter(|(_, count)| *count == 0).map(|(what, _)| what).collect();
    assert!(never.is_empty(), "MODEL_SEED={seed} never came to this: {never:?}");
}

fn reached_since(before: &[(&'static str, u32)]) -> impl Iterator<Item = (&'static str, u32)> {
    rare::counts().into_iter().zip(before).map(|((what, after), (_, before))| (what, after - before))
}

/// What a sequence asks of the banks, and what comes of it, and when.
fn played(asked: &SoFar, steps: &[Step]) -> anyhow::Result<Vec<(i64, bank::Asked, Option<bank::Came>)>> {
    let mut world = World::new(asked.bank)?;
    for step in steps {
        world.step(step).map_err(|error| error.context(format!("{step:?}")))?;
    }
    world.heal()?;
    Ok(std::mem::take(&mut world.played))
}

/// A seed is worth printing only where it plays the same again.
#[test]
fn the_same_sequence_asks_the_same_at_the_same_moments() {
    let _alone = alone();
    let mut runner = TestRunner::new_with_rng(config(), TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]));
    let mut asked_for = 0;
    for _ in 0..10 {
        let (asked, steps, _) = Steps::sequential_strategy(30..60).new_tree(&mut runner).unwrap().current();
        let first = played(&asked, &steps).unwrap();
        asked_for += first.len();
        let second = played(&asked, &steps).unwrap();
        let differ = first.iter().zip(&second).position(|(a, b)| a != b);
        let from = differ.unwrap_or(first.len().min(second.len()));
        let tails = (&first[from..], &second[from..]);
        assert!(first == second, "they part at call {from}: {tails:?}\n{steps:?}");
    }
    assert!(asked_for > 100, "{asked_for} calls are not much to compare");
}

/// Sequences that were faults of the outbox when they were found.
fn plays(bank: usize, steps: &[Step]) {
    let _alone = alone();
    let asked = played(&SoFar { bank, operations: 0 }, steps);
    assert!(asked.is_ok(), "{:?}", asked.err());
}

const fn pay(lane: u8) -> Step {
    Step::Pay { amount: 100, declines: false, lane, offline: false }
}

#[test]
fn a_refund_goes_to_the_bank_of_its_payment() {
    let lost = Step::Answer { nth: 0, how: How::Lost { arrived: true, how: Lost::Reset } };
    let [paid, moved] = [Step::Flow { calls: 2 }, Step::ChangeBank { address: 1 }];
    plays(0, &[pay(0), paid, moved, Step::Flow { calls: 1 }, Step::Refund { of: 0, percent: 20 }, lost]);
    // Asked for while the payment is open, and ready once another bank is asked.
    let [asked, moved] = [Step::Refund { of: 0, percent: 20 }, Step::ChangeBank { address: 1 }];
    plays(
        0,
        &[
            pay(0),
            asked,
            Step::Flow { calls: 1 },
            moved,
            Step::Answer { nth: 0, how: How::Properly },
            Step::Flow { calls: 3 },
        ],
    );
}

#[test]
fn what_was_saved_first_is_sent_first() {
    let _alone = alone();
    let mut steps: Vec<_> = (0..8).map(pay).collect();
    steps.push(Step::Flow { calls: 12 });
    let played = played(&SoFar { bank: 0, operations: 0 }, &steps).unwrap();
    let sent: Vec<_> =
        played.into_iter().filter_map(|(_, asked, came)| asked.key().filter(|_| came.is_none())).collect();
    assert_eq!(sent.len(), 8, "{sent:?}");
    assert!(sent.is_sorted(), "{sent:?}");
}

#[test]
fn what_one_address_asks_to_wait_slows_nobody_at_the_other() {
    let busy = Step::Answer { nth: 0, how: How::Busy { limited: false, seconds: 47, arrived: false } };
    plays(0, &[pay(0), pay(0), Step::Pass { ms: 10_500 }, busy, Step::ChangeBank { address: 1 }]);
}

#[test]
fn a_wish_that_meets_a_call_that_never_left_is_granted_at_once() {
    let refused = Step::Answer { nth: 0, how: How::Refused };
    let wish = Step::Cancel { of: 0, write_off: false };
    plays(0, &[pay(0), Step::Flow { calls: 1 }, wish, refused, Step::Refund { of: 0, percent: 100 }]);
}

#[test]
fn a_look_up_of_a_dead_owner_permits_no_sending() {
    let lost = Step::Answer { nth: 0, how: How::Lost { arrived: false, how: Lost::Reset } };
    let (day, dies) = (Step::Suspend { seconds: 90_000 }, Step::DieAtCommit { nth: 1 });
    let steps = [pay(0), Step::Flow { calls: 1 }, lost, day, Step::Flow { calls: 1 }, dies, Step::Flow { calls: 1 }];
    plays(0, &steps);
}

#[test]
fn a_look_up_permits_one_sending() {
    let lost = Step::Answer { nth: 0, how: How::Lost { arrived: false, how: Lost::Reset } };
    let (day, next) = (Step::Suspend { seconds: 90_000 }, Step::Flow { calls: 1 });
    let (looked, later) = (Step::Flow { calls: 2 }, Step::Pass { ms: 2_000 });
    plays(0, &[pay(0), next.clone(), lost.clone(), day, looked, lost, later, next.clone(), next]);
}

#[test]
fn what_the_new_address_asks_to_wait_holds_a_new_start_there_too() {
    let busy = Step::Answer { nth: 0, how: How::Busy { limited: false, seconds: 300, arrived: false } };
    let killed = Step::Kill { answered: None, clock_ms: 0 };
    plays(
        0,
        &[pay(0), Step::Flow { calls: 1 }, Step::ChangeBank { address: 1 }, busy, killed, Step::Pass { ms: 4_000 }],
    );
}

#[test]
fn a_clock_that_is_set_back_makes_nothing_young() {
    let lost = Step::Answer { nth: 0, how: How::Lost { arrived: true, how: Lost::Reset } };
    let (back, day) = (Step::SetClock { ms: -864_000_000 }, Step::PassHours { hours: 28 });
    let steps = [pay(0), Step::Flow { calls: 1 }, lost, back, day, Step::Flow { calls: 1 }, Step::Flow { calls: 2 }];
    plays(0, &steps);
}

#[test]
fn two_of_a_sale_that_died_between_counting_and_calling_are_still_one_each() {
    let again = Step::DieAtCommit { nth: 1 };
    plays(0, &[pay(0), pay(0), again.clone(), Step::Flow { calls: 1 }, again, Step::Flow { calls: 3 }]);
}
