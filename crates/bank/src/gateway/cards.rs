//! What each card token does.

use protocol::Card;

/// What a token means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Told {
    /// The card pays whatever is asked.
    Approves(Card),
    /// The card doesn't pay, for this reason. No card where the token names none.
    Declines(&'static str, Option<Card>),
    /// The card draws on this account.
    DrawsOn(u8, Card),
}

/// Accounts are numbered from 1 to this.
const ACCOUNTS: u8 = 100;

/// Reads a token. `offline`: the goods were handed over before anyone was asked.
pub(crate) fn read(token: &str, offline: bool) -> Told {
    match token {
        "tok_visa" => Told::Approves(card("visa", "4242")),
        "tok_mastercard" => Told::Approves(card("mastercard", "4444")),
        "tok_mir" => Told::Approves(card("mir", "2200")),
        "tok_insufficient_funds" => Told::Declines("insufficient_funds", Some(card("visa", "9995"))),
        "tok_expired" => Told::Declines("expired", Some(card("visa", "0069"))),
        "tok_lost" => Told::Declines("lost", Some(card("visa", "9987"))),
        "tok_do_not_honor" => Told::Declines("do_not_honor", Some(card("visa", "0002"))),
        "tok_late_decline" if offline => Told::Declines("late_decline", Some(card("visa", "0341"))),
        "tok_late_decline" => Told::Approves(card("visa", "0341")),
        _ => match token.strip_prefix("tok_account_").and_then(account) {
            Some(number) => Told::DrawsOn(number, card("account", &format!("{number:04}"))),
            None => Told::Declines("unknown_card", None),
        },
    }
}

/// An account's number in its one spelling: no sign, no zero before it.
pub(crate) fn account(text: &str) -> Option<u8> {
    let number: u8 = text.parse().ok()?;
    ((1..=ACCOUNTS).contains(&number) && number.to_string() == text).then_some(number)
}

fn card(brand: &str, last4: &str) -> Card {
    Card { brand: brand.to_owned(), last4: last4.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_do_what_the_contract_says() {
        for (token, last4) in [("tok_visa", "4242"), ("tok_mastercard", "4444"), ("tok_mir", "2200")] {
            assert!(matches!(read(token, true), Told::Approves(card) if card.last4 == last4));
        }
        for code in ["insufficient_funds", "expired", "lost", "do_not_honor"] {
            assert!(matches!(read(&format!("tok_{code}"), false), Told::Declines(told, Some(_)) if told == code));
        }
        assert!(matches!(read("tok_late_decline", false), Told::Approves(_)));
        assert!(matches!(read("tok_late_decline", true), Told::Declines("late_decline", _)));
        assert!(matches!(read("tok_account_1", false), Told::DrawsOn(1, _)));
        assert!(matches!(read("tok_account_100", false), Told::DrawsOn(100, _)));
        for unknown in [
            "tok_account_0",
            "tok_account_101",
            "tok_account_07",
            "tok_account_+7",
            "tok_account_",
            "4242424242424242",
            "TOK_VISA",
        ] {
            assert_eq!(read(unknown, false), Told::Declines("unknown_card", None), "{unknown}");
        }
    }
}
