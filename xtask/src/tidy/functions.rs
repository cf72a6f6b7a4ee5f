//! Functions stay short, and are named by the glossary's rules.

use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};

use super::Finding;
use crate::tree::SourceFile;

const FUNCTION_LINES_MAX: usize = 70;

/// Checks every function of one Rust file.
pub(super) fn check(file: &SourceFile, findings: &mut Vec<Finding>) {
    match syn::parse_file(&file.text) {
        Ok(parsed) => Functions {
            path: &file.path,
            findings,
        }
        .visit_file(&parsed),
        Err(why) => findings.push(format!("{}: does not parse: {why}", file.path)),
    }
}

struct Functions<'a> {
    path: &'a str,
    findings: &'a mut Vec<Finding>,
}

impl Functions<'_> {
    fn function(&mut self, signature: &syn::Signature, body: &syn::Block) {
        let (first, last) = (signature.span().start().line, body.span().end().line);
        let lines = last - first + 1;
        let (path, name) = (self.path, &signature.ident);
        if lines > FUNCTION_LINES_MAX {
            self.findings.push(format!(
                "{path}:{first}: fn {name} has {lines} lines, at most {FUNCTION_LINES_MAX}"
            ));
        }
        if name.to_string().starts_with("get_") {
            self.findings
                .push(format!("{path}:{first}: fn {name}: no 'get_' prefixes"));
        }
    }
}

impl<'ast> Visit<'ast> for Functions<'_> {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.function(&function.sig, &function.block);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.function(&function.sig, &function.block);
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        if let Some(body) = &function.default {
            self.function(&function.sig, body);
        }
        visit::visit_trait_item_fn(self, function);
    }
}
