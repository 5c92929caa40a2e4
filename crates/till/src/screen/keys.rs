//! Which key does what. Every command has one at least, so that a whole sale goes by keyboard, and no key has two: who presses it must know
//! what happens.

use crate::TillError;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, fmt, str::FromStr};

/// Keys of one command at most.
const SHORTCUTS_MAX: usize = 4;
/// Characters that are typed into quantities and prices: they never do anything else.
const TYPED: [char; 3] = ['*', '.', ','];
/// Keys that have a name of more than one character, as the window's `KeyboardEvent.key` has it. Enter, Tab and the space are none of them:
/// they confirm, move on and press what is in focus, and a scanner ends a code with them.
const NAMED: [&str; 11] = [
    "ArrowDown",
    "ArrowLeft",
    "ArrowRight",
    "ArrowUp",
    "Backspace",
    "Delete",
    "End",
    "Escape",
    "Home",
    "PageDown",
    "PageUp",
];

/// What a key can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    /// Search articles.
    Search,
    /// Type the quantity of a line.
    Quantity,
    /// Park the sale.
    Park,
    /// Resume a parked one.
    Resume,
    /// Pay.
    Pay,
    /// Take the exact amount in cash.
    ExactCash,
    /// Show the payments.
    Payments,
    /// Print the last receipt again.
    Reprint,
    /// Take the last change back.
    Undo,
    /// One more of a line.
    More,
    /// One less.
    Less,
    /// Remove a line.
    Remove,
    /// Back, or close what is open.
    Back,
    /// Show what each key does.
    ShowKeys,
}

impl Command {
    /// All of them, each with the keys that it has in a new till.
    pub const ALL: [(Self, &'static [&'static str]); 14] = [
        (Self::Search, &["/", "F2"]),
        (Self::Quantity, &["F4"]),
        (Self::Park, &["F7"]),
        (Self::Resume, &["F8"]),
        (Self::Pay, &["F9"]),
        (Self::ExactCash, &["F10"]),
        (Self::Payments, &["F12"]),
        (Self::Reprint, &["Ctrl+P"]),
        (Self::Undo, &["Ctrl+Z"]),
        (Self::More, &["+"]),
        (Self::Less, &["-"]),
        (Self::Remove, &["Delete"]),
        (Self::Back, &["Escape"]),
        (Self::ShowKeys, &["?"]),
    ];

    /// What it does, for people.
    const fn deed(self) -> &'static str {
        match self {
            Self::Search => "searching",
            Self::Quantity => "the quantity",
            Self::Park => "parking",
            Self::Resume => "resuming",
            Self::Pay => "Pay",
            Self::ExactCash => "exact cash",
            Self::Payments => "the payments",
            Self::Reprint => "printing again",
            Self::Undo => "undo",
            Self::More => "one more",
            Self::Less => "one less",
            Self::Remove => "removing a line",
            Self::Back => "going back",
            Self::ShowKeys => "showing the keys",
        }
    }
}

/// A key with those held beside it, such as `F4`, `Ctrl+P` or `?`. A character is the one that comes out, whatever has to be held for it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Shortcut {
    ctrl: bool,
    alt: bool,
    shift: bool,
    meta: bool,
    key: String,
}

impl FromStr for Shortcut {
    type Err = TillError;

