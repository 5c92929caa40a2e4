//! The mock bank and its gateway, with a fault lab.
