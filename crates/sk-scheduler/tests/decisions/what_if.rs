//! what_if