    fn from_str(text: &str) -> Result<Self, TillError> {
        let wrong = |why: &str| Err(TillError::InvalidKey(format!("“{}” can't be a key: {why}", shown(text))));
        let mut shortcut = Self { ctrl: false, alt: false, shift: false, meta: false, key: String::new() };
        let mut rest = text;
        loop {
            let held = [
                ("Ctrl+", &mut shortcut.ctrl),
                ("Alt+", &mut shortcut.alt),
                ("Shift+", &mut shortcut.shift),
                ("Meta+", &mut shortcut.meta),
            ];
            let Some((name, held)) = held.into_iter().find(|(name, _)| rest.starts_with(name)) else { break };
            if *held {
                return wrong("a key is held twice");
            }
            *held = true;
            rest = &rest[name.len()..];
        }
        let is_held = shortcut.ctrl || shortcut.alt || shortcut.meta;
        let mut chars = rest.chars();
        match (chars.next(), chars.next()) {
            (Some(c), None) if c.is_alphanumeric() && is_held => shortcut.key = c.to_uppercase().to_string(),
            (Some(c), None) if c.is_alphanumeric() || TYPED.contains(&c) => {
                return wrong("it is typed into fields; hold Ctrl or Alt with it");
            }
            (Some(c), None) if c.is_whitespace() || c.is_control() => return wrong("it presses what is in focus"),
            (Some(_), None) if shortcut.shift => return wrong("name the character that comes out instead"),
            (Some(c), None) => shortcut.key = c.to_string(),
            _ if NAMED.contains(&rest) || is_function_key(rest) => shortcut.key = rest.to_owned(),
            _ if matches!(rest, "Enter" | "Tab") => {
                return wrong("it confirms or moves on, and a scanner ends with it");
            }
            _ => return wrong("there is no key of this name"),
        }
        Ok(shortcut)
    }
}

fn is_function_key(name: &str) -> bool {
    let number = name.strip_prefix('F').filter(|digits| !digits.starts_with(['0', '+']));
    number.and_then(|digits| digits.parse::<u8>().ok()).is_some_and(|number| (1..=24).contains(&number))
}

/// As much of a text as a message holds.
fn shown(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(32).collect()
}

impl fmt::Display for Shortcut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let held = [("Ctrl+", self.ctrl), ("Alt+", self.alt), ("Shift+", self.shift), ("Meta+", self.meta)];
        for (name, _) in held.into_iter().filter(|(_, is_held)| *is_held) {
            f.write_str(name)?;
        }
        f.write_str(&self.key)
    }
}

impl From<Shortcut> for String {
    fn from(shortcut: Shortcut) -> Self {
        shortcut.to_string()
    }
}

impl TryFrom<String> for Shortcut {
    type Error = TillError;

    fn try_from(text: String) -> Result<Self, TillError> {
        text.parse()
    }
}

/// Which keys each command has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "BTreeMap<Command, Vec<Shortcut>>", try_from = "BTreeMap<Command, Vec<Shortcut>>")]
pub struct KeyBindings(BTreeMap<Command, Vec<Shortcut>>);

impl KeyBindings {
    /// The keys of each command.
    ///
    /// # Errors
    /// [`TillError::KeyUsedTwice`] where two uses are made of one key, [`TillError::InvalidKey`] where a command has none or more than four.
    pub fn new(bindings: BTreeMap<Command, Vec<Shortcut>>) -> Result<Self, TillError> {
        let mut used: BTreeMap<&Shortcut, Command> = BTreeMap::new();
        for (command, _) in Command::ALL {
            let shortcuts = bindings.get(&command).map_or(&[][..], Vec::as_slice);
            if !(1..=SHORTCUTS_MAX).contains(&shortcuts.len()) {
                let what = format!("{} must have a key, and at most {SHORTCUTS_MAX}", command.deed());
                return Err(TillError::InvalidKey(what));
            }
            for shortcut in shortcuts {
                if let Some(first) = used.insert(shortcut, command) {
                    let key = shortcut.to_string();
                    return Err(TillError::KeyUsedTwice { key, first: first.deed(), second: command.deed() });
                }
            }
        }
        Ok(Self(bindings))
    }

    /// The keys of a command, the one to be shown first.
    #[must_use]
    pub fn of(&self, command: Command) -> &[Shortcut] {
        self.0.get(&command).map_or(&[], Vec::as_slice)
    }
}

