//! What is sold in which weather: of every kind enough, in an order that chance gives.

use rand::{
    Rng as _,
    rngs::StdRng,
    seq::{IndexedRandom as _, SliceRandom as _},
};

/// What is rung up, and what is done to it before Pay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Goods {
    One,
    Many,
    /// The same article twice, which is one line.
    Again,
    Weighed,
    OpenPrice,
    /// An article without a price, at just this one.
    At(i64),
    PriceLabel,
    WeightLabel,
    Noted,
    LineOff,
    /// More than a cashier may.
    LineOffApproved,
    SaleOff,
    OtherPrice,
    Tip,
    /// Parked, resumed, and something more rung up.
    Parked,
    /// A line removed by mistake, and taken back.
    Undone,
    /// Three of one article less a tenth, and another article: no third of it is whole.
    Thirds,
}

/// How it is paid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pay {
    CashExact,
    CashChange,
    Card,
    CardThenCash,
    CashThenCard,
    TwoCards,
    ThreeCards,
    DeclinedThenCard,
    DeclinedThenCash,
    /// With the bank away: taken offline, by a manager where it is over a limit.
    Offline,
    /// With the bank away: the card was never sent, and cash takes its place.
    CashInstead,
    /// Taken offline, declined late, and collected again.
    LateCollected,
    /// Taken offline, declined late, and written off.
    LateWrittenOff,
    /// The bank charges and says nothing: taken offline meanwhile.
    HungOffline,
    /// The same: the sale is put aside, and completes by itself.
    HungHeld,
    /// Not at all.
    Dropped,
}

/// What is wrong with the bank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weather {
    Fair,
    /// It takes no connection.
    Away,
    /// It charges, and drops the connection.
    Drops,
    /// It charges, and says 500.
    Fails,
    /// It says 429.
    Limits,
    /// It charges, and says nothing.
    Hangs,
    /// It charges, and half of its answer comes.
    Tears,
    /// Its gateway charges, and drops the connection or says 500.
    Behind,
}

/// A part of the day with one weather.
pub(crate) struct Turn {
    pub(crate) weather: Weather,
    pub(crate) sales: Vec<(Goods, Pay)>,
}

const GOODS: [Goods; 16] = [
    Goods::One,
    Goods::Many,
    Goods::Again,
    Goods::Weighed,
    Goods::OpenPrice,
    Goods::PriceLabel,
    Goods::WeightLabel,
    Goods::Noted,
    Goods::LineOff,
    Goods::LineOffApproved,
    Goods::SaleOff,
    Goods::OtherPrice,
    Goods::Tip,
    Goods::Parked,
    Goods::Undone,
    Goods::Thirds,
];
const ANY: [Pay; 9] = [
    Pay::CashExact,
    Pay::CashChange,
    Pay::Card,
    Pay::CardThenCash,
    Pay::CashThenCard,
    Pay::TwoCards,
    Pay::ThreeCards,
    Pay::DeclinedThenCard,
    Pay::DeclinedThenCash,
];
/// How goods come back later: each of these must be there to come back.
const TO_COME_BACK: [(Goods, Pay); 8] = [
    (Goods::Tip, Pay::CashExact),
    (Goods::Tip, Pay::Card),
    (Goods::Many, Pay::CardThenCash),
    (Goods::Many, Pay::TwoCards),
    (Goods::Many, Pay::CashChange),
    (Goods::Thirds, Pay::Card),
    (Goods::Thirds, Pay::CashExact),
    (Goods::Weighed, Pay::Card),
];

/// Two hundred sales, and some that are dropped.
pub(crate) fn whole_day(chance: &mut StdRng) -> Vec<Turn> {
    let away = [
        (Goods::At(5_000), Pay::Offline),
        (Goods::At(5_001), Pay::Offline),
        (Goods::One, Pay::LateCollected),
        (Goods::Noted, Pay::LateWrittenOff),
        (Goods::One, Pay::CashInstead),
        (Goods::Weighed, Pay::CashInstead),
    ];
    let mut away = Vec::from(away);
    away.extend((0..16).map(|at| (any_goods(chance), if at % 2 == 0 { Pay::Offline } else { Pay::CashChange })));
    let hung = [(Goods::One, Pay::HungOffline), (Goods::One, Pay::HungHeld)];
    let hung = hung.into_iter().chain((0..12).map(|_| any(chance))).collect();
    let every_goods = GOODS.into_iter().zip(ANY.into_iter().cycle());
    let mut turns = vec![
        Turn { weather: Weather::Fair, sales: TO_COME_BACK.into_iter().chain(every_goods).collect() },
        Turn { weather: Weather::Away, sales: away },
        Turn { weather: Weather::Hangs, sales: hung },
    ];
    let rough = [(Weather::Drops, 26), (Weather::Fails, 26), (Weather::Limits, 16), (Weather::Tears, 26)];
    for (weather, count) in rough.into_iter().chain([(Weather::Behind, 22), (Weather::Fair, 24)]) {
        turns.push(Turn { weather, sales: (0..count).map(|_| any(chance)).collect() });
    }
    for turn in &mut turns {
        turn.sales.shuffle(chance);
        let at = chance.random_range(0..=turn.sales.len());
        turn.sales.insert(at, (Goods::Many, Pay::Dropped));
    }
    turns
}

/// A few sales in fair weather.
pub(crate) fn short_day(chance: &mut StdRng) -> Vec<Turn> {
    vec![Turn { weather: Weather::Fair, sales: (0..12).map(|_| any(chance)).collect() }]
}

fn any_goods(chance: &mut StdRng) -> Goods {
    GOODS.choose(chance).copied().unwrap_or(Goods::One)
}

fn any(chance: &mut StdRng) -> (Goods, Pay) {
    (any_goods(chance), ANY.choose(chance).copied().unwrap_or(Pay::Card))
}
