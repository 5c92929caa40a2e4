//! What bank and gateway have in common on the wire: connections, who may come in, bodies, keys, and how an error
//! looks.

pub(crate) mod answer;
pub(crate) mod body;
pub(crate) mod connections;
pub(crate) mod counting;
pub(crate) mod door;
pub(crate) mod gate;
pub(crate) mod keyed;
pub(crate) mod pages;
pub(crate) mod places;
pub(crate) mod problems;
pub(crate) mod secrets;
pub(crate) mod segment;
