//! A jq program that runs on one object at a time.
//!
//! The language is jq as the jaq crates implement it, without the functions that would make two runs differ or reach outside
//! the object: `now`, `env`, `input`, `halt`, local time and writing to stderr fail with a message, and no modules are
//! loaded. The output is bounded: a program is stopped at its second value. Time, memory and stack are not bounded here,
//! because the interpreter cannot be interrupted: programs of other people run in a process with limits
//! ([`super::confined`]), which is passed in as an [`Evaluate`].

use jaq_core::load::{Arena, File, Loader, lex, parse};
use jaq_core::{Compiler, Ctx, Vars, compile, data, load};
use jaq_json::{Num, Val};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};
use sk_core::{ObjectRef, SimTime};

/// The longest program that is read: a thousand lines of 64 bytes.
const MAX_PROGRAM_BYTES: usize = 64 << 10;

/// How deeply a program may be nested in brackets; the parser recurses.
const MAX_PROGRAM_DEPTH: usize = 200;

/// How deeply an output may be nested: as deep as a trace's objects may be.
const MAX_DEPTH: usize = 128;

/// How much of a program's error is repeated; it may hold the whole object.
const MAX_MESSAGE: usize = 500;

/// The variables of a program besides the object.
const VARIABLES: [&str; 4] = ["$time", "$kind", "$namespace", "$name"];

/// Defined after jaq's own, and so instead of them.
const UNAVAILABLE: &str = r#"
def unavailable($what): error($what + " is not available here: the same trace and program must give the same trace");
def now: unavailable("now");
def env: unavailable("env");
def halt: unavailable("halt");
def halt($code): unavailable("halt");
def halt_error: unavailable("halt_error");
def halt_error($code): unavailable("halt_error");
def localtime: unavailable("localtime");
def strflocaltime($format): unavailable("strflocaltime");
def debug: .;
def debug(message): .;
def stderr: .;
"#;

type Data = data::JustLut<Val>;

/// A compiled program.
pub struct Program {
    filter: jaq_core::Filter<Data>,
}

/// Why a text is not a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum ProgramError {
    /// Too long a text.
    #[error("a jq program of {0} bytes is refused: at most {MAX_PROGRAM_BYTES} are read")]
    TooLong(usize),
    /// Too many brackets within brackets.
    #[error("the jq program is nested more than {MAX_PROGRAM_DEPTH} deep; write it in steps")]
    TooDeep,
    /// It does not follow the grammar, or uses something that does not exist.
    #[error("line {line}, column {column} of the jq program: {what}")]
    Wrong {
        /// Which line, from 1.
        line: usize,
        /// Which character of it, from 1.
        column: usize,
        /// What is wrong there.
        what: String,
    },
}

/// What a program makes of an object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Outcome {
    /// This object.
    Object(Value),
    /// Nothing: the object is dropped.
    Dropped,
}

/// Something that runs a program on one object at a time.
pub trait Evaluate {
    /// What the program makes of the object. The error is what jq says, what is wrong with its output, or which bound it
    /// went over.
    fn run(&self, object: &Value, reference: &ObjectRef, at: SimTime) -> Result<Outcome, String>;
}

impl Program {
    /// Compiles a program.
    pub fn compile(code: &str) -> Result<Self, ProgramError> {
        if code.len() > MAX_PROGRAM_BYTES {
            return Err(ProgramError::TooLong(code.len()));
        }
        if bracket_depth(code) > MAX_PROGRAM_DEPTH {
            return Err(ProgramError::TooDeep);
        }
        let ours = load::parse(UNAVAILABLE, |parser| parser.defs()).expect("the text above follows the grammar");
        let defs = jaq_core::defs().chain(jaq_std::defs()).chain(jaq_json::defs()).chain(ours);
        let funs = jaq_core::funs().chain(jaq_std::funs()).chain(jaq_json::funs());
        let arena = Arena::default();
        let modules = Loader::new(defs).load(&arena, File { code, path: () }).map_err(|errors| {
            let (place, what) = errors.iter().find_map(|(_, error)| first_load_error(error)).unwrap_or_default();
            wrong(code, place, what)
        })?;
        let compiler = Compiler::default().with_funs(funs).with_global_vars(VARIABLES);
        let filter = compiler.compile(modules).map_err(|errors| {
            let first = errors.iter().flat_map(|(_, errors)| errors).next();
            let (place, what) = first.map(undefined).unwrap_or_default();
            wrong(code, place, what)
        })?;
        Ok(Self { filter })
    }
}

