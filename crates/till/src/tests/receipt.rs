//! The receipt says what is in the file, as far as the payment is.

use super::{Checked, Scene};
use crate::{State, TillError};

#[tokio::test]
async fn the_receipt_shows_what_was_paid_and_how() -> Checked {
    let scene = Scene::new()?;
    scene.till.add_article("PRO-301", Some("0.755")).await?;
    let sale = scene.sale().await?;
    assert!(matches!(scene.till.receipt(sale.id).await, Err(TillError::SaleChanged(_))));
    let operation = scene.by_card(&sale, 740).await?;
    let waiting = scene.till.receipt(sale.id).await?;
    assert!(waiting.text.contains("NOT PAID YET") && waiting.text.contains("Waiting for the bank"), "{}", waiting.text);
    scene.settle(&operation, State::Approved).await?;
    let receipt = scene.till.receipt(sale.id).await?;
    assert!(receipt.lines.iter().all(|line| line.chars().count() <= 42), "{}", receipt.text);
    let payment = format!("  Payment {}", operation.short_code);
    for part in [
        "Kassa Demo Shop",
        "Receipt 1",
        "  0.755 kg × 1.99                     1.50",
        "  2 × 1.85                            3.70",
        "TOTAL EUR                             7.40",
        "Card visa ··4242                      7.40",
        "  Approved 8F21K0",
        &payment,
        "till-1/1",
        "  Bank pay_1",
        "7 %             4.86       0.34       5.20",
        "19 %            1.85       0.35       2.20",
    ] {
        assert!(receipt.text.contains(part), "{part:?} in\n{}", receipt.text);
    }
    assert_eq!(receipt.receipt_number, Some(1));
    Ok(())
}
