//! The scenarios in the documentation are read as they stand there.
