//! The list of rules, and which of them takes a pass.

use crate::lab::tamper::Tamper;
use protocol::Key;
use rand::{Rng, SeedableRng, rngs::StdRng};
use serde::{Deserialize, Serialize};
use std::sync::{Mutex, MutexGuard, PoisonError};
use utoipa::ToSchema;

/// Where a request can be met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Point {
    /// Decoded and valid, and not claimed.
    Received,
    /// At the bank: claimed, and not sent to the gateway.
    Claimed,
    /// At the bank: the gateway's answer is in hand and not saved.
    GatewayAnswered,
    /// At the bank: saved, and not answered. A replay passes here too.
    Saved,
    /// At the gateway: committed, and not answered.
    Committed,
}

impl Point {
    /// The points of the bank.
    pub(crate) const BANK: &'static [Self] = &[Self::Received, Self::Claimed, Self::GatewayAnswered, Self::Saved];
    /// The points of the gateway.
    pub(crate) const GATEWAY: &'static [Self] = &[Self::Received, Self::Committed];
}

/// What a rule does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Action)]
pub(crate) enum Do {
    Delay,
    Hang,
    Drop,
    Status,
    Truncate,
    Garbage,
    Foreign,
    Abort,
}

/// A rule as it is sent.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rule {
    at: Point,
    #[serde(rename = "do")]
    action: Do,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retry_after: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    times: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    skip: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<Key>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    probability: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
}

/// A rule as it is shown.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Shown {
    #[serde(flatten)]
    rule: Rule,
    hits: u64,
}

/// What happens to a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Delay { ms: u64 },
    Hang,
    Abort,
    Tamper(Tamper),
}

/// A rule at work.
pub(crate) struct Active {
    rule: Rule,
    action: Action,
    skipped: u64,
    hits: u64,
    chance: StdRng,
}

impl Active {
    /// Whether the rule takes this pass. Counts what it lets pass, and what it takes.
    fn takes(&mut self, point: Point, key: &Key) -> bool {
        if self.rule.at != point || self.rule.key.is_some_and(|wanted| wanted != *key) {
            return false;
        }
        if self.skipped < self.rule.skip.unwrap_or(0) {
            self.skipped += 1;
            return false;
        }
        let spent = self.rule.times.is_some_and(|times| self.hits >= times);
        if spent || self.rule.probability.is_some_and(|probability| !self.chance.random_bool(probability)) {
            return false;
        }
        self.hits += 1;
        true
    }
}

/// The rules of one service.
pub(crate) struct Rules {
    points: &'static [Point],
    may_abort: bool,
    list: Mutex<Vec<Active>>,
}

