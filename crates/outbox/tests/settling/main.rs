//! The real driver against a bank on a socket, over a real file.

mod bank;
mod till;

mod faults;
mod ownership;
mod settling;
mod waiting;
