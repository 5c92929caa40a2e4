//! Card numbers, so that none is taken for something else: they are never typed, sent or stored, only what a card reader gives in
//! their place.

/// Digits of a card number at least and at most (ISO/IEC 7812-1; the shortest are some of Maestro's).
const DIGITS: std::ops::RangeInclusive<usize> = 12..=19;

/// Whether a text holds what is a card number in all likelihood: 12 to 19 digits, written together or in groups, that begin and are
/// as long as the cards of a shop do, and whose last is the check digit of the rest. Of as many digits about one text in fifteen does so by
/// chance.
///
/// Digits that are longer than that are none: an account or a serial number would hold one nearly always.
#[must_use]
pub fn holds_card_number(text: &str) -> bool {
    let mut groups: Vec<Vec<u8>> = Vec::new();
    let mut is_joined = false;
    let mut in_group = false;
    for char in text.chars() {
        match char.to_digit(10).and_then(|digit| u8::try_from(digit).ok()) {
            Some(digit) => {
                match groups.last_mut() {
                    Some(group) if in_group => group.push(digit),
                    _ => {
                        if !is_joined {
                            groups.clear();
                        }
                        groups.push(vec![digit]);
                    }
                }
                (in_group, is_joined) = (true, true);
            }
            None => {
                if in_group && ends_with_a_number(&groups) {
                    return true;
                }
                in_group = false;
                is_joined &= joins(char);
            }
        }
    }
    in_group && ends_with_a_number(&groups)
}

/// Whether groups of digits around it may be of one number.
fn joins(char: char) -> bool {
    char.is_whitespace() || matches!(char, '-' | '\u{2010}'..='\u{2015}' | '.' | '_')
}

/// Whether the last groups, however many, are a card number.
fn ends_with_a_number(groups: &[Vec<u8>]) -> bool {
    let mut digits = Vec::new();
    for group in groups.iter().rev() {
        digits.splice(0..0, group.iter().copied());
        if digits.len() > *DIGITS.end() {
            return false;
        }
        if is_of_a_card(&digits) && has_its_check_digit(&digits) {
            return true;
        }
    }
    false
}

/// Whether a card begins so and is so long. What begins with 0, 1 or 7 is of airlines and petrol stations, and of every time stamp.
fn is_of_a_card(digits: &[u8]) -> bool {
    let lengths = match digits {
        // Mir, and the second series of Mastercard.
        [2, 2..=6, ..] | [2, 7, 0..=2, ..] => 16..=19,
        [3, ..] => 14..=19,
        [4, ..] => 13..=19,
        [5 | 6, ..] => DIGITS,
        [8 | 9, ..] => 16..=19,
        _ => return false,
    };
    lengths.contains(&digits.len())
}

/// Luhn's formula, ISO/IEC 7812-1, annex B.
fn has_its_check_digit(digits: &[u8]) -> bool {
    let doubled = |digit: u8| if digit > 4 { 2 * digit - 9 } else { 2 * digit };
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(place, &digit)| u32::from(if place % 2 == 1 { doubled(digit) } else { digit }))
        .sum();
    sum.is_multiple_of(10)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that the card brands publish for tests.
    const NUMBERS: [&str; 12] = [
        "4111111111111111",
        "4242424242424242",
        "4222222222222",
        "5555555555554444",
        "2223003122003222",
        "2200770212727079",
        "378282246310005",
        "30569309025904",
        "3530111333300000",
        "6011111111111117",
        "6304000000000000",
        "6759649826438453",
    ];

    #[test]
    fn a_card_number_is_seen_however_it_is_written() {
        for number in NUMBERS {
            let grouped = |by: &str| {
                let groups: Vec<_> = number.as_bytes().chunks(4).map(String::from_utf8_lossy).collect();
                groups.join(by)
            };
            for text in [
                number.to_owned(),
                grouped(" "),
                grouped("-"),
                grouped("\u{a0}"),
                grouped(" - "),
                grouped("."),
                format!("order 17, {number}"),
                format!("order 17 {}", grouped(" ")),
                format!("2026-11-29 {}", grouped(" ")),
                format!("card{number}x"),
                format!("{}/exp 11-29", grouped("-")),
                format!("№ {number}é"),
            ] {
                assert!(holds_card_number(&text), "{text}");
            }
        }
    }

    #[test]
    fn other_digits_are_no_card_number() {
        for text in [
            "",
            "tok_visa",
            "tok_account_42",
            "till-1/1042",
            "4111111111111112",
            "4111 1111 1111 1112",
            "41111111111",
            "411111111111111100000000000000",
            // Milliseconds and nanoseconds, all of them with the right check digit.
            "1764488272002",
            "1764488272000000004",
            "2026-11-30 0737",
            // Groups on both sides of something else are of two numbers.
            "41111111/11111111",
            "DE89 3704 0044 0532 0130 00",
            "550e8400-e29b-41d4-a716-446655440000",
        ] {
            assert!(!holds_card_number(text), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_can_be_asked(text: String) {
            let _: bool = holds_card_number(&text);
        }

        #[test]
        fn one_wrong_digit_makes_it_none(number in proptest::sample::select(&NUMBERS), place in 0..19_usize, by in 1..10_u8) {
            let mut digits: Vec<u8> = number.bytes().collect();
            let place = place % digits.len();
            digits[place] = (digits[place] - b'0' + by) % 10 + b'0';
            proptest::prop_assert!(!holds_card_number(&String::from_utf8(digits)?));
        }
    }
}
