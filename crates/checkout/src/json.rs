//! The engine with JSON in and JSON out, as the till's command line offers it.
//!
//! Reading is strict. A member that is unknown, twice there or of another type than asked for is refused with its path:
//! a discount that was ignored because of a typing mistake would be a wrong price.

mod read;
mod write;

use serde_json::Value;

pub use read::INPUT_BYTES_MAX;

use crate::cart::Cart;
use crate::error::{Code, PriceError};
use crate::price::{Priced, price};

/// Prices the cart of a JSON document. The answer is a document too: of the price, or else of the error.
///
/// # Errors
/// The document `{"error":{"code","message","path"}}`, see [`error_document`].
pub fn run(input: &str) -> Result<String, String> {
    match read(input).and_then(|cart| price(&cart)) {
        Ok(priced) => Ok(document(&priced).to_string()),
        Err(error) => Err(error_document(&error).to_string()),
    }
}

/// As [`run`], for input that may not be text at all.
///
/// # Errors
/// The error document, as [`run`]; bytes that are not UTF-8 are [`Code::Malformed`].
pub fn run_bytes(input: &[u8]) -> Result<String, String> {
    let not_text = |_| PriceError::new(Code::Malformed, "", "is not UTF-8 text");
    let text = std::str::from_utf8(input).map_err(|error| error_document(&not_text(error)).to_string())?;
    run(text)
}

/// The cart of a JSON document, before it is priced.
///
/// # Errors
/// A [`PriceError`] with the path of the first member found that is not as it must be.
pub fn read(input: &str) -> Result<Cart, PriceError> {
    read::cart(input)
}

/// The price as JSON: `lines`, `discount`, `taxes`, `net`, `tax`, `tip`, `total`, `tenders`, `rounding`, `change`,
/// `drawer` and `rest`, amounts in minor units.
pub fn document(priced: &Priced) -> Value {
    write::document(priced)
}

/// The error as JSON: `{"error":{"code","message","path"}}`.
pub fn error_document(error: &PriceError) -> Value {
    write::error_document(error)
}
