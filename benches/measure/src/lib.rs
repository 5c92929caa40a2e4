//! What the benches measure with: latencies, the machine's own figures, processes that end with the run, a stub gateway, and
//! tables that go into a document.
//!
//! **Its one rule:** what a run writes into the document, it measured. A part that a run did not measure stays as it was.

pub mod document;
pub mod gateway;
pub mod latency;
pub mod machine;
pub mod process;
pub mod ready;
pub mod rows;
pub mod table;
pub mod target;