impl Rules {
    pub(crate) fn new(points: &'static [Point], may_abort: bool) -> Self {
        Self { points, may_abort, list: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Active>> {
        // Nothing panics while it holds the lock, so the list is whole.
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks a rule. The error says what to send instead.
    pub(crate) fn check(&self, rule: Rule) -> Result<Active, String> {
        if !self.points.contains(&rule.at) {
            return Err("`at` is not a point of this service".into());
        }
        if rule.probability.is_some_and(|probability| !(0.0..=1.0).contains(&probability)) {
            return Err("`probability` must be from 0 to 1".into());
        }
        if rule.retry_after.is_some_and(|seconds| !(1..=60).contains(&seconds)) {
            return Err("`retry_after` must be from 1 to 60 seconds".into());
        }
        let action = match (rule.action, rule.ms, rule.status) {
            (Do::Delay, Some(ms), None) => Action::Delay { ms },
            (Do::Delay, ..) => return Err("`delay` needs `ms`, and no `status`".into()),
            (Do::Status, None, Some(status)) if (400..=599).contains(&status) => {
                Action::Tamper(Tamper::Status { status, retry_after_s: rule.retry_after })
            }
            (Do::Status, ..) => return Err("`status` needs a `status` from 400 to 599, and no `ms`".into()),
            (_, None, None) => match rule.action {
                Do::Hang => Action::Hang,
                Do::Drop => Action::Tamper(Tamper::Drop),
                Do::Truncate => Action::Tamper(Tamper::Truncate),
                Do::Garbage => Action::Tamper(Tamper::Garbage),
                Do::Foreign => Action::Tamper(Tamper::Foreign),
                _ if self.may_abort => Action::Abort,
                _ => return Err("`abort` is not for a service that runs inside another program".into()),
            },
            _ => return Err("`ms` is for `delay` alone and `status` for `status`".into()),
        };
        let chance = StdRng::seed_from_u64(rule.seed.unwrap_or_else(|| rand::rng().random()));
        Ok(Active { rule, action, skipped: 0, hits: 0, chance })
    }

    pub(crate) fn replace(&self, rules: Vec<Active>) {
        *self.lock() = rules;
    }

    pub(crate) fn shown(&self) -> Vec<Shown> {
        self.lock().iter().map(|active| Shown { rule: active.rule.clone(), hits: active.hits }).collect()
    }

    /// Gives a pass to the first rule that is due.
    pub(crate) fn take(&self, point: Point, key: &Key) -> Option<Action> {
        self.lock().iter_mut().find_map(|active| active.takes(point, key).then_some(active.action))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn rules(list: serde_json::Value) -> Rules {
        let rules = Rules::new(Point::BANK, true);
        let list: Vec<Rule> = serde_json::from_value(list).unwrap();
        rules.replace(list.into_iter().map(|rule| rules.check(rule).unwrap()).collect());
        rules
    }

    fn key(last: u8) -> Key {
        Key::from_bytes([last; 16]).unwrap()
    }

    fn hits(rules: &Rules) -> Vec<u64> {
        rules.shown().iter().map(|shown| shown.hits).collect()
    }

    #[test]
    fn skip_times_key_and_point_decide_and_the_first_rule_due_takes_the_pass() {
        let rules = rules(json!([
            {"at": "received", "do": "status", "status": 503, "key": key(1), "skip": 1, "times": 1},
            {"at": "received", "do": "drop"},
            {"at": "saved", "do": "garbage"},
        ]));
        let drop = Some(Action::Tamper(Tamper::Drop));
        assert_eq!(rules.take(Point::Received, &key(1)), drop, "skipped once");
        assert_eq!(rules.take(Point::Received, &key(2)), drop, "another key");
        let unavailable = Some(Action::Tamper(Tamper::Status { status: 503, retry_after_s: None }));
        assert_eq!(rules.take(Point::Received, &key(1)), unavailable);
        assert_eq!(rules.take(Point::Received, &key(1)), drop, "spent");
        assert_eq!(rules.take(Point::Claimed, &key(1)), None);
        assert_eq!(hits(&rules), [1, 3, 0]);
    }

    #[test]
    fn a_seeded_chance_is_repeatable_and_about_as_likely_as_said() {
        let passes = || -> Vec<bool> {
            let rules = rules(json!([{"at": "saved", "do": "drop", "probability": 0.25, "seed": 7}]));
            (0..1_000).map(|_| rules.take(Point::Saved, &key(1)).is_some()).collect()
        };
        let first = passes();
        assert_eq!(first, passes());
        let taken = first.iter().filter(|&&taken| taken).count();
        assert!((180..320).contains(&taken), "{taken}");
    }

    #[test]
    fn a_rule_that_makes_no_sense_is_refused() {
        let refused = |rule: serde_json::Value| match serde_json::from_value::<Rule>(rule) {
            Err(_) => true,
            Ok(rule) => Rules::new(Point::GATEWAY, false).check(rule).is_err(),
        };
        for rule in [
            json!({"at": "claimed", "do": "drop"}),
            json!({"at": "received", "do": "delay"}),
            json!({"at": "received", "do": "status"}),
            json!({"at": "received", "do": "status", "status": 200}),
            json!({"at": "received", "do": "drop", "ms": 5}),
            json!({"at": "received", "do": "explode"}),
            json!({"at": "received", "do": "drop", "surprise": 1}),
            json!({"at": "received", "do": "drop", "probability": 1.5}),
            json!({"at": "received", "do": "drop", "key": "no key"}),
            json!({"at": "received", "do": "status", "status": 503, "retry_after": 0}),
            json!({"at": "received", "do": "abort"}),
        ] {
            assert!(refused(rule.clone()), "{rule}");
        }
        assert!(!refused(json!({"at": "committed", "do": "delay", "ms": 5})));
    }

    #[test]
    fn a_rule_is_shown_as_it_was_sent_with_its_hits() {
        let rules = rules(json!([{"at": "gateway_answered", "do": "hang", "times": 2}]));
        rules.take(Point::GatewayAnswered, &key(1));
        let shown = serde_json::to_value(rules.shown()).unwrap();
        assert_eq!(shown, json!([{"at": "gateway_answered", "do": "hang", "times": 2, "hits": 1}]));
    }
}
