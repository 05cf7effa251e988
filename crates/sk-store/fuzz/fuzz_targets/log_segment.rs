#![no_main]

#[path = "../../tests/support/fuzz_inputs.rs"]
#[allow(dead_code, reason = "each target uses one of them")]
mod inputs;

libfuzzer_sys::fuzz_target!(|data: &[u8]| inputs::log_segment(data));
