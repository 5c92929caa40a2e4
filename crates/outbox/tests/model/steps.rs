//! What can happen, drawn at random: the reference machine that proptest makes its sequences from.

use outbox::answer::Lost;
use proptest::prelude::*;
use proptest_state_machine::ReferenceStateMachine;

/// The card that the bank refuses.
pub(crate) const DECLINES: &str = "tok_insufficient_funds";

/// How the network garbles an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Garble {
    Html,
    BadGateway,
    HalfOfIt,
    AnotherAmount,
    AnotherCurrency,
    AnotherPayment,
    AnotherKey,
    AnotherKeyInTheHeader,
    NoContentType,
    Redirect,
    AnotherStatus,
}

/// How an answer, or its absence, comes about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// The bank does what its contract says.
    Properly,
    /// No connection.
    Refused,
    /// No answer: reset, torn or too late; the bank may have it.
    Lost {
        arrived: bool,
        how: Lost,
    },
    Garbled(Garble),
    /// The bank is at it, for as long as it says.
    OnAndOn {
        seconds: i64,
    },
    /// The bank asks all to wait.
    Busy {
        limited: bool,
        seconds: i64,
        arrived: bool,
    },
    Failed {
        arrived: bool,
    },
    NotAllowed {
        forbidden: bool,
    },
    /// The bank's people must look.
    ForPeople,
    /// The bank refuses the request, before it claims the key.
    NotTaken {
        status: u16,
    },
    /// The network doubles the request.
    Twice,
    /// The till's own handling fails.
    Fault,
}

/// One thing that happens.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Pay {
        amount: i64,
        declines: bool,
        lane: u8,
        offline: bool,
    },
    Again {
        of: usize,
        with_another_amount: bool,
    },
    Replace {
        of: usize,
        amount: i64,
    },
    Refund {
        of: usize,
        percent: i64,
    },
    Cancel {
        of: usize,
        write_off: bool,
    },
    /// The one whose call waits.
    CancelInFlight {
        nth: usize,
        then: Option<How>,
    },
    AcceptOffline {
        of: usize,
    },
    /// The bank answers one of those that wait.
    Answer {
        nth: usize,
        how: How,
    },
    /// The bank answers the next ones, each as its contract says.
    Flow {
        calls: usize,
    },
    /// A request that came before comes again, late; nobody waits for the answer.
    LateCopy {
        nth: usize,
    },
    /// A copy of the till's file sends, or cancels, what it has.
    CopySends {
        of: usize,
    },
    CopyCancels {
        of: usize,
    },
    /// From now on the till\'s own handling of it fails.
    Poison {
        of: usize,
    },
    Pass {
        ms: u64,
    },
    PassHours {
        hours: u64,
    },
    Suspend {
        seconds: u64,
    },
    SetClock {
        ms: i64,
    },
    /// The process dies, and starts again; with an answer that it never read.
    Kill {
        answered: Option<How>,
        clock_ms: i64,
    },
    /// It dies again and again, each time with its calls on their way once more.
    KillAgain {
        times: u32,
    },
    /// The process dies at a commit of its own: the first from now on, or a later one.
    DieAtCommit {
        nth: u32,
    },
    Stop,
    /// It ends in good order, and starts with the other address.
    Move,
    CheckNow,
    NetworkChanged,
    /// The two banks change places; nobody is told.
    SwapBanks,
    /// The till is given another secret, or the other address.
    ChangeBank {
        address: usize,
    },
}

impl Step {
    /// A wake of any kind but a new operation or a due time.
    pub(crate) const fn makes_all_due(&self) -> bool {
        match self {
            Step::Kill { .. } | Step::Stop | Step::Move | Step::CheckNow | Step::NetworkChanged => true,
            Step::ChangeBank { .. } => true,
            Step::Suspend { seconds } => *seconds > 2,
            _ => false,
        }
    }
}

/// What was asked for so far.
#[derive(Clone, Debug)]
pub(crate) struct SoFar {
    /// The bank that the till begins with.
    pub(crate) bank: usize,
    /// How many operations were asked for.
    pub(crate) operations: usize,
}

/// The sequences.
pub(crate) struct Steps;

const TEN_YEARS_MS: i64 = 10 * 365 * 24 * 3_600_000;

fn wait_s() -> impl Strategy<Value = i64> {
    prop_oneof![4 => 0..5_i64, 2 => 5..120_i64, 1 => Just(900_i64), 1 => Just(1_000_000_000_i64), 1 => Just(-5_i64)]
}

fn how() -> BoxedStrategy<How> {
    let lost = prop_oneof![Just(Lost::Reset), Just(Lost::Torn), Just(Lost::TimeOut)];
    let garble = prop_oneof![
        Just(Garble::Html),
        Just(Garble::BadGateway),
        Just(Garble::HalfOfIt),
        Just(Garble::AnotherAmount),
        Just(Garble::AnotherCurrency),
        Just(Garble::AnotherPayment),
        Just(Garble::AnotherKey),
        Just(Garble::AnotherKeyInTheHeader),
        Just(Garble::NoContentType),
        Just(Garble::Redirect),
        Just(Garble::AnotherStatus),
    ];
    let status = prop_oneof![Just(400_u16), Just(404), Just(413), Just(415), Just(422)];
    prop_oneof![
        10 => Just(How::Properly),
        5 => Just(How::Refused),
        6 => (any::<bool>(), lost).prop_map(|(arrived, how)| How::Lost { arrived, how }),
        4 => garble.prop_map(How::Garbled),
        6 => prop_oneof![8 => 0..6_i64, 2 => 20..300_i64, 1 => Just(1_000_000_000_i64)].prop_map(|seconds| How::OnAndOn { seconds }),
        3 => (any::<bool>(), wait_s(), any::<bool>()).prop_map(|(limited, seconds, arrived)| How::Busy { limited, seconds, arrived }),
        2 => any::<bool>().prop_map(|arrived| How::Failed { arrived }),
        1 => any::<bool>().prop_map(|forbidden| How::NotAllowed { forbidden }),
        3 => Just(How::ForPeople),
        3 => status.prop_map(|status| How::NotTaken { status }),
        2 => Just(How::Twice),
        2 => Just(How::Fault),
    ]
    .boxed()
}