impl Evaluate for Program {
    fn run(&self, object: &Value, reference: &ObjectRef, at: SimTime) -> Result<Outcome, String> {
        let text = |text: &str| Val::utf8_str(text.to_owned());
        let (kind, key) = (&reference.gvk.kind, &reference.key);
        let variables = [text(&at.to_string()), text(kind), text(key.namespace_or_empty()), text(&key.name)];
        let input = Val::deserialize(object).map_err(|error| shorten(&error))?;
        let context = Ctx::<Data>::new(&self.filter.lut, Vars::new(variables));
        let mut outputs = self.filter.id.run((context, input));
        let mut next = || match outputs.next() {
            None => Ok(None),
            Some(Ok(value)) => Ok(Some(value)),
            Some(Err(exception)) => Err(exception.get_err().map_or_else(|_| "the program halted".to_owned(), message)),
        };
        let Some(output) = next()? else { return Ok(Outcome::Dropped) };
        if next()?.is_some() {
            return Err("the program has more than one output; one is a new object, none drops it".to_owned());
        }
        to_json(&output, Some(object), 0).map(Outcome::Object)
    }
}

/// How deep brackets are nested at most, those in texts and comments included.
fn bracket_depth(code: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    for byte in code.bytes() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

/// Where the first error is, and what.
fn first_load_error<'a>(error: &load::Error<&'a str>) -> Option<(&'a str, String)> {
    match error {
        load::Error::Io(errors) => errors.first().map(|(place, _)| (*place, "no modules are read here".to_owned())),
        load::Error::Lex(errors) => errors.first().map(|(expected, place)| {
            let expected = match expected {
                lex::Expect::Delim(open) => format!("something that closes `{open}`"),
                other => format!("a {}", other.as_str()),
            };
            (*place, format!("expected {expected}"))
        }),
        load::Error::Parse(errors) => errors.first().map(|(expected, place): &parse::Error<&str>| {
            (*place, format!("expected {}, found {}", expected.as_str(), found(place)))
        }),
    }
}

fn found(place: &str) -> String {
    match place.lines().next().unwrap_or("") {
        "" => "the end".to_owned(),
        line => format!("`{}`", line.chars().take(40).collect::<String>()),
    }
}

fn undefined<'a>((name, what): &compile::Error<&'a str>) -> (&'a str, String) {
    let what = match what {
        compile::Undefined::Filter(arity) => format!("filter of {arity} arguments"),
        other => other.as_str().to_owned(),
    };
    (*name, format!("there is no {what} `{name}`"))
}

/// An error at `place`, which is a part of `code`.
fn wrong(code: &str, place: &str, what: String) -> ProgramError {
    let offset = (place.as_ptr() as usize).checked_sub(code.as_ptr() as usize).filter(|offset| *offset <= code.len());
    let before = code.get(..offset.unwrap_or(0)).unwrap_or("");
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
    ProgramError::Wrong { line, column, what }
}

/// What an error says: mostly a text, which jaq would show with its quotes.
fn message(error: jaq_json::Error) -> String {
    match error.into_val() {
        Val::TStr(text) => shorten(&String::from_utf8_lossy(&text)),
        other => shorten(&other),
    }
}

fn shorten(message: &impl std::fmt::Display) -> String {
    message.to_string().chars().take(MAX_MESSAGE).collect()
}

/// A value of jq as JSON. `before` is what stood in its place.
fn to_json(value: &Val, before: Option<&Value>, depth: usize) -> Result<Value, String> {
    if depth > MAX_DEPTH {
        return Err(format!("the output is nested more than {MAX_DEPTH} deep"));
    }
    Ok(match value {
        Val::Null => Value::Null,
        Val::Bool(flag) => Value::Bool(*flag),
        Val::Num(number) => Value::Number(to_number(number, before)?),
        Val::TStr(text) => Value::String(to_text(text)?),
        Val::BStr(_) => return Err("the output holds bytes that are not text".to_owned()),
        Val::Arr(elements) => {
            let each = |(index, element)| to_json(element, before.and_then(|before| before.get(index)), depth + 1);
            Value::Array(elements.iter().enumerate().map(each).collect::<Result<_, _>>()?)
        }
        Val::Obj(fields) => {
            let mut map = Map::with_capacity(fields.len());
            for (key, value) in fields.iter() {
                let Val::TStr(key) = key else { return Err("the output has a key that is not text".to_owned()) };
                let key = to_text(key)?;
                let value = to_json(value, before.and_then(|before| before.get(&key)), depth + 1)?;
                map.insert(key, value);
            }
            Value::Object(map)
        }
    })
}

