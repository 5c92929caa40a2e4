//! Money, cart, tax and tenders: the price of a sale, computed once.