fn clock_ms() -> impl Strategy<Value = i64> {
    prop_oneof![3 => -TEN_YEARS_MS..TEN_YEARS_MS, 2 => -100_000_000..100_000_000_i64, 1 => -20_000..20_000_i64]
}

impl ReferenceStateMachine for Steps {
    type State = SoFar;
    type Transition = Step;

    fn init_state() -> BoxedStrategy<SoFar> {
        (0..2_usize).prop_map(|bank| SoFar { bank, operations: 0 }).boxed()
    }

    fn transitions(SoFar { operations: saved, .. }: &SoFar) -> BoxedStrategy<Step> {
        let amount = || 100..5_000_i64;
        let pay = (amount(), prop::bool::weighted(0.2), 0..5_u8, prop::bool::weighted(0.1))
            .prop_map(|(amount, declines, lane, offline)| Step::Pay { amount, declines, lane, offline });
        if *saved == 0 {
            return pay.boxed();
        }
        let of = || 0..*saved;
        let saving = prop_oneof![
            6 => pay,
            2 => (of(), any::<bool>()).prop_map(|(of, with_another_amount)| Step::Again { of, with_another_amount }),
            2 => (of(), amount()).prop_map(|(of, amount)| Step::Replace { of, amount }),
            4 => (of(), prop_oneof![Just(20_i64), Just(50), Just(100), Just(120)]).prop_map(|(of, percent)| Step::Refund { of, percent }),
            6 => (of(), prop::bool::weighted(0.3)).prop_map(|(of, write_off)| Step::Cancel { of, write_off }),
            2 => of().prop_map(|of| Step::AcceptOffline { of }),
        ];
        let then = prop_oneof![
            2 => Just(None),
            3 => Just(Some(How::Refused)),
            4 => Just(Some(How::OnAndOn { seconds: 1 })),
            1 => how().prop_map(Some),
        ];
        let answering = prop_oneof![
            8 => (0..4_usize, how()).prop_map(|(nth, how)| Step::Answer { nth, how }),
            4 => (1..8_usize).prop_map(|calls| Step::Flow { calls }),
            4 => (0..4_usize, then).prop_map(|(nth, then)| Step::CancelInFlight { nth, then }),
            1 => (0..20_usize).prop_map(|nth| Step::LateCopy { nth }),
            1 => of().prop_map(|of| Step::CopySends { of }),
            1 => of().prop_map(|of| Step::CopyCancels { of }),
            1 => of().prop_map(|of| Step::Poison { of }),
        ];
        let passing = prop_oneof![
            6 => (10..4_000_u64).prop_map(|ms| Step::Pass { ms }),
            3 => (4_000..60_000_u64).prop_map(|ms| Step::Pass { ms }),
            1 => (1..40_u64).prop_map(|hours| Step::PassHours { hours }),
            1 => prop_oneof![1..100_u64, 3_600..200_000_u64].prop_map(|seconds| Step::Suspend { seconds }),
            1 => clock_ms().prop_map(|ms| Step::SetClock { ms }),
            2 => Just(Step::CheckNow),
            1 => Just(Step::NetworkChanged),
        ];
        let killed_with = prop_oneof![Just(None), how().prop_map(Some)];
        let down = prop_oneof![5 => Just(0_i64), 1 => clock_ms()];
        let breaking = prop_oneof![
            3 => (killed_with, down).prop_map(|(answered, clock_ms)| Step::Kill { answered, clock_ms }),
            1 => (2..4_u32).prop_map(|times| Step::KillAgain { times }),
            3 => (1..5_u32).prop_map(|nth| Step::DieAtCommit { nth }),
            1 => Just(Step::Stop),
            2 => Just(Step::Move),
            1 => Just(Step::SwapBanks),
            2 => (0..2_usize).prop_map(|address| Step::ChangeBank { address }),
        ];
        prop_oneof![3 => saving, 8 => answering, 4 => passing, 1 => breaking].boxed()
    }

    fn apply(mut asked: SoFar, step: &Step) -> SoFar {
        asked.operations += usize::from(matches!(step, Step::Pay { .. } | Step::Replace { .. } | Step::Refund { .. }));
        asked
    }

    fn preconditions(SoFar { operations: saved, .. }: &SoFar, step: &Step) -> bool {
        match step {
            Step::Again { of, .. }
            | Step::Replace { of, .. }
            | Step::Refund { of, .. }
            | Step::Cancel { of, .. }
            | Step::AcceptOffline { of }
            | Step::CopySends { of }
            | Step::CopyCancels { of }
            | Step::Poison { of } => of < saved,
            _ => true,
        }
    }
}