impl Default for KeyBindings {
    fn default() -> Self {
        let keys = |names: &[&str]| names.iter().filter_map(|name| name.parse().ok()).collect();
        Self(Command::ALL.into_iter().map(|(command, names)| (command, keys(names))).collect())
    }
}

impl From<KeyBindings> for BTreeMap<Command, Vec<Shortcut>> {
    fn from(bindings: KeyBindings) -> Self {
        bindings.0
    }
}

impl TryFrom<BTreeMap<Command, Vec<Shortcut>>> for KeyBindings {
    type Error = TillError;

    fn try_from(bindings: BTreeMap<Command, Vec<Shortcut>>) -> Result<Self, TillError> {
        Self::new(bindings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_named_in_one_way() {
        for (text, name) in [
            ("F4", "F4"),
            ("F24", "F24"),
            ("ctrl+p", ""),
            ("Ctrl+p", "Ctrl+P"),
            ("Shift+Ctrl+p", "Ctrl+Shift+P"),
            ("Ctrl++", "Ctrl++"),
            ("+", "+"),
            ("?", "?"),
            ("Alt+1", "Alt+1"),
            ("Ctrl+я", "Ctrl+Я"),
            ("Shift+F4", "Shift+F4"),
            ("Delete", "Delete"),
        ] {
            let read = text.parse::<Shortcut>().map(|shortcut| shortcut.to_string()).unwrap_or_default();
            assert_eq!(read, name, "{text}");
        }
        for wrong in [
            "",
            "a",
            "5",
            "Shift+a",
            "*",
            ".",
            " ",
            "Ctrl+ ",
            "\t",
            "Enter",
            "Ctrl+Enter",
            "Tab",
            "F0",
            "F25",
            "F04",
            "F+4",
            "Ctrl+",
            "Ctrl+Ctrl+P",
            "Shift+?",
            "delete",
            "Hyper+A",
        ] {
            let refused = wrong.parse::<Shortcut>().expect_err(wrong);
            assert_eq!(refused.code(), "invalid-key", "{wrong:?}");
        }
    }

    #[test]
    fn a_new_till_has_the_keys_that_are_written_down_and_each_once() {
        let keys = KeyBindings::default();
        assert_eq!(KeyBindings::new(keys.0.clone()).unwrap(), keys);
        for (command, names) in Command::ALL {
            let is: Vec<_> = keys.of(command).iter().map(Shortcut::to_string).collect();
            assert_eq!(is, names, "{command:?}");
        }
    }

    #[test]
    fn two_uses_of_one_key_are_refused_and_a_command_without_one() {
        let with = |command, names: &[&str]| {
            let mut keys = KeyBindings::default().0;
            keys.insert(command, names.iter().map(|name| name.parse().unwrap()).collect());
            KeyBindings::new(keys)
        };
        let twice = with(Command::Park, &["F4"]).unwrap_err();
        assert_eq!(twice.code(), "key-used-twice");
        assert_eq!(twice.to_string(), "F4 is the key of the quantity: it can't be that of parking too");
        assert_eq!(with(Command::Undo, &["Ctrl+p"]).unwrap_err().code(), "key-used-twice", "in whichever letters");
        assert_eq!(with(Command::Park, &["F1", "F1"]).unwrap_err().code(), "key-used-twice");
        assert_eq!(with(Command::Park, &[]).unwrap_err().code(), "invalid-key");
        assert_eq!(with(Command::Park, &["F1", "F3", "F5", "F6", "F11"]).unwrap_err().code(), "invalid-key");
        assert_eq!(with(Command::Park, &["Ctrl+K", "F1"]).unwrap().of(Command::Park).len(), 2);
        let text = serde_json::to_string(&KeyBindings::default()).unwrap();
        assert!(text.contains("\"reprint\":[\"Ctrl+P\"]"), "{text}");
        assert!(serde_json::from_str::<KeyBindings>(&text.replace("F7", "F4")).is_err());
    }
}
