//! The controller on a real control plane, as its installation has it: with the rights of its own account and no others.
//!
//! The drivers of most tests are shell scripts that do as a test needs, run by the testkit in place of a kubelet; one test
//! runs the real one, and is first by its name because it takes longest. Each test ends by listing every object of every
//! kind and comparing with what was there before.

mod drivers;
mod ends;
mod hooks;
mod kills;
mod lab;
mod operators;
mod records;
mod turns;
