//! Encodes JSON values as MessagePack, each in its shortest form, maps in their order.
//!
//! The bytes equal those of `rmp-serde`, so a trace of SimKube 2 converts back unchanged.

use serde_json::Value;

/// A writer into memory, which cannot fail: `rmp` reports errors of the writer alone.
const CANNOT_FAIL: &str = "writing into a Vec cannot fail";

/// Appends `value`.
pub(crate) fn value(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Null => out.push(0xc0),
        Value::Bool(false) => out.push(0xc2),
        Value::Bool(true) => out.push(0xc3),
        Value::Number(number) => {
            if let Some(n) = number.as_u64() {
                unsigned(out, n);
            } else if let Some(n) = number.as_i64() {
                signed(out, n);
            } else {
                let n = number.as_f64().unwrap_or_default();
                rmp::encode::write_f64(out, n).expect(CANNOT_FAIL);
            }
        }
        Value::String(string) => text(out, string),
        Value::Array(array) => {
            array_len(out, array.len());
            for element in array {
                self::value(out, element);
            }
        }
        Value::Object(map) => {
            map_len(out, map.len());
            for (key, element) in map {
                text(out, key);
                self::value(out, element);
            }
        }
    }
}

/// Appends an unsigned number.
pub(crate) fn unsigned(out: &mut Vec<u8>, n: u64) {
    rmp::encode::write_uint(out, n).expect(CANNOT_FAIL);
}

/// Appends a number that may be negative.
pub(crate) fn signed(out: &mut Vec<u8>, n: i64) {
    rmp::encode::write_sint(out, n).expect(CANNOT_FAIL);
}

/// Appends a text.
pub(crate) fn text(out: &mut Vec<u8>, text: &str) {
    rmp::encode::write_str(out, text).expect(CANNOT_FAIL);
}

/// Appends the head of a text. Saturates as [`array_len`] does.
pub(crate) fn text_len(out: &mut Vec<u8>, len: usize) {
    rmp::encode::write_str_len(out, u32::try_from(len).unwrap_or(u32::MAX)).expect(CANNOT_FAIL);
}

/// Appends the head of an array. Saturates at what MessagePack can say; callers bound their lengths far below.
pub(crate) fn array_len(out: &mut Vec<u8>, len: usize) {
    rmp::encode::write_array_len(out, u32::try_from(len).unwrap_or(u32::MAX)).expect(CANNOT_FAIL);
}

/// Appends the head of a map. Saturates as [`array_len`] does.
pub(crate) fn map_len(out: &mut Vec<u8>, len: usize) {
    rmp::encode::write_map_len(out, u32::try_from(len).unwrap_or(u32::MAX)).expect(CANNOT_FAIL);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::msgpack::decode::Slice;

    #[test]
    fn bytes_are_those_of_rmp_serde() {
        let json = json!({
            "z": [0, 127, 128, 255, 256, 65535, 65536, u64::from(u32::MAX), u64::MAX],
            "a": [-1, -32, -33, -128, -129, -32768, -32769, i64::MIN],
            "texts": ["", "x".repeat(31), "x".repeat(32), "x".repeat(256), "x".repeat(70_000)],
            "floats": [1.5, -0.0, 1e300],
            "long": vec![true; 20],
        });
        let mut bytes = Vec::new();
        value(&mut bytes, &json);
        assert_eq!(bytes, rmp_serde::to_vec_named(&json).unwrap());
        assert_eq!(Slice::new(&bytes).value().unwrap(), json);
    }
}
