//! Which figures an expression reads: paths like `nodes.max` and `owners["ns/Kind/name"].pending.longest`, found in
//! the syntax tree.

use std::fmt;

use cel::IdedExpr;
use cel::common::ast::{EntryExpr, Expr, LiteralValue, operators};

use crate::figure::Figure;
use crate::words;

/// A way into the tree of figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Path {
    /// The syntax node, to find the place in the text.
    pub(crate) id: u64,
    /// The variable it starts with.
    pub(crate) root: String,
    /// And then.
    pub(crate) steps: Vec<Step>,
}

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// `.max`
    Field(String),
    /// `["payments"]`
    Key(String),
    /// `[o]`: something that is only known while evaluating.
    Any,
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.root)?;
        for step in &self.steps {
            match step {
                Step::Field(name) => write!(f, ".{name}")?,
                Step::Key(key) => write!(f, "[\"{key}\"]")?,
                Step::Any => f.write_str("[…]")?,
            }
        }
        Ok(())
    }
}

impl Path {
    /// The group, namespace or owner that it names, and of which of these it is: `("owners", "ns/Kind/name")`.
    pub(crate) fn entry(&self) -> Option<(&str, &str)> {
        let mut of = self.root.as_str();
        for step in &self.steps {
            match step {
                Step::Field(name) => of = name,
                Step::Key(key) => return Some((of, key)),
                Step::Any => return None,
            }
        }
        None
    }

    /// The figure as text. If the path matches many, the largest and its owner.
    pub(crate) fn value_in(&self, figures: &Figure) -> Option<String> {
        let (largest, whose) = largest(figures.get(&self.root)?, &self.steps)?;
        let text = leaf_text(largest)?;
        Some(whose.map_or(text.clone(), |key| format!("at most {text}, {key}")))
    }
}

fn largest<'a>(at: &'a Figure, steps: &[Step]) -> Option<(&'a Figure, Option<&'a str>)> {
    match steps.split_first() {
        None => Some((at, None)),
        Some((Step::Field(name) | Step::Key(name), rest)) => largest(at.get(name)?, rest),
        Some((Step::Any, rest)) => {
            let Figure::Entries(entries) = at else { return None };
            let found = entries.iter().filter_map(|(key, figure)| Some((largest(figure, rest)?.0, Some(key.as_str()))));
            found.max_by(|(a, _), (b, _)| size(a).total_cmp(&size(b)))
        }
    }
}

fn size(figure: &Figure) -> f64 {
    match figure {
        Figure::Count(count) => *count as f64,
        Figure::Number(number) => *number,
        Figure::Time(time) => time.as_secs_f64(),
        Figure::Fields(_) | Figure::Entries(_) | Figure::Absent => 0.0,
    }
}

fn leaf_text(figure: &Figure) -> Option<String> {
    match figure {
        Figure::Count(count) => Some(count.to_string()),
        Figure::Number(number) => Some(words::figure(*number)),
        Figure::Time(time) => Some(time.to_string()),
        Figure::Fields(_) | Figure::Entries(_) | Figure::Absent => None,
    }
}

/// Every path in the expression that starts with a variable, in order of appearance, each once.
pub(crate) fn paths(expression: &IdedExpr) -> Vec<Path> {
    let mut found = Vec::new();
    gather(expression, &mut Vec::new(), &mut found);
    let mut unique: Vec<Path> = Vec::new();
    for path in found {
        if !unique.iter().any(|known| known.root == path.root && known.steps == path.steps) {
            unique.push(path);
        }
    }
    unique
}

fn gather(at: &IdedExpr, locals: &mut Vec<String>, found: &mut Vec<Path>) {
    if let Some(path) = as_path(at) {
        if !locals.contains(&path.root) {
            found.push(path);
        }
        keys_inside(at, locals, found);
        return;
    }
    if let Expr::Comprehension(loops) = &at.expr {
        gather(&loops.iter_range, locals, found);
        let known = locals.len();
        locals.extend([loops.iter_var.clone(), loops.accu_var.clone()]);
        locals.extend(loops.iter_var2.clone());
        for part in [&loops.accu_init, &loops.loop_cond, &loops.loop_step, &loops.result] {
            gather(part, locals, found);
        }
        locals.truncate(known);
        return;
    }
    for child in children(&at.expr) {
        gather(child, locals, found);
    }
}

/// An index may itself be an expression with figures in it.
fn keys_inside(at: &IdedExpr, locals: &mut Vec<String>, found: &mut Vec<Path>) {
    match &at.expr {
        Expr::Select(select) => keys_inside(&select.operand, locals, found),
        Expr::Call(call) if call.func_name == operators::INDEX => {
            if let [operand, key] = call.args.as_slice() {
                keys_inside(operand, locals, found);
                gather(key, locals, found);
            }
        }
        _ => {}
    }
}

fn as_path(at: &IdedExpr) -> Option<Path> {
    let mut path = match &at.expr {
        Expr::Ident(name) => return Some(Path { id: at.id, root: name.clone(), steps: Vec::new() }),
        Expr::Select(select) => {
            let mut path = as_path(&select.operand)?;
            path.steps.push(Step::Field(select.field.clone()));
            path
        }
        Expr::Call(call) if call.func_name == operators::INDEX => {
            let [operand, key] = call.args.as_slice() else { return None };
            let mut path = as_path(operand)?;
            path.steps.push(match &key.expr {
                Expr::Literal(LiteralValue::String(key)) => Step::Key(key.inner().to_owned()),
                _ => Step::Any,
            });
            path
        }
        _ => return None,
    };
    path.id = at.id;
    Some(path)
}

fn children(at: &Expr) -> Vec<&IdedExpr> {
    match at {
        Expr::Call(call) => call.target.as_deref().into_iter().chain(&call.args).collect(),
        Expr::Select(select) => vec![&select.operand],
        Expr::List(list) => list.elements.iter().collect(),
        Expr::Map(map) => map.entries.iter().flat_map(|entry| entry_parts(&entry.expr)).collect(),
        Expr::Struct(made) => made.entries.iter().flat_map(|entry| entry_parts(&entry.expr)).collect(),
        Expr::Comprehension(_) | Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => Vec::new(),
    }
}

fn entry_parts(entry: &EntryExpr) -> Vec<&IdedExpr> {
    match entry {
        EntryExpr::StructField(field) => vec![&field.value],
        EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
    }
}

/// The operands of a logical expression: what `&&`, `||`, `!` and `?:` connect.
pub(crate) fn comparisons(expression: &IdedExpr) -> Vec<&IdedExpr> {
    const LOGICAL: [&str; 4] =
        [operators::LOGICAL_AND, operators::LOGICAL_OR, operators::LOGICAL_NOT, operators::CONDITIONAL];
    match &expression.expr {
        Expr::Call(call) if LOGICAL.contains(&call.func_name.as_str()) => {
            call.args.iter().flat_map(comparisons).collect()
        }
        _ => vec![expression],
    }
}
