//! Scripts run by a host that knows a few commands.

mod bounds;
mod check_libraries;
mod check_patterns;
mod corpus;
mod errors;
mod host;
mod libraries;
mod libraries_of_functions;
mod looks;
mod patterns;
mod reused_words;
mod sandbox;
mod values;
