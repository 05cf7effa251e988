//! The frame of report and comparison: one file, no network, one style.

use crate::escape::{json_in_script, markup};

const STYLE: &str = include_str!("../../assets/report.css");
const BASE: &str = include_str!("../../assets/base.js");

/// What makes a page.
pub(crate) struct Page<'a> {
    /// What the browser's tab says.
    pub(crate) title: &'a str,
    /// The run that commands name.
    pub(crate) run: &'a str,
    /// Its content, as markup.
    pub(crate) body: &'a str,
    /// What its script draws from, as JSON.
    pub(crate) data: &'a str,
    /// Styles beside those that all pages share.
    pub(crate) style: &'a str,
    /// Scripts behind what all pages share, one after the other in one scope.
    pub(crate) scripts: &'a [&'a str],
}

impl Page<'_> {
    /// The whole file. It forbids itself any connection.
    pub(crate) fn render(&self) -> String {
        let (title, run, data) = (markup(self.title), markup(self.run), json_in_script(self.data));
        let (body, style, scripts) = (self.body, self.style, self.scripts.concat());
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
             script-src 'unsafe-inline'; img-src data:\">\n<meta name=\"color-scheme\" content=\"light dark\">\n\
             <link rel=\"icon\" href=\"data:,\">\n<title>{title}</title>\n<style>\n{STYLE}{style}</style>\n</head>\n\
             <body data-run=\"{run}\">\n<main>\n{body}</main>\n\
             <script type=\"application/json\" id=\"data\">{data}</script>\n\
             <script>\n(() => {{\n\"use strict\";\n{BASE}{scripts}}})();\n</script>\n</body>\n</html>\n"
        )
    }
}
