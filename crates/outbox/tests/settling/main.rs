//! The real driver against a bank on a socket, over a real file.

mod bank;
mod cancelling;
mod till;

mod faults;
mod messages;
mod ownership;
mod refunds;
mod settling;
mod telling;
mod waiting;
