//! The scenario file as its users write it.

mod assign;
mod cases;
mod docs;
mod family;
mod good;
mod hostile;
mod read;
mod schema;
