//! The wire between till and bank: key, requests, results, problem types.