fn to_text(bytes: &[u8]) -> Result<String, String> {
    String::from_utf8(bytes.to_vec()).map_err(|_| "the output holds a text that is not UTF-8".to_owned())
}

/// jq divides 4 by 2 and has 2.0; Kubernetes wants 2. A number that was 2.0 before stays it.
fn to_number(number: &Num, before: Option<&Value>) -> Result<Number, String> {
    let float = match number {
        Num::Int(integer) => return Ok(Number::from(*integer as i64)),
        Num::BigInt(integer) => match integer.to_string().parse::<u64>() {
            Ok(integer) => return Ok(Number::from(integer)),
            Err(_) => integer.to_string().parse::<f64>().unwrap_or(f64::NAN),
        },
        Num::Float(float) => *float,
        Num::Dec(text) => text.parse().unwrap_or(f64::NAN),
    };
    /// Up to here a double holds every integer.
    const MAX_EXACT: f64 = 9_007_199_254_740_992.0;
    let unchanged = before.is_some_and(|before| before.is_f64() && before.as_f64() == Some(float));
    if float.fract() == 0.0 && float.abs() <= MAX_EXACT && !unchanged {
        return Ok(Number::from(float as i64));
    }
    Number::from_f64(float).ok_or_else(|| format!("the output holds {float}, which JSON cannot"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn run(code: &str, object: &Value) -> Result<Outcome, String> {
        let reference = ObjectRef::new("apps/v1.Deployment".parse().unwrap(), "default/web".parse().unwrap());
        Program::compile(code).unwrap().run(object, &reference, SimTime::from_secs(1_700_000_000))
    }

    fn object(code: &str, input: &Value) -> Value {
        match run(code, input).unwrap() {
            Outcome::Object(value) => value,
            Outcome::Dropped => panic!("{code} dropped it"),
        }
    }

    #[test]
    fn programs_change_objects_and_know_where_they_are() {
        assert_eq!(
            object(".a += 1", &json!({"a": 1, "b": [1.5, null, true]})),
            json!({"a": 2, "b": [1.5, null, true]})
        );
        let told = object("[$time, $kind, $namespace, $name]", &json!({}));
        assert_eq!(told, json!(["2023-11-14T22:13:20Z", "Deployment", "default", "web"]));
        assert_eq!(run("empty", &json!({})), Ok(Outcome::Dropped));
        assert_eq!(run(r#"select($kind != "Deployment")"#, &json!({})), Ok(Outcome::Dropped));
    }

    #[test]
    fn numbers_come_back_as_they_were_and_wholes_as_wholes() {
        let numbers = json!({"a": 18_446_744_073_709_551_615_u64, "b": -1, "c": 2.0, "d": 0.1, "e": 1e300});
        assert_eq!(object(".", &numbers).to_string(), numbers.to_string());
        assert_eq!(object(".a / 2", &json!({"a": 4})).to_string(), "2");
        assert!(run("infinite", &json!({})).unwrap_err().contains("JSON"));
    }

    #[test]
    fn more_than_one_output_is_refused_without_waiting_for_the_rest() {
        assert!(run("repeat(.)", &json!({})).unwrap_err().contains("more than one output"));
    }

    #[test]
    fn errors_say_what_jq_says() {
        assert_eq!(run(r#"error("no way")"#, &json!({})), Err("no way".to_owned()));
        assert!(run(".a + {}", &json!({"a": 1})).unwrap_err().contains("cannot"));
    }

    #[test]
    fn what_would_differ_between_runs_is_not_available() {
        for code in ["now", "env", "$time | now", "localtime", "halt", "halt(1)", "halt_error"] {
            let error = run(code, &json!({})).unwrap_err();
            assert!(error.contains("not available"), "{code}: {error}");
        }
    }

    #[test]
    fn a_wrong_program_is_refused_where_it_is_wrong() {
        let refuse = |code: &str| Program::compile(code).err().unwrap().to_string();
        assert!(refuse(".a |\n  nosuch(1)").starts_with("line 2, column 3"), "{}", refuse(".a |\n  nosuch(1)"));
        assert!(refuse(".a | $x").contains("$x"), "{}", refuse(".a | $x"));
        assert!(refuse("if . then").contains("expected"), "{}", refuse("if . then"));
        assert!(refuse("(1").contains("closes `(`"), "{}", refuse("(1"));
        assert!(refuse("include \"a\"; .").contains("line 1"), "{}", refuse("include \"a\"; ."));
        assert!(refuse(&"(".repeat(1_000)).contains("nested"));
        assert!(refuse(&" ".repeat(MAX_PROGRAM_BYTES + 1)).contains("bytes"));
    }
}
