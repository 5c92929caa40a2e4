//! The example, compiled into this test and played: so that it stays true, whatever was built before.

#[path = "../examples/webhooks.rs"]
#[expect(dead_code, reason = "its main is for whoever runs it alone")]
mod webhooks;

type Checked<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// How it ended, and what it said.
async fn played(keeps_keys: bool) -> (anyhow::Result<()>, String) {
    let mut said = String::new();
    (webhooks::play(keeps_keys, &mut said).await, said)
}

/// The number that stands before those words.
fn number_before(words: &str, text: &str) -> Checked<u32> {
    let (before, _) = text.split_once(words).ok_or_else(|| format!("no {words:?} in {text}"))?;
    Ok(before.rsplit([' ', '\n']).next().unwrap_or_default().parse()?)
}

#[tokio::test]
async fn webhooks_through_a_partner_that_misbehaves_count_exactly_once() -> Checked {
    let (ended, text) = played(true).await;
    assert!(ended.is_ok(), "{ended:?}: {text}");
    assert_eq!(number_before(" webhooks saved", &text)?, 31);
    assert!(number_before(" waited for the partner over a restart", &text)? > 0);
    let (requests, lost) = (number_before(" requests came", &text)?, number_before(" answers were lost", &text)?);
    assert!(lost > 0 && requests > 31, "{text}");
    assert_eq!(number_before(" said to come later", &text)?, 1);
    assert_eq!((number_before(" deliveries counted", &text)?, number_before(" parcels;", &text)?), (30, 30));
    assert!(text.ends_with("each exactly once\n"), "{text}");
    Ok(())
}

#[tokio::test]
async fn a_partner_that_keeps_no_keys_counts_twice_and_the_program_says_so() -> Checked {
    let (ended, text) = played(false).await;
    let error = ended.err().ok_or("it ended well")?.to_string();
    assert!(number_before(" deliveries counted", &text)? > number_before(" parcels;", &text)?, "{text}");
    assert!(number_before(" parcels were not counted exactly once", &error)? > 0, "{error}");
    Ok(())
}
