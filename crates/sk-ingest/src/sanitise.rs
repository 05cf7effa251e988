//! Writes what is kept of an object as compact JSON: one pass over its tape, guided by the shape of its kind and the
//! configured paths.

use std::borrow::Cow;
use std::ops::Range;

use sk_core::{Gvk, Pointer};

use crate::overlay::{self, Overlay, Step};
use crate::privacy::{PrivacyKey, Spelling};
use crate::shape::Rule;
use crate::shape::pods::POD_TEMPLATE;
use crate::tape::{Node, Token};

/// Where in the written bytes a pod template stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TemplatePlace {
    /// Its place in the object.
    pub(crate) path: Pointer,
    /// Its bytes.
    pub(crate) range: Range<usize>,
}

/// A walk over one object.
pub(crate) struct Sanitiser<'r, 't> {
    key: &'r PrivacyKey,
    steps: Vec<Step<'t>>,
    out: Vec<u8>,
    templates: Vec<TemplatePlace>,
}

/// What holds at one place of the walk.
#[derive(Clone, Copy)]
struct Place<'r> {
    rule: Rule,
    /// Is everything kept here that is not sealed?
    open: bool,
    /// Does the configuration name exactly this place of this kind, so that not even a seal holds?
    named: bool,
    overlay: Option<&'r Overlay>,
}

impl Place<'_> {
    /// Does everything here stay, whatever it is?
    fn keeps_everything(&self) -> bool {
        self.overlay.is_none() && matches!((self.rule, self.open), (Rule::Keep, _) | (Rule::Hide(_), true))
    }
}

impl<'r, 't> Sanitiser<'r, 't> {
    /// A walk that hides under this key and writes about `size` bytes.
    pub(crate) fn new(key: &'r PrivacyKey, size: usize) -> Self {
        Self { key, steps: Vec::new(), out: Vec::with_capacity(size), templates: Vec::new() }
    }

    /// Writes what is kept of an object of this kind, which need not say its kind itself.
    pub(crate) fn object(
        mut self,
        kind: &Gvk,
        object: Node<'t, '_>,
        rule: Rule,
        open: bool,
        overlay: &'r Overlay,
    ) -> (Vec<u8>, Vec<TemplatePlace>) {
        self.out.extend_from_slice(b"{\"apiVersion\":");
        self.text(&kind.api_version());
        self.out.extend_from_slice(b",\"kind\":");
        self.text(&kind.kind);
        let open = open || overlay.keep;
        self.fields(object, Place { rule, open, named: false, overlay: Some(overlay) }, false);
        self.out.push(b'}');
        (self.out, self.templates)
    }

    /// Writes what is kept of any value.
    pub(crate) fn value(mut self, value: Node<'t, '_>, rule: Rule) -> Vec<u8> {
        self.walk(value, Place { rule, open: false, named: false, overlay: None });
        self.out
    }

    fn walk(&mut self, node: Node<'t, '_>, place: Place<'r>) {
        if let Some(source) = node.source().filter(|_| place.keeps_everything()) {
            return self.out.extend_from_slice(source.as_bytes());
        }
        match node.token() {
            Token::Null => self.out.extend_from_slice(b"null"),
            Token::Bool(true) => self.out.extend_from_slice(b"true"),
            Token::Bool(false) => self.out.extend_from_slice(b"false"),
            Token::Unsigned(number) => self.scalar(number),
            Token::Signed(number) => self.scalar(number),
            Token::Float(number) => self.scalar(number),
            Token::Text(text) => self.private_text(text, place),
            Token::List { .. } => {
                self.out.push(b'[');
                self.elements(node, place);
                self.out.push(b']');
            }
            Token::Map { .. } => {
                self.out.push(b'{');
                self.fields(node, place, true);
                self.out.push(b'}');
            }
        }
    }

    fn elements(&mut self, list: Node<'t, '_>, place: Place<'r>) {
        for (index, element) in list.elements().enumerate() {
            if index > 0 {
                self.out.push(b',');
            }
            // Elements have the rule of their list.
            self.step(Step::Index(index), element, place.rule, place);
        }
    }

    fn fields(&mut self, map: Node<'t, '_>, place: Place<'r>, mut first: bool) {
        for (key, value) in map.entries() {
            let rule = place.rule.field(key);
            if matches!(rule, Rule::Drop) {
                continue;
            }
            let (before, was_first) = (self.out.len(), first);
            if !std::mem::take(&mut first) {
                self.out.push(b',');
            }
            self.read_text(key);
            self.out.push(b':');
            self.step(Step::Key(key), value, rule, place);
            if matches!(rule, Rule::Annotations) && self.out.ends_with(b":{}") {
                // A controller that writes nothing but its bookkeeping has changed nothing. A new Deployment comes without
                // annotations and gets its revision a moment later.
                self.out.truncate(before);
                first = was_first;
            }
        }
    }

    /// Walks on to what stands one step further in.
    fn step(&mut self, step: Step<'t>, node: Node<'t, '_>, rule: Rule, from: Place<'r>) {
        let Some(overlay) = from.overlay.and_then(|overlay| overlay.step(step)) else {
            return self.walk(node, Place { rule, overlay: None, named: false, ..from });
        };
        self.steps.push(step);
        let rule = if overlay.template { Rule::Of(&POD_TEMPLATE) } else { rule };
        let open = from.open || overlay.keep;
        let start = self.out.len();
        self.walk(node, Place { rule, open, named: overlay.unsealed, overlay: Some(overlay) });
        if overlay.template {
            let path = overlay::pointer(&self.steps);
            self.templates.push(TemplatePlace { path, range: start..self.out.len() });
        }
        self.steps.pop();
    }

    #[expect(clippy::ptr_arg, reason = "a text that could be borrowed is known to need no escaping")]
    fn private_text(&mut self, text: &Cow<'_, str>, place: Place<'r>) {
        match place.rule {
            Rule::Keep => self.read_text(text),
            Rule::Seal(spelling) if !place.named => self.hidden(text, spelling),
            Rule::Hide(spelling) if !place.open => self.hidden(text, spelling),
            Rule::Hide(_) | Rule::Seal(_) => self.read_text(text),
            _ if place.open => self.read_text(text),
            // A text where a map belongs.
            _ => self.hidden(text, Spelling::Text),
        }
    }

    /// Neither a hash nor a text that looks like one holds anything that JSON escapes.
    fn hidden(&mut self, text: &str, spelling: Spelling) {
        self.out.push(b'"');
        self.key.hide(text, spelling, &mut self.out);
        self.out.push(b'"');
    }

    /// A text that was read. One that could be borrowed has nothing in it that JSON escapes.
    #[expect(clippy::ptr_arg, reason = "a text that could be borrowed is known to need no escaping")]
    fn read_text(&mut self, text: &Cow<'_, str>) {
        match text {
            Cow::Borrowed(text) => {
                self.out.push(b'"');
                self.out.extend_from_slice(text.as_bytes());
                self.out.push(b'"');
            }
            Cow::Owned(text) => self.text(text),
        }
    }

    fn text(&mut self, text: &str) {
        serde_json::to_writer(&mut self.out, text).expect("a vector takes every text");
    }

    fn scalar(&mut self, number: &impl serde::Serialize) {
        serde_json::to_writer(&mut self.out, number).expect("a vector takes every number");
    }
}
